"""How long a client takes to answer: one model per file, found by its kind."""

from raydp_sim.population.latency.base import Latency
from raydp_sim.registry import Registry

LATENCY = Registry("raydp_sim.population.latency", Latency)
