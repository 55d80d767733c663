"""How fast it is, as ratios to honest floors measured in the same run."""
