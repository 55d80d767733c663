"""Training models: one algorithm per file."""
