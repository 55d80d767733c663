"""When a client can be reached: one model per file, found by its kind."""

from raydp_sim.population.availability.base import Availability
from raydp_sim.registry import Registry

AVAILABILITY = Registry("raydp_sim.population.availability", Availability)
