"""Means of sketched vectors that are decoded together (Jiang 2025, 004, chapter 2). No privacy."""
