"""Whole runs at once, exactly: sums are drawn, not the rewards and noise that they are made of.

n rewards that are `low` or `high` add up to a binomial count, and n Laplace variables to the
difference of two gamma variables; so a batch costs as much as its actions, whatever its size. Runs
that have the same actions left are planned together, which makes thousands of short runs cheap.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import InputError, bad_field
from raydp_sim.tasks.bandits.batch import Batch, learn, plan_batch
from raydp_sim.tasks.bandits.certificate import regret_certificate
from raydp_sim.tasks.bandits.checks import Floats, Ints
from raydp_sim.tasks.bandits.instance import Instance
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.schedule import most_batches


@dataclass(frozen=True, eq=False)
class Runs:
    """What came of runs, one row each; batches are columns, nan or 0 where one was not played.

    Attributes:
        regret: R_T = sum of gaps, without the rewards' own chance.
        certificate: bound on it, from the log.
        good: whether every confidence radius held for every active action.
        committed: action played to the end.
        clients: of each batch.
        active: actions before each batch.
        radius: of each batch.
        epsilon0: of each batch.
    """

    regret: Floats
    certificate: Floats
    good: NDArray[np.bool_]
    committed: Ints
    clients: Floats
    active: Floats
    radius: Floats
    epsilon0: Floats


def noise_of_sums(
    problem: Problem, batch: Batch, runs: int, generator: np.random.Generator
) -> Floats:
    """Draw the noise in the sums of a batch, one row per run.

    The trusted learner adds one Laplace variable to each sum; clients add one each, and n of them
    are scale (G - G') with G, G' of the gamma law of shape n.
    """
    shape = (runs, len(batch.slots))
    if problem.noise_on == "nothing" or batch.scale == 0.0:
        return np.zeros(shape)
    if problem.noise_on == "sums":
        return generator.laplace(0.0, batch.scale, shape)
    first, second = (generator.standard_gamma(batch.slots, shape) for _ in range(2))
    return np.asarray(batch.scale * (first - second))


def sums_of_rewards(
    problem: Problem, instance: Instance, batch: Batch, runs: int, generator: np.random.Generator
) -> Floats:
    """Draw the sums of a batch's rewards, each of them `low` or `high`, one row per run."""
    chance = instance.chances(problem.rewards)[batch.actions]
    high = generator.binomial(batch.slots, chance, (runs, len(batch.slots)))
    return np.asarray(problem.rewards.low * batch.slots + problem.rewards.width * high)


def simulate(
    problem: Problem, instance: Instance, runs: int, generator: np.random.Generator
) -> Runs:
    """Play runs to the horizon.

    Args:
        problem: what the learner knows.
        instance: what it does not; the same actions.
        runs: how many, >= 1.
        generator: that everything is drawn from.

    Example:
        >>> from raydp_sim.random import Stream
        >>> from raydp_sim.tasks.bandits.instance import random_instance
        >>> instance = random_instance(10, 2, Stream(1))
        >>> problem = Problem(instance.actions, 10**6, "central", 1.0)
        >>> played = simulate(problem, instance, 20, Stream(1).at("play").generator())
        >>> bool((played.regret <= played.certificate).all())
        True
    """
    if not np.array_equal(problem.actions, instance.actions):
        raise InputError("instance.actions are not the problem's; give both the same")
    if runs < 1:
        raise bad_field("runs", runs, "it must be >= 1")
    batches, gaps = most_batches(problem.horizon), instance.gaps
    active = np.ones((runs, len(gaps)), dtype=bool)
    going, good = np.ones(runs, dtype=bool), np.ones(runs, dtype=bool)
    committed, used = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
    regret, clients = np.zeros(runs), np.zeros((runs, batches))
    left, radius, epsilon0 = (np.full((runs, batches), np.nan) for _ in range(3))
    for i in range(batches):
        going &= active.sum(axis=1) > 1
        for rows in _alike(active, going):
            before = active[rows[0]].copy()
            batch = plan_batch(problem, before, i + 1)
            fits = used[rows] + batch.clients <= problem.horizon
            going[rows[~fits]] = False
            rows = rows[fits]
            if not len(rows):
                continue
            sums = sums_of_rewards(problem, instance, batch, len(rows), generator)
            sums += noise_of_sums(problem, batch, len(rows), generator)
            found = learn(problem, before, batch, sums)
            assert found is not None  # all slots are filled
            active[rows] = found.active
            values = found.theta @ problem.actions.T
            committed[rows] = np.where(found.active, values, -np.inf).argmax(axis=1)
            errors = np.abs(values - instance.means)[:, before]
            good[rows] &= errors.max(axis=1) <= found.radius
            used[rows] += batch.clients
            regret[rows] += float(batch.slots @ gaps[batch.actions])
            clients[rows, i], left[rows, i] = batch.clients, before.sum()
            radius[rows, i], epsilon0[rows, i] = found.radius, batch.epsilon0
    regret += (problem.horizon - used) * gaps[committed]
    bound = regret_certificate(clients, radius, problem.horizon, problem.rewards.width)
    return Runs(regret, bound, good, committed, clients, left, radius, epsilon0)


def _alike(active: NDArray[np.bool_], going: NDArray[np.bool_]) -> list[Ints]:
    """Return the runs that go on, grouped by the actions that they have left."""
    rows = np.flatnonzero(going)
    if not len(rows):
        return []
    _, group = np.unique(np.packbits(active[rows], axis=1), axis=0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    cuts = np.flatnonzero(np.diff(group[order])) + 1
    return np.split(rows[order], cuts)
