"""Grids of runs and runs side by side: laid out, tabled and drawn, but not played here."""
