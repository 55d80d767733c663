"""Gradient steps along a shuffled order of records, with noise in every step: 004, chapter 4."""
