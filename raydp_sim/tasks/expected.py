"""What a task expects of its estimates before a run, from the mechanism's own formula."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from raydp_sim.mechanisms.base import Domain, Floats, Mechanism


@dataclass(frozen=True)
class Expected:
    """Expected squared l2 errors.

    Attributes:
        release: of the estimate of one release, the last one where releases differ.
        run: of the estimate that the run ends with.
        exact: whether the formula is exact for the batch expected; if not it is an upper bound.
        note: what is not counted, or when it does not hold; empty if nothing.
        release_score: the score of a release that `release` is the expectation of.
        run_score: the score of the last release that `run` is the expectation of.
    """

    release: float
    run: float
    exact: bool
    note: str = ""
    release_score: str = "squared_error_cohort"
    run_score: str = "running_squared_error"


@dataclass(frozen=True)
class Outlook:
    """What a prediction starts from.

    Attributes:
        reports: clients in a batch, on average.
        clients: of whom they are.
        held: what a sample of the clients holds; only a simulation knows.
    """

    reports: float
    clients: int
    held: Any

    @property
    def between(self) -> float:
        """Variance of the mean of a batch, as a part of that of one client.

        Drawn without replacement: (1 - n/N) / n for n of N clients.
        """
        n = max(1.0, self.reports)
        return max(0.0, 1.0 - n / self.clients) / n


def noise_of_mean(mechanism: Mechanism, values: Floats, reports: float) -> tuple[float, bool]:
    """Return the expected squared error of the mean of so many reports, and whether it is exact.

    sum(mse) / n^2 with the error of each value by `Mechanism.mse`, averaged over a sample of the
    values; where a mechanism has no such formula, its worst case is a bound.

    Raises:
        NotImplementedError: the mechanism has neither.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> rr = make("2rr", epsilon_local=1.0)
        >>> found, exact = noise_of_mean(rr, np.zeros((10, 1)), 1000.0)
        >>> f"{found:.6f}", exact
        ('0.000921', True)
    """
    n = max(1.0, reports)
    try:
        if mechanism.where == "aggregator":
            # Its noise does not depend on the values, but on how many there are.
            anything = np.broadcast_to(0.0, (round(n), mechanism.domain.width))
            return float(mechanism.mse(anything).sum()) / n**2, True
        return float(mechanism.mse(values).mean()) / n, True
    except NotImplementedError:
        return mechanism.worst_mse() / n, False


def bias_of(mechanism: Mechanism) -> str:
    """Return what the formula leaves out, in words; empty where it leaves nothing out."""
    return f"bias not counted: {mechanism.bias}" if mechanism.bias else ""


class Moments(NamedTuple):
    """Of what clients hold, as the vectors whose mean is estimated.

    Attributes:
        mean: of the sample.
        spread: variance of one client's vector, summed over coordinates.
    """

    mean: Floats
    spread: float


def moments(domain: Domain, values: Floats) -> Moments:
    """Return mean and spread of a sample; of categories, those of their indicators.

    Example:
        >>> found = moments(Domain("category", 1.0, 3), np.array([[0.0], [2.0]]))
        >>> found.mean.tolist(), found.spread
        ([0.5, 0.0, 0.5], 1.0)
    """
    n = len(values)
    if domain.norm != "category":
        spread = float(values.var(axis=0, ddof=1).sum()) if n > 1 else 0.0
        return Moments(values.mean(axis=0), spread)
    # Counted, for there may be more categories than could be written out.
    first = np.arange(0, domain.dimension, domain.choices)
    seen = np.bincount((values.astype(np.int64) + first).ravel(), minlength=domain.dimension)
    mean = seen / n
    return Moments(mean, float((mean - mean**2).sum()) * n / max(1, n - 1))


def off_centre(kept: Floats, raw: Floats) -> float:
    """Return the squared distance of two means: what clipping does to an estimate."""
    return float(((kept.mean(axis=0) - raw.mean(axis=0)) ** 2).sum())
