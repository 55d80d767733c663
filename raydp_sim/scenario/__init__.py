"""The scenario file: its schema, how it is loaded, and what can be refused before a run."""

from raydp_sim.scenario.bound import bound_mechanism, setting_of, settled
from raydp_sim.scenario.file import Scenario
from raydp_sim.scenario.loading import load, parse

__all__ = ["Scenario", "bound_mechanism", "load", "parse", "setting_of", "settled"]
