"""What releases cost at least, by nothing that the bounds on what they cost at most use."""
