"""PATE's GNMax: the majority of votes with Gaussian noise on their counts."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy
from pydantic import Field

from raydp_sim.mechanisms.ballot import Ballot
from raydp_sim.mechanisms.base import Floats, Positive
from raydp_sim.mechanisms.ensembles.gnmax import least_sigma
from raydp_sim.privacy.curves.gaussian import gaussian_sigma
from raydp_sim.privacy.events import CentralRelease, GaussianRelease


class GNMax(Ballot):
    """Release argmax (n_i + N(0, sigma^2)) of the counts of votes for 0 and for 1.

    Papernot et al. 2018; the baseline of Jiang 2025 (004). Votes need not be private. Neighbours
    replace all data of one voter, which moves one vote from one class to the other: the counts are
    sqrt(2) apart. That is another unit than that of 'darrm', whose neighbours differ in a record.

    Fields:
        epsilon: guarantee of one release. Exactly one of this and `target`.
        delta: in (0, 1), with epsilon; a target's delta is shared out instead.
        calibration: `seed`, the least sigma by Renyi divergence, as printed; `exact`, by the
            noise's own curve (Balle & Wang 2018), which is less.

    Example:
        >>> round(GNMax(clients=11, epsilon=0.2676, delta=0.0003).sigma, 2)
        21.46
    """

    kind: ClassVar[str] = "gnmax"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only"]] = "approximate"
    epsilon_field: ClassVar[str] = "epsilon"
    delta_field: ClassVar[str | None] = "delta"
    source: ClassVar[str] = "Papernot et al. 2018"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"clients": 21, "epsilon": 1.0, "delta": 1e-3},
        {"clients": 21, "epsilon": 0.5, "delta": 1e-3, "calibration": "exact"},
    )

    epsilon: Positive | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    calibration: Literal["seed", "exact"] = "seed"

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of the noise on each count."""
        epsilon, delta = self.need_epsilon(), self.need_delta()
        if self.calibration == "seed":
            return least_sigma(epsilon, delta)[0]
        return gaussian_sigma(epsilon, delta, math.sqrt(2.0))

    @property
    def order(self) -> float:
        """The order at which `seed` finds sigma."""
        return least_sigma(self.need_epsilon(), self.need_delta())[1]

    def law(self) -> Floats:
        """Return Pr[1 | tally]: the difference of two counts has noise of sqrt(2) sigma."""
        margin = 2.0 * np.arange(self.voters + 1) - self.voters
        return np.asarray(scipy.special.ndtr(margin / (math.sqrt(2.0) * self.sigma)))

    def event(self) -> CentralRelease:
        """Return the release's guarantee, (epsilon, delta)."""
        return CentralRelease(self.need_epsilon(), self.need_delta())

    def release(self) -> GaussianRelease:
        """Return the noise in units of the sensitivity; the argmax is post-processing."""
        return GaussianRelease(self.sigma * (1.0 - 1e-12) / math.sqrt(2.0))
