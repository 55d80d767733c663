"""Synchronous rounds: a cohort is asked, and the batch closes by what arrives when."""

import math

import numpy as np

from raydp_sim.population.participation.base import Participation, Rounds
from raydp_sim.random import Ids, Stream
from raydp_sim.schedule.batch import Cohort, Timing, closing
from raydp_sim.schedule.world import World

# How often a round that waits for enough clients looks for them before it is given up.
_LOOKS = 1000


def plan_round(
    policy: Rounds, least: int, release: int, start: float, world: World, needed: int = 0
) -> tuple[Cohort, Timing]:
    """Ask a cohort at `start` and say who is in the batch and when it closes.

    Args:
        policy: who is asked.
        least: reports below which a batch is not released.
        release: its number.
        start: when the round begins.
        world: the clients.
        needed: unless so many are there nobody is asked; with `on_short: wait` it is looked again
            after every interval, and the round begins when they are.
    """
    opened, looks = start, _LOOKS if needed and policy.on_short == "wait" else 1
    for look in range(looks):
        start = opened + look * policy.interval
        ids = _chosen(policy, release, start, world)
        if len(ids) >= needed:
            break
    else:
        nobody = Cohort(ids[:0], np.empty(0, np.int64))
        return nobody, Timing(opened, start, start + policy.interval, asked=0)
    wanted = policy.wanted(len(ids))
    cohort, timing = ask_cohort(policy, ids, wanted, least, release, start, world)
    due = max(timing.closed, start + policy.interval)
    return cohort, timing.after(opened, due)


def _chosen(policy: Rounds, release: int, start: float, world: World) -> Ids:
    population = world.population
    return policy.choose(
        population.clients,
        lambda some: world.there(some, start) & world.willing(some),
        population.rate(),
        world.root.at("participation", release),
    )


def ask_cohort(
    policy: Participation,
    ids: Ids,
    wanted: int,
    least: int,
    release: int,
    start: float,
    world: World,
) -> tuple[Cohort, Timing]:
    """Let clients work from `start` on and say who is in the batch, and when it closes.

    Args:
        policy: with the deadline.
        ids: who is asked, in increasing order.
        wanted: answers that end it.
        least: reports below which a batch is not released.
        release: its number.
        start: when they are asked.
        world: the clients.
    """
    ask = world.root.at("round", release)
    answers = world.answers(ids, start, ask)
    order = _order(answers.done, answers.lost, ids, ask)
    arrivals = answers.done[order]
    limit = math.inf if policy.deadline is None else start + policy.deadline
    closed = closing(arrivals, max(1, wanted), limit, least, policy.on_short == "wait")
    if math.isinf(closed):
        # Too few will ever come. Without a deadline nothing is lost, so all have come.
        closed = limit if math.isfinite(limit) else float(arrivals.max(initial=start))
    taken = order[arrivals <= closed][:wanted]
    members = np.sort(taken)
    twice = members[answers.again[members] <= closed]
    copies = int(np.count_nonzero(np.isfinite(answers.again)))
    unused = order[:0]
    if len(members) < len(order):
        unused = np.setdiff1d(order, members, assume_unique=True)
    stale = np.zeros(len(members), np.int64)
    cohort = Cohort(
        ids[members], stale, ids[twice], unused=np.sort(ids[unused]), lost=ids[answers.lost]
    )
    return cohort, Timing(
        opened=start,
        closed=closed,
        due=closed,
        asked=len(ids),
        missing=len(ids) - len(members),
        dropped=int(np.count_nonzero(answers.lost)),
        late=len(order) - len(members) + copies - len(twice),
        repeated=len(twice),
    )


def _order(done: np.ndarray, lost: np.ndarray, ids: np.ndarray, ask: Stream) -> np.ndarray:
    """Return the rows that arrive, first come first; chance decides between equals."""
    arriving = np.flatnonzero(~lost)
    tie = ask.clients(ids[arriving]).uniform("tie")[:, 0]
    return arriving[np.lexsort((tie, done[arriving]))]


def at_once(policy: Participation, start: float) -> Timing:
    """Return the timing of a round that each client joins by itself, without any latency."""
    assert isinstance(policy, Rounds)
    return Timing(start, start, start + policy.interval, asked=None)
