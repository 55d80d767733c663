"""Softmax regression."""

from typing import Any, ClassVar

import numpy as np

from raydp_sim import kernels
from raydp_sim.datasets.labelled import BYTE, Chosen
from raydp_sim.kernels.types import Floats32
from raydp_sim.models.base import Classifier, Network, Part, Slope
from raydp_sim.random import Stream


class LinearNetwork(Network):
    """Logits W x + b of flattened features.

    Gradients are computed by a kernel of ours, so that they are the same whatever BLAS there is. On
    other ways products are one small GEMM per client: NumPy's three-dimensional matmul multiplies
    client by client, so a row does not depend on the company it is in.
    """

    # Nothing is gathered.
    at_once = 1 << 16

    def __init__(self, width: int, classes: int) -> None:
        self.width, self.classes = width, classes
        super().__init__((Part("weight", (classes, width)), Part("bias", (classes,))))

    def init(self, stream: Stream) -> Floats32:
        """Start at zero: the loss is convex."""
        return np.zeros(self.size, np.float32)

    def forward(self, theta: Floats32, features: Floats32) -> tuple[Floats32, Any]:
        """Return W x + b; the tape is the flattened features."""
        flat = features.reshape(*features.shape[:2], self.width)
        weight, bias = self._split(theta)
        logits = np.matmul(flat, weight.swapaxes(-1, -2))
        logits += bias
        return logits, flat

    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, out: Floats32 | None = None
    ) -> Floats32:
        """Return sum over samples of slope x and of slope."""
        found = np.empty((len(slopes), self.size), slopes.dtype) if out is None else out
        weight = found[:, : -self.classes].reshape(len(slopes), self.classes, self.width)
        np.matmul(slopes.swapaxes(1, 2), tape, out=weight)
        np.sum(slopes, axis=1, out=found[:, -self.classes :])
        return found

    def slope(
        self, theta: Floats32, chosen: Chosen, weights: Floats32, out: Floats32 | None = None
    ) -> Slope:
        """Compute everything in one pass over the samples, where they are."""
        found = np.empty((len(weights), self.size), np.float32) if out is None else out
        numbers, labels = chosen.numbers, chosen.labels
        made = kernels.softmax(chosen.pool, numbers, BYTE, labels, weights, theta, found)
        losses = ((np.log(made.total) - made.below) * weights).sum(axis=1)
        return Slope(losses, found, made.right)

    def _split(self, theta: Floats32) -> tuple[Floats32, Floats32]:
        cut = self.classes * self.width
        weight = theta[..., :cut].reshape(*theta.shape[:-1], self.classes, self.width)
        bias = theta[..., cut:]
        return weight, bias[..., None, :] if theta.ndim == 2 else bias


class Linear(Classifier):
    """Softmax regression: convex, needs no torch, starts at zero.

    Example:
        >>> Linear().network((28, 28), 10).size
        7850
    """

    kind: ClassVar[str] = "linear"
    examples: ClassVar[tuple[tuple[dict[str, Any], tuple[int, ...]], ...]] = (({}, (3, 4)),)

    def network(self, shape: tuple[int, ...], classes: int) -> Network:
        """Return the regression on flattened features."""
        return LinearNetwork(int(np.prod(shape)), classes)
