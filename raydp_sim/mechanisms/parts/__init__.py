"""Mathematics and samplers that several mechanisms share."""
