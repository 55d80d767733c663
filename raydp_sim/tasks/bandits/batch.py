"""One batch: what is asked of its clients, and what their rewards teach."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.curves.mixed import honest_clients
from raydp_sim.tasks.bandits.amplification import epsilon0_for_batch
from raydp_sim.tasks.bandits.checks import Floats, Ints
from raydp_sim.tasks.bandits.design import core_set, uniform_design
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.radii import confidence_radius
from raydp_sim.tasks.bandits.regression import regression, survivors
from raydp_sim.tasks.bandits.schedule import batch_slots, growth


@dataclass(frozen=True, eq=False)
class Batch:
    """What is asked, fixed and public before a client hears of it.

    Attributes:
        number: i = 1, 2, ...
        actions: which are played, as rows of the problem's actions.
        slots: how many clients play each.
        size: q^i.
        leverage: of every active action at most, if all slots are filled.
        least: reports without which a batch is not used, and a shuffled one not released.
        epsilon0: that a report's noise is meant for, in the local and shuffled models, or that of
            the sums, in the central one; inf: no noise.
        scale: of the Laplace noise.
    """

    number: int
    actions: Ints
    slots: Ints
    size: float
    leverage: float
    least: int
    epsilon0: float
    scale: float

    @property
    def clients(self) -> int:
        """How many are handed a slot: n_i."""
        return int(self.slots.sum())

    @property
    def action_of_slot(self) -> Ints:
        """The action of every slot, in the order of slots."""
        return np.repeat(self.actions, self.slots)


@dataclass(frozen=True, eq=False)
class Learned:
    """What a batch taught; leading axes are repetitions.

    Attributes:
        theta: the estimate, from this batch alone.
        radius: gamma_i.
        leverage: l, of every active action at most, that it rests on.
        active: which of all actions stay.
    """

    theta: Floats
    radius: float
    leverage: float
    active: NDArray[np.bool_]


def plan_batch(problem: Problem, active: NDArray[np.bool_], number: int) -> Batch:
    """Return batch i for the actions that are active.

    Example:
        >>> problem = Problem(np.eye(2), 10_000, "local", 1.0)
        >>> batch = plan_batch(problem, np.array([True, True]), 2)
        >>> batch.slots.tolist(), batch.scale
        ([5, 5], 2.0)
    """
    index = np.flatnonzero(active)
    rows = problem.actions[index]
    size = growth(problem.horizon) ** number
    design = core_set(rows) if problem.design == "core-set" else uniform_design(rows)
    slots = batch_slots(design.weights, size)
    # Core sets keep to 2m <= 2d. Others may not, and only the printed radius ignores that.
    most = 2.0 * problem.dimension
    leverage = (most if problem.radius == "paper" else max(most, design.leverage)) / size
    clients = int(slots.sum())
    least = math.ceil(problem.least * clients - 1e-9) if problem.model == "shuffle" else 1
    epsilon0 = problem.epsilon
    if problem.model == "shuffle" and math.isfinite(epsilon0):
        by, hiding = problem.amplification, honest_clients(least, problem.honest)
        epsilon0 = epsilon0_for_batch(problem.epsilon, hiding, problem.delta, by)
    scale = problem.rewards.scale(epsilon0)
    return Batch(number, index[design.index], slots, size, leverage, least, epsilon0, scale)


def learn(
    problem: Problem,
    active: NDArray[np.bool_],
    batch: Batch,
    sums: Floats,
    counts: Ints | None = None,
) -> Learned | None:
    """Return what the sums of a batch teach, or None where it is void.

    It is void if fewer reports came than it takes, or if they do not tell about an active action:
    it has left the span of those played. Counts are of who came, never imputed; that a client
    stayed away must not depend on its reward. Where they differ from the plan, the radius has the
    leverage that they give.

    Args:
        problem: of the run.
        active: actions that the batch was planned for.
        batch: the plan.
        sums: of the rewards of each action, noise included; leading axes are repetitions.
        counts: rewards of each action that came; None: all slots were filled.
    """
    came = batch.slots if counts is None else counts
    rows = problem.actions[active]
    fit = regression(problem.actions[batch.actions], came)
    leverage, reports = batch.leverage, int(came.sum())
    if not np.array_equal(came, batch.slots):
        if reports < batch.least or not fit.spans(rows):
            return None
        leverage = fit.leverage(rows)
    radius = confidence_radius(
        problem.radius,
        problem.noise_on,
        leverage,
        len(rows),
        problem.horizon,
        int((came > 0).sum()),
        reports,
        batch.scale,
    )
    theta = fit.estimate(sums)
    stay = np.zeros((*theta.shape[:-1], len(active)), dtype=bool)
    stay[..., active] = survivors(rows, theta, radius)
    return Learned(theta, radius, leverage, stay)
