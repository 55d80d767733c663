"""Batches with slots of clients that come when they can: gathered first, and asked all at once.

Who reports late would have no slot, so nobody begins before the batch can be filled. A client that
has checked in waits until then.
"""

import numpy as np

from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.random import Ids
from raydp_sim.schedule.batch import Cohort, Timing
from raydp_sim.schedule.rounds import ask_cohort
from raydp_sim.schedule.world import World


def plan_gathered(
    policy: Asynchronous, patience: float, least: int, release: int, start: float, world: World
) -> tuple[Cohort, Timing] | None:
    """Gather `policy.batch` clients that check in after `start`, and ask them all at once.

    It depends on nothing but its arguments, so a run that is resumed needs to save nothing of it.

    Args:
        policy: when clients check in, and the deadline, which counts from when they are asked.
        patience: time within which enough must check in, or the run ends.
        least: reports below which a batch is not released.
        release: its number.
        start: when the batch opens.
        world: the clients.

    Returns:
        None where not enough came.
    """
    found = _gathered(policy, start, start + patience, world)
    if found is None:
        return None
    ids, full = found
    cohort, timing = ask_cohort(policy, ids, len(ids), least, release, full, world)
    return cohort, timing.after(start, timing.closed)


def _gathered(
    policy: Asynchronous, start: float, end: float, world: World
) -> tuple[Ids, float] | None:
    """Return the first clients to check in, in order of ids, and when they are enough."""
    everyone = np.arange(world.population.clients, dtype=np.uint32)
    waiting = np.zeros(len(everyone), np.bool_)
    needed, period = policy.batch, int(start // policy.every)
    while period * policy.every <= end:
        place = world.root.at("check-in", period).clients(everyone)
        times = (period + place.uniform("moment")[:, 0]) * policy.every
        new = (times > start) & (times <= end) & ~waiting & world.willing(everyone)
        rows = np.flatnonzero(new)
        rows = rows[world.there(everyone[rows], times[rows])]
        order = np.argsort(times[rows], kind="stable")
        if len(rows) >= needed:
            last = order[needed - 1]
            waiting[rows[order[:needed]]] = True
            return everyone[waiting], float(times[rows[last]])
        waiting[rows] = True
        needed, period = needed - len(rows), period + 1
    return None
