"""What is learned: one task per file, found by its kind."""

from raydp_sim.registry import Registry
from raydp_sim.tasks.base import Task

# The base is only compared with, so it may be abstract.
TASKS = Registry("raydp_sim.tasks", Task)  # type: ignore[type-abstract]
