"""Many runs at once: every step size of a grid and every repetition moves in the same step.

For figures. It plays the same algorithms as `epoch.steps`, without actors or an account; step sizes
that are compared have the noise in common.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.random import Stream
from raydp_sim.tasks.shuffled_gradients import losses, regularisers
from raydp_sim.tasks.shuffled_gradients.objective import Problem
from raydp_sim.tasks.shuffled_gradients.plan import Epoch

Floats = NDArray[np.float64]
OrderName = Literal["ig", "so", "rr"]


class Course(NamedTuple):
    """How the objective went.

    Attributes:
        values: G after every epoch, the start included: (K + 1, step sizes, runs).
        last: the final points: (step sizes, runs, d).
    """

    values: Floats
    last: Floats


def orders(kind: OrderName, records: int, epoch: int, place: Stream) -> NDArray[np.int64]:
    """Return the order of an epoch: as given, drawn once, or drawn anew.

    Args:
        kind: `ig` as records come, `so` shuffled once, `rr` anew in every epoch.
        records: n.
        epoch: its number.
        place: of the shuffler's draws.
    """
    if kind == "ig":
        return np.arange(records)
    return place.at(epoch if kind == "rr" else 0).generator().permutation(records)


def play(
    problem: Problem,
    public: Problem | None,
    plan: tuple[Epoch, ...],
    kind: OrderName,
    grid: Floats,
    clip: float,
    sigma: float,
    start: Floats,
    runs: int,
    place: Stream,
) -> Course:
    """Play all runs at all step sizes.

    Args:
        problem: over the private records, which the objective is of too.
        public: over the public ones.
        plan: of the epochs.
        kind: of the order of private records.
        grid: step sizes.
        clip: of gradients.
        sigma: of the noise of noisy epochs' steps.
        start: x before, one for each run: (runs, d).
        runs: repetitions.
        place: of all draws.
    """
    n, d = problem.features.shape
    x = np.broadcast_to(start, (len(grid), runs, d)).copy()
    values = [problem.values(x)]
    rate = grid[:, None, None]
    noises = [place.at("noise", run).generator() for run in range(runs)]
    noise = np.zeros((n, runs, d), np.float32)
    for number, epoch in enumerate(plan):
        shuffled = np.stack(
            [orders(kind, n, number, place.at("order", run)) for run in range(runs)], axis=1
        )
        if epoch.noisy:
            for run, source in enumerate(noises):
                noise[:, run] = source.standard_normal((n, d), dtype=np.float32)
            noise *= np.float32(sigma)
        for step in range(n):
            if step < epoch.private:
                rows = problem.features[shuffled[step]]
                target = problem.targets[shuffled[step]]
            else:
                assert public is not None  # the plan uses none otherwise
                rows = public.features[step - epoch.private][None]
                target = public.targets[step - epoch.private : step - epoch.private + 1]
            direction = _clipped(problem, x, rows, target, clip)
            if epoch.noisy:
                direction += noise[step]
            direction *= rate
            x -= direction
        x = regularisers.prox(problem.regulariser, problem.weight, x, grid[:, None], n)
        values.append(problem.values(x))
    return Course(np.stack(values), x)


def _clipped(problem: Problem, x: Floats, rows: Floats, targets: Floats, clip: float) -> Floats:
    """Return clipped gradients at x of one record per run."""
    if problem.loss == "mean":
        direction = x - rows
        length = np.sqrt(np.einsum("erd,erd->er", direction, direction))
        direction *= np.minimum(1.0, clip / np.maximum(length, 1e-300))[..., None]
        return direction
    slope = losses.slopes(problem.loss, np.einsum("erd,rd->er", x, rows), targets)
    length = np.abs(slope) * np.sqrt(np.einsum("rd,rd->r", rows, rows))
    return np.asarray(
        (slope * np.minimum(1.0, clip / np.maximum(length, 1e-300)))[..., None] * rows
    )


def start_of(loss: str, runs: int, width: int, place: Stream) -> Floats:
    """Return where runs begin: 0 for means, a little noise otherwise, as the author's code does."""
    if loss == "mean":
        return np.zeros((runs, width))
    draws = [place.at("start", run).generator().standard_normal(width) for run in range(runs)]
    return 0.01 * np.stack(draws)


def best(course: Course) -> int:
    """Return which step size has the least mean last loss; what is not finite is never best."""
    final = course.values[-1].mean(axis=1)
    return int(np.argmin(np.where(np.isfinite(final), final, math.inf)))
