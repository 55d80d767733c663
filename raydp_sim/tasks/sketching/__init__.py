"""Means of sketched vectors, and algorithms that are made of them (Jiang 2025, 004, chapter 2)."""
