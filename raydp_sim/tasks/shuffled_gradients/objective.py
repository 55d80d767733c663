"""What is minimised: G(x) = mean f(x; record) + psi(x), its least value, and a ceiling on it."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.tasks.shuffled_gradients import losses, regularisers
from raydp_sim.tasks.shuffled_gradients.losses import LossName
from raydp_sim.tasks.shuffled_gradients.regularisers import RegulariserName

Floats = NDArray[np.float64]
_MOST, _STILL = 20_000, 1e-13


class Problem(NamedTuple):
    """Records and what is to be made small over them.

    Attributes:
        loss: of a record.
        regulariser: psi.
        weight: of psi.
        features: (n, d).
        targets: (n,); zeros where a loss has none.
    """

    loss: LossName
    regulariser: RegulariserName
    weight: float
    features: Floats
    targets: Floats

    def value(self, point: Floats) -> float:
        """Return G(x)."""
        fitted = losses.values(self.loss, point, self.features, self.targets)
        return float(fitted.mean()) + regularisers.value(self.regulariser, self.weight, point)

    def values(self, points: Floats) -> Floats:
        """Return G of many points (..., d)."""
        flat = points.reshape(-1, points.shape[-1])
        return np.array([self.value(point) for point in flat]).reshape(points.shape[:-1])

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient of F, the mean loss."""
        if self.loss == "mean":
            return np.asarray(point - self.features.mean(axis=0))
        slope = losses.slopes(self.loss, self.features @ point, self.targets)
        return np.asarray(slope @ self.features / len(self.features))

    def least(self) -> tuple[Floats, float]:
        """Return x* and G(x*), by accelerated proximal steps of size 1/L (Beck & Teboulle 2009).

        Example:
            >>> row = np.array([[3.0, 4.0]])
            >>> x, value = Problem("mean", "ball", 1.0, row, np.zeros(1)).least()
            >>> np.round(x, 6).tolist(), round(value, 6)
            ([0.6, 0.8], 8.0)
        """
        step = 1.0 / float(losses.smoothness(self.loss, self.features).mean())
        x = ahead = np.zeros(self.features.shape[1])
        pace = 1.0
        for _ in range(_MOST):
            moved = ahead - step * self.gradient(ahead)
            new = regularisers.prox(self.regulariser, self.weight, moved, step, 1)
            apart = float(np.abs(new - x).max())
            faster = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * pace * pace))
            ahead = new + (pace - 1.0) / faster * (new - x)
            if float((moved - new) @ (new - x)) > 0.0 and apart > 0.0:
                ahead, faster = new, 1.0  # it went past the valley: start anew
            x, pace = new, faster
            if apart <= _STILL * (1.0 + float(np.abs(x).max())):
                break
        return x, self.value(x)


def ceiling(problem: Problem, start: Floats, step: float, epochs: int, sigma: float) -> float:
    """Return what the excess risk of DP-ShuffleG is at most: Corollary 4.5.1 of 004.

    |x_1 - x*|^2/(eta n K) + 10 eta^2 n^2 s L (1 + ln K) + 12 eta^2 n d sigma^2 L* (1 + ln K), s the
    mean squared gradient at x*. A sanity check with much slack, no prediction.

    Args:
        problem: over the private records.
        start: x_1.
        step: eta, at most 1/(2 n sqrt(10 L L* (1 + ln K))) or nothing is proved.
        epochs: K.
        sigma: of the noise of a step.
    """
    best, _ = problem.least()
    n, d = problem.features.shape
    smooth = losses.smoothness(problem.loss, problem.features)
    at = [
        losses.gradient(problem.loss, best, row, float(target))
        for row, target in zip(problem.features, problem.targets, strict=True)
    ]
    spread = float(np.square(at).sum(axis=1).mean())
    logs = 1.0 + math.log(epochs)
    apart = float(np.square(start - best).sum())
    return float(
        apart / (step * n * epochs)
        + 10.0 * step**2 * n**2 * spread * float(smooth.mean()) * logs
        + 12.0 * step**2 * n * d * sigma**2 * float(smooth.max()) * logs
    )
