"""How many clients of a run are there when, from its scenario alone."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raydp_sim.run.directory import RunDir

# Clients that are looked at, evenly by number: a share of all has a standard error below 0.008.
_ASKED = 4096
EVERYONE = "all clients"

Presence = tuple[tuple[str, ...], NDArray[np.float64]]
"""Names of the groups, and a row each: the share of its clients that is there, by moment."""


def availability(path: Path, times: NDArray[np.float64]) -> Presence | None:
    """Return who is there at some moments, group by group; None if everyone always is.

    Args:
        path: the run directory.
        times: moments of virtual time, of the first repetition.

    Raises:
        InputError: it cannot be read.
    """
    scenario = RunDir.existing(path).scenario()
    population, root = scenario.population, scenario.stream(0)
    if population.everyone or population.needs_influence:
        return None
    clients = population.clients
    ids = np.unique(np.linspace(0, clients - 1, min(clients, _ASKED)).astype(np.int64))
    there = np.stack([population.available(ids, float(time), root) for time in times])
    if not population.groups:
        return (EVERYONE,), there.mean(axis=1)[np.newaxis]
    members = population.members(ids, root)
    shares = [
        there[:, members == group].mean(axis=1)
        if (members == group).any()
        else np.full(len(times), np.nan)
        for group in range(len(population.groups))
    ]
    return population.groups, np.stack(shares)
