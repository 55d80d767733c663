"""Which of the clients take part in a release: one policy per file, found by its kind."""

from raydp_sim.population.participation.base import Participation
from raydp_sim.registry import Registry

PARTICIPATION = Registry("raydp_sim.population.participation", Participation)
