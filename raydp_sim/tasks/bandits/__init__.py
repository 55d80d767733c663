"""Private linear and contextual bandits: elimination in batches (Girgis 2024, Chapter 6)."""
