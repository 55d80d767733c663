"""Divergences of one event, numerically or in closed form."""
