"""What many releases cost together: divergences, (epsilon, delta) and loss distributions."""
