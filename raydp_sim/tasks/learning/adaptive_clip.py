"""Clipping to a quantile of the updates' norms that is itself learned in private."""

import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.kernels.types import Floats32
from raydp_sim.model import Model
from raydp_sim.tasks.learning.schedules import Positive

Floats = NDArray[np.float64]


class Split(NamedTuple):
    """A value as a mechanism's ball of some radius holds it: the update's part, and the bit's."""

    update: float
    bit: float


class AdaptiveClip(Model):
    """Andrew et al. 2021, "Differentially private learning with adaptive clipping".

    Each client reports, beside its update clipped to C, whether it was no longer than that; C moves
    towards the norm that a `quantile` of the updates do not exceed, C exp(-rate (share - quantile))
    after every round. The bit is one more coordinate of the very vector that is randomized: the
    update is scaled to the mechanism's radius times sqrt(1 - share), the bit to +-radius
    sqrt(share), so the vector stays in the ball and the mechanism's guarantee, whatever it is,
    covers both. Nothing else is released.

    Fields:
        quantile: of the updates' norms, that C is led to.
        rate: of its geometric moves.
        share: of the squared radius that the bit takes.
        least, most: what C is kept between.

    Example:
        >>> round(AdaptiveClip(quantile=0.5, rate=0.2).moved(1.0, share_within=1.0), 6)
        0.904837
    """

    quantile: Annotated[float, Field(ge=0, le=1)] = 0.5
    rate: Positive = 0.2
    share: Annotated[float, Field(gt=0, lt=1)] = 0.01
    least: Positive = 1e-6
    most: Positive = 1e6

    def split(self, radius: float) -> Split:
        """Return how much of the ball's radius update and bit take."""
        return Split(radius * math.sqrt(1.0 - self.share), radius * math.sqrt(self.share))

    def packed(self, updates: Floats32, clip: float, radius: float) -> Floats:
        """Return what is randomized: clipped updates in units of `clip`, and the bit."""
        norms = np.sqrt(np.vecdot(updates, updates)).astype(np.float64)
        parts = self.split(radius)
        # A hair inside, so that rounding never has anything clipped again.
        scale = parts.update * (1.0 - 1e-9) / np.maximum(norms, clip)
        bits = np.where(norms <= clip, parts.bit, -parts.bit) * (1.0 - 1e-9)
        return np.column_stack([updates * scale[:, None], bits])

    def unpacked(self, mean: Floats, clip: float, radius: float) -> tuple[Floats, float]:
        """Return the mean update and the share of updates within C, as estimated."""
        parts = self.split(radius)
        return mean[:-1] * (clip / parts.update), float(0.5 + 0.5 * mean[-1] / parts.bit)

    def moved(self, clip: float, share_within: float) -> float:
        """Return C after a round."""
        shift = min(2.0, max(-1.0, share_within)) - self.quantile
        return min(self.most, max(self.least, clip * math.exp(-self.rate * shift)))
