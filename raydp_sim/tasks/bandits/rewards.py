"""The range of rewards, and the Laplace noise that hides one of them."""

import math
from dataclasses import dataclass

import numpy as np

from raydp_sim.errors import InputError, bad_field
from raydp_sim.tasks.bandits.checks import Floats


@dataclass(frozen=True)
class RewardRange:
    """Rewards are clipped into [low, high] by the client, so that one moves a sum by its width.

    The text adds Lap(1/epsilon) to rewards in [-1, 1] as if their sensitivity were 1; it is 2, and
    that noise is 2 epsilon-DP. `sensitivity=1` plays the text, and its true loss is reported.

    Attributes:
        low, high: within [-1, 1] (000 Assumption 6.2.1).
        sensitivity: that the noise is scaled by; None: the width, which is right.

    Example:
        >>> RewardRange().scale(0.5), RewardRange(sensitivity=1.0).scale(0.5)
        (4.0, 2.0)
        >>> RewardRange(sensitivity=1.0).loss(0.5), RewardRange(0.0, 1.0).loss(0.5)
        (1.0, 0.5)
    """

    low: float = -1.0
    high: float = 1.0
    sensitivity: float | None = None

    def __post_init__(self) -> None:
        if not -1.0 <= self.low < self.high <= 1.0:
            place = f"[{self.low:g}, {self.high:g}]"
            raise InputError(f"rewards are in {place}; low < high must both lie in [-1, 1]")
        if self.sensitivity is not None and not 0.0 < self.sensitivity < math.inf:
            remedy = "it must be > 0; leave it out for the width of the range"
            raise bad_field("rewards.sensitivity", self.sensitivity, remedy)

    @property
    def width(self) -> float:
        """How far apart two rewards can be."""
        return self.high - self.low

    def scale(self, epsilon: float) -> float:
        """Return the scale of Laplace noise that is meant to have the loss epsilon."""
        return (self.width if self.sensitivity is None else self.sensitivity) / epsilon

    def loss(self, epsilon: float) -> float:
        """Return the loss that noise of `scale(epsilon)` has in truth: width over scale."""
        if self.sensitivity is None:
            return epsilon  # exactly, whatever rounding would say
        return epsilon * self.width / self.sensitivity

    def clip(self, rewards: Floats) -> tuple[Floats, int]:
        """Return rewards in the range, and how many were not.

        Example:
            >>> RewardRange().clip(np.array([0.5, 3.0]))
            (array([0.5, 1. ]), 1)
        """
        if not np.isfinite(rewards).all():
            raise InputError("rewards are not all finite; a client must send a number")
        inside = np.clip(rewards, self.low, self.high)
        return inside, int((inside != rewards).sum())
