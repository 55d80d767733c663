"""What a run is asked for: the estimate that a reader makes public, and how far noise moves it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Mechanism

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A vector, or a histogram of categories.

    Attributes:
        values: one number per coordinate or category.
        standard_error: of each, by the mechanism's own formula and the reports that came. It is
            that of the noise, given who took part: how far those are from the population is not in
            it. Not a number where nothing is known of it.
    """

    values: Floats
    standard_error: Floats


def usual_estimate(public: Arrays) -> Estimate | None:
    """Return what is known under the usual names; None where a reader publishes nothing of it.

    `running`, the mean over the releases so far, goes before `estimate`, that of one release;
    `standard_error` belongs to whichever is returned.

    Example:
        >>> usual_estimate({"estimate": np.array([0.5])}).standard_error
        array([nan])
    """
    values = public.get("running", public.get("estimate"))
    if values is None or values.ndim != 1:
        return None
    error = public.get("standard_error")
    unknown = np.full(len(values), np.nan)
    return Estimate(np.asarray(values, np.float64), unknown if error is None else error)


def noise_variance(mechanism: Mechanism, mean: Floats, reports: int, weight: float) -> Floats:
    """Return the variance of a decoded mean, by coordinate; not a number if it is not known.

    Args:
        mechanism: that the reports were randomized with.
        mean: as decoded, and divided by the weight.
        reports: that were decoded.
        weight: mean weight of the reports, that the estimate was divided by.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> laplace = make("laplace", epsilon_local=1.0, dimension=1, radius=1.0)
        >>> round(float(noise_variance(laplace, np.zeros(1), 8, 1.0)[0]), 6)
        1.0
    """
    try:
        return mechanism.variance(mean, max(1, reports)) / weight**2
    except NotImplementedError:
        return np.full(len(mean), np.nan)  # a mechanism of the user's own need not know its error
