"""Least squares in the span of what was played, and what it eliminates (000 Section 6.3)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raydp_sim.tasks.bandits.checks import Floats, Ints

# Singular values of sqrt(n_a) a below this share of the largest are rounding: the design keeps
# directions down to 1e-9, which its weights may shrink by a factor of 100 or so.
_RANK = 1e-12
_OUTSIDE = 1e-8


@dataclass(frozen=True, eq=False)
class Regression:
    """Least squares for known counts: V = sum of n_a a a', of which only V^+ matters.

    Attributes:
        played: the actions of the batch, one per row.
        counts: rewards of each that came; those without any play no part.
        half: pseudo-inverse of the rows sqrt(n_a) a, which is half of V^+: their product with their
            own transpose. Its condition is the square root of V's, so that close actions stay
            apart.
    """

    played: Floats
    counts: Ints
    half: Floats

    def estimate(self, sums: Floats) -> Floats:
        """Return theta = V^+ sum of r_a a.

        Args:
            sums: of the rewards of each action, noise included; leading axes are repetitions.
        """
        came = np.where(self.counts > 0, sums, 0.0) / np.sqrt(np.maximum(self.counts, 1))
        return np.asarray(came @ self.half.T)

    def leverage(self, actions: Floats) -> float:
        """Return the largest a' V^+ a: the variance of <a, theta> is at most that."""
        return float(((actions @ self.half) ** 2).sum(axis=1).max())

    def spans(self, actions: Floats) -> bool:
        """Say whether every action is a combination of those with rewards."""
        shares = self.played[self.counts > 0]
        if not len(shares):
            return False
        _, singular, right = np.linalg.svd(shares, full_matrices=False)
        basis = right[singular > _RANK * singular[0]]
        outside = actions - actions @ basis.T @ basis
        return bool(np.linalg.norm(outside, axis=1).max() <= _OUTSIDE)


def regression(played: Floats, counts: Ints) -> Regression:
    """Prepare least squares for actions with their counts.

    V is singular where the active actions span less than the space: then in their span.

    Example:
        >>> found = regression(np.array([[1.0, 0.0], [0.0, 0.5]]), np.array([4, 4]))
        >>> found.estimate(np.array([2.0, 1.0])), found.leverage(np.eye(2))
        (array([0.5, 0.5]), 1.0)
    """
    root = np.sqrt(counts.astype(np.float64))[:, None] * played
    return Regression(played, counts, np.asarray(np.linalg.pinv(root, rcond=_RANK), np.float64))


def survivors(actions: Floats, theta: Floats, radius: float) -> NDArray[np.bool_]:
    """Say which active actions stay: <a, theta> at least the largest less twice the radius.

    The largest is over the active actions: over all of them, none might stay.

    Args:
        actions: active ones, one per row.
        theta: estimates; leading axes are repetitions.
        radius: of confidence.

    Example:
        >>> survivors(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.9, 0.1]), 0.3)
        array([ True, False])
    """
    values = theta @ actions.T
    return np.asarray(values >= values.max(axis=-1, keepdims=True) - 2.0 * radius)
