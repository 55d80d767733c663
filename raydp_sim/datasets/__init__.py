"""What the clients hold: synthetic generators and loaders, one per file, found by its kind."""

from raydp_sim.datasets.base import Dataset
from raydp_sim.registry import Registry

DATASETS = Registry("raydp_sim.datasets", Dataset)
