"""Where else rows go while a run is played: one kind per file, found by its name."""

from raydp_sim.metrics.sinks.base import Sink
from raydp_sim.registry import Registry

SINKS = Registry("raydp_sim.metrics.sinks", Sink)  # type: ignore[type-abstract]
