"""Who holds which samples of a pool: one partition per file, found by its kind."""

from raydp_sim.datasets.partitions.base import PARTITIONS as PARTITIONS
