"""One local step of DP-AdaPeD: a personal model, and noisy moves of the common one and of psi."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels.types import Floats32
from raydp_sim.mechanisms.walk import Walk
from raydp_sim.models.base import Network, Slope
from raydp_sim.models.losses import cross_entropy, divergence
from raydp_sim.tasks.learning.local import Own, lengths
from raydp_sim.tasks.learning.runaway import refuse_gradients

Floats = NDArray[np.float64]

DIRECTION, PSI = 0, 1
"""The parts of a noisy step."""


class Public(NamedTuple):
    """What every client of a round is told: the common model, psi, and the round."""

    mu: Floats32
    psi: float
    rounds: int


class Stepped(NamedTuple):
    """Where a step has led.

    Attributes:
        theta: the personal models after it.
        found: their loss and its gradient before it.
        lengths: of the common model's directions, before they are clipped.
    """

    theta: Floats32
    found: Slope
    lengths: Floats32


class Apart(NamedTuple):
    """A divergence of two models' predictions, with its slopes in the logits of each."""

    values: Floats32
    personal: Floats32
    common: Floats32


class Rule(NamedTuple):
    """How steps are taken.

    Attributes:
        sizes: of steps of theta, mu and psi.
        psi_least: that psi is kept above.
        divergence: of the two models' predictions.
        loss: of a personal model: the mean of its samples' losses, or their sum.
    """

    sizes: tuple[float, float, float]
    psi_least: float
    divergence: Literal["forward", "reverse"]
    loss: Literal["mean", "sum"] = "mean"

    def most(self, psi: float) -> float:
        """Return the sum of directions by which psi has moved down to its least value."""
        return (psi - self.psi_least) / self.sizes[2]

    def step(
        self,
        network: Network,
        told: Public,
        own: Own,
        theta: Floats32,
        walk: Walk,
        rows: slice,
    ) -> Stepped:
        """Take one local step of some clients.

        In this order: theta; mu, at the new theta; psi, at the new theta and the new, noisy mu.

        Raises:
            RunError: a loss or a gradient is not a number, or beyond all measure.
        """
        features, labels = own.chosen.features, own.chosen.labels
        weights = own.weights[..., None]
        mu, psi = self.copies(told, walk.total[rows])
        common, common_tape = network.forward(mu, features)
        logits, tape = network.forward(theta, features)
        pull = self.apart(logits, common).personal / (2.0 * psi)[:, None, None]
        loss = cross_entropy(logits, labels)
        slopes = (loss.slopes + pull) * weights
        if self.loss == "sum":
            slopes = loss.slopes * (weights > 0.0) + pull * weights
        gradient = network.backward(theta, tape, slopes.astype(np.float32))
        right = logits.argmax(axis=-1) == labels
        found = Slope((loss.values * own.weights).sum(axis=1), gradient, right)
        theta = theta - np.float32(self.sizes[0]) * gradient
        logits, _ = network.forward(theta, features)
        slopes = self.apart(logits, common).common * weights / (2.0 * psi)[:, None, None]
        direction = network.backward(mu, common_tape, slopes.astype(np.float32))
        norms = lengths(direction)
        # Before noise is added: what is no number is never randomized.
        refuse_gradients(found.losses, norms, told.rounds, "task.step_sizes")
        walk.step(DIRECTION, direction, rows)
        mu, psi = self.copies(told, walk.total[rows])
        common, _ = network.forward(mu, features)
        apart = (self.apart(logits, common).values * own.weights).sum(axis=1)
        slope = 1.0 / (2.0 * psi) - apart / (2.0 * psi * psi)
        refuse_gradients(found.losses, np.abs(slope), told.rounds, "task.step_sizes")
        walk.step(PSI, slope[:, None], rows)
        return Stepped(theta, found, norms)

    def apart(self, personal: Floats32, common: Floats32) -> Apart:
        """Return how far the two models' predictions are apart."""
        if self.divergence == "forward":
            found = divergence(common, personal)
            return Apart(found.values, found.q_slopes, found.p_slopes)
        return Apart(*divergence(personal, common))

    def copies(self, told: Public, total: Floats) -> tuple[Floats32, Floats]:
        """Return the clients' copies of mu and psi, from where noisy steps have led."""
        mu = told.mu - self.sizes[1] * total[:, :-1]
        psi = told.psi - self.sizes[2] * total[:, -1]
        return mu.astype(np.float32), np.maximum(self.psi_least, psi)
