"""Which actions to play, and how often: an approximate G-optimal design (000 Lemma 6.3.2).

Kiefer and Wolfowitz: over the weights w of a set of actions with an m-dimensional span, the least
value of the largest leverage max_a a' V(w)^+ a, V(w) = sum w_a a a', is m. Twice that is enough
here, and is reached by few actions: 2 or 3 in the plane.
"""

from dataclasses import dataclass

import numpy as np

from raydp_sim.errors import InputError, bad_field
from raydp_sim.tasks.bandits.checks import Floats, Ints

_RANK = 1e-9
_LEAST_WEIGHT = 1e-12


@dataclass(frozen=True, eq=False)
class Design:
    """Weights of some of the actions.

    Attributes:
        index: which actions, ascending.
        weights: of each; they add up to 1.
        leverage: max over all actions of a' V^+ a.
        rank: m, of the span of all actions.
    """

    index: Ints
    weights: Floats
    leverage: float
    rank: int


def spanned(actions: Floats) -> Floats:
    """Return an orthonormal basis of the span of the rows, as columns.

    Example:
        >>> spanned(np.array([[0.5, 0.5], [1.0, 1.0]])).shape
        (2, 1)
    """
    return _factors(actions)[1]


def _factors(actions: Floats) -> tuple[Floats, Floats]:
    """Return the actions as rows of orthonormal columns, and an orthonormal basis of their span.

    Leverage is the same for both, but actions that are close to one another make V singular up to
    rounding, and these rows do not.
    """
    left, singular, right = np.linalg.svd(actions, full_matrices=False)
    rank = int((singular > _RANK * max(1.0, float(singular[0]))).sum())
    if rank == 0:
        raise InputError("actions are all zero; give at least one that is not")
    return np.asarray(left[:, :rank]), np.asarray(right[:rank].T)


def greedy_basis(rows: Floats, count: int) -> list[int]:
    """Return so many rows, each the farthest from the span of those before it."""
    rest, chosen = rows.copy(), []
    for _ in range(count):
        j = int((rest**2).sum(axis=1).argmax())
        chosen.append(j)
        unit = rest[j] / np.linalg.norm(rest[j])
        rest -= np.outer(rest @ unit, unit)
    return chosen


def core_set(actions: Floats, factor: float = 2.0) -> Design:
    """Return a design whose largest leverage is at most factor times the rank m.

    From a greedy basis, Frank and Wolfe's steps towards the action of largest leverage, each with
    the exact line search for log det V (Fedorov 1972). Deterministic; among actions of one length,
    as on a circle, rounding decides where it begins, and one instance's regret may hang on that.

    Args:
        actions: one per row.
        factor: > 1.

    Example:
        >>> design = core_set(np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]))
        >>> design.index.tolist(), design.weights.tolist(), design.rank
        ([0, 2], [0.5, 0.5], 2)
    """
    if not factor > 1.0:
        raise bad_field("factor", factor, "it must be > 1")
    rows, basis = _factors(actions)
    m = rows.shape[1]
    weights = np.zeros(len(rows))
    weights[greedy_basis(actions @ basis, m)] = 1.0 / m
    while True:
        leverage = _leverages(rows, weights)
        j = int(leverage.argmax())
        largest = float(leverage[j])
        if largest <= factor * m + 1e-12:
            break
        step = (largest / m - 1.0) / (largest - 1.0)
        weights *= 1.0 - step
        weights[j] += step
    index = np.flatnonzero(weights >= _LEAST_WEIGHT)
    kept = weights[index] / weights[index].sum()
    return Design(index, kept, largest, m)


def uniform_design(actions: Floats) -> Design:
    """Return all actions with equal weights: what the text calls no core set.

    Example:
        >>> round(uniform_design(np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])).leverage, 4)
        2.46
    """
    rows, _ = _factors(actions)
    weights = np.full(len(rows), 1.0 / len(rows))
    largest = float(_leverages(rows, weights).max())
    return Design(np.arange(len(rows)), weights, largest, rows.shape[1])


def _leverages(rows: Floats, weights: Floats) -> Floats:
    inverse = np.linalg.inv((rows * weights[:, None]).T @ rows)
    return np.asarray(((rows @ inverse) * rows).sum(axis=1))
