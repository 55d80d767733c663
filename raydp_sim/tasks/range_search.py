"""The bins in which "user-mean" looks for the clients' means, and how wide they have to be."""

import math
from dataclasses import dataclass

import numpy as np

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.base import LIMITS, Counts, Floats, Mechanism
from raydp_sim.mechanisms.parts.rotation import padded_dimension
from raydp_sim.mechanisms.projected_mean import ProjectedMean
from raydp_sim.mechanisms.user_range import MOST_BINS
from raydp_sim.tasks.base import Arrays


@dataclass(frozen=True)
class Grid:
    """The bins of the range search, the same for every coordinate.

    Attributes:
        coordinates: D, the padded dimension of the rotation (1 for numbers, which need none).
        half: the search interval of a coordinate is [-half, half].
        tau: half the width of a bin; with probability 1 - gamma no client's mean is further than
            that from the true one, in any coordinate.
    """

    coordinates: int
    half: float
    tau: float

    @property
    def bins(self) -> int:
        """Bins that cover the interval."""
        return max(1, math.ceil(self.half / self.tau))

    def bin_of(self, x: Floats) -> Floats:
        """Return the number of the bin that each value is in."""
        return np.clip(np.floor((x + self.half) / (2.0 * self.tau)), 0.0, self.bins - 1.0)

    def centre_of(self, bins: Counts) -> Floats:
        """Return the centres of some bins."""
        return np.asarray(-self.half + self.tau * (2.0 * bins + 1.0))

    @classmethod
    def published(cls, public: Arrays) -> "Grid":
        """Return the grid that a state or a broadcast names."""
        return cls(len(public["centre"]), float(public["half"]), float(public["tau"]))


def search_grid(mechanism: Mechanism, samples: int, sigma: float, gamma: float) -> Grid:
    """Return the bins for clients' means of so many samples.

    tau = sigma sqrt(2 log(2 n D / gamma) / samples): a union bound over n clients and D rotated
    coordinates, each mean being sub-Gaussian with proxy sigma^2 / samples.

    Args:
        mechanism: of the scenario, "projected-mean" without a range of its own.
        samples: of each client.
        sigma: sub-Gaussian scale of a sample.
        gamma: probability that some client's mean is further than tau from the true one.
    """
    base = _projected(mechanism)
    d = base.need_dimension()
    if base.clients is None:
        raise InputError("task 'user-mean' needs the number of clients; give clients=n")
    full = padded_dimension("hadamard", d)
    tau = sigma * math.sqrt(2.0 * math.log(2.0 * base.clients * full / gamma))
    # A rotated coordinate is at most the l2 norm.
    grid = Grid(full, base.radius * math.sqrt(d), tau / math.sqrt(samples))
    if grid.half > LIMITS[1]:
        remedy = f"rotated, values reach {grid.half:g}, beyond {LIMITS[1]:g}; scale the data"
        raise bad_field("mechanism.radius", base.radius, remedy)
    if not LIMITS[0] <= 3.0 * grid.tau <= LIMITS[1]:
        remedy = f"clients' means then lie within {3.0 * grid.tau:g}, and that must be between "
        raise bad_field("task.sigma", sigma, remedy + f"{LIMITS[0]:g} and {LIMITS[1]:g}")
    if grid.bins > MOST_BINS:
        remedy = f"the search takes {grid.bins} bins, at most {MOST_BINS} are allowed; raise it"
        raise bad_field("task.sigma", sigma, remedy + " or lower mechanism.radius")
    return grid


def _projected(mechanism: Mechanism) -> ProjectedMean:
    if not isinstance(mechanism, ProjectedMean):
        remedy = f"task 'user-mean' is answered by mechanism '{ProjectedMean.kind}'"
        raise bad_field("mechanism.kind", mechanism.kind, remedy)
    if mechanism.reach is not None or mechanism.centre != 0.0:
        field = "reach" if mechanism.reach is not None else "centre"
        remedy = "task 'user-mean' finds the range by itself; leave it out"
        raise bad_field(f"mechanism.{field}", getattr(mechanism, field), remedy)
    return mechanism
