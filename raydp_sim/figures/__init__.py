"""Figures of the literature: computed from the bounds, not simulated, and held against the text."""

from raydp_sim.figures.play import Played, load, play

__all__ = ["Played", "load", "play"]
