"""Packed forms of reports, apart from what they mean."""
