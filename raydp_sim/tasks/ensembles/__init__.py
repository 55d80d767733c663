"""Votes: the majority of what voters say, released privately."""
