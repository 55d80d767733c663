"""What is made of estimated frequencies: distributions, their errors, and what stands out."""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Floats
from raydp_sim.random import Stream

Repair = Literal["raw", "clip", "simplex"]
"""An estimate as it is, which is unbiased; negative entries set to 0 and the rest scaled to add up
to 1; or the nearest distribution."""

# Drawn estimates by which the errors of repaired ones are predicted.
_DRAWS = 64


def repaired(estimate: Floats, how: Repair) -> Floats:
    """Return an estimate, or the distribution that is made of it, which is biased.

    Example:
        >>> repaired(np.array([0.75, 0.5, -0.25]), "clip").tolist()
        [0.6, 0.4, 0.0]
        >>> repaired(np.array([0.75, 0.5, -0.25]), "simplex").tolist()
        [0.625, 0.375, 0.0]
    """
    if how == "raw":
        return estimate
    if how == "clip":
        kept = np.maximum(estimate, 0.0)
        total = float(kept.sum())
        return np.asarray(kept / total if total > 0.0 else np.full_like(kept, 1.0 / len(kept)))
    # Duchi et al. 2008: subtract what makes the positive part add up to 1.
    falling = np.sort(estimate)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(falling) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.asarray(np.maximum(estimate - excess[last], 0.0))


class Errors(NamedTuple):
    """How far an estimate is off.

    Attributes:
        l1: sum of absolute differences.
        l2: sum of squared differences.
    """

    l1: float
    l2: float


def errors(estimate: Floats, truth: Floats) -> Errors:
    """Return the errors of one estimate.

    Example:
        >>> errors(np.array([0.5, 0.5]), np.array([0.75, 0.25]))
        Errors(l1=0.5, l2=0.125)
    """
    off = estimate - truth
    return Errors(float(np.abs(off).sum()), float((off**2).sum()))


def predicted(share: Floats, variance: Floats, how: Repair) -> Errors:
    """Return the expected errors of an estimate whose entries have these means and variances.

    The raw estimate's l2 is exact and its l1 that of normal errors. Of repaired ones both are means
    of 64 estimates with independent normal errors, always the same ones; the repaired estimate may
    be off by less or more, but that on the simplex is never further off than the raw one.

    Example:
        >>> predicted(np.array([0.5, 0.5]), np.array([0.01, 0.01]), "raw").l2
        0.02
    """
    if how == "raw":
        l1 = float(np.sqrt(variance).sum()) * math.sqrt(2.0 / math.pi)
        return Errors(l1, float(variance.sum()))
    normal = Stream(7).at("predicted").generator().standard_normal((_DRAWS, len(share)))
    drawn = share + normal * np.sqrt(variance)
    found = [errors(repaired(one, how), share) for one in drawn]
    return Errors(*(float(np.mean(each)) for each in zip(*found, strict=True)))


def radius(span: float, categories: int, reports: int, beta: float = 0.05) -> float:
    """Return what all errors of an estimate stay within, but for a probability of beta.

    Hoeffding's inequality for each of k means of `reports` entries, each of which varies by `span`
    at most; for 'hadamard-bit' that is c sqrt(2 log(2k/beta)/n). The mean of the largest error is
    at most that with beta = 1.

    Example:
        >>> c = 1.0 / math.tanh(0.5)
        >>> round(radius(2.0 * c, 100, 20_000, beta=1.0), 4)
        0.0498
    """
    return span * math.sqrt(math.log(2.0 * categories / beta) / (2.0 * reports))


def heavy_hitters(estimate: Floats, threshold: float) -> NDArray[np.int64]:
    """Return the categories whose estimate reaches a threshold, the most frequent first.

    With the threshold phi + `radius`, all have a frequency of phi at least, and those of phi + 2
    `radius` are all there, but for a probability of beta.

    Example:
        >>> heavy_hitters(np.array([0.1, 0.0, 0.3]), 0.05).tolist()
        [2, 0]
    """
    found = np.flatnonzero(estimate >= threshold)
    return np.asarray(found[np.argsort(-estimate[found], kind="stable")])


class Scores(NamedTuple):
    """How well heavy hitters were found; 1 where there was nothing to find or to be wrong about.

    Attributes:
        precision: share of those found whose frequency is at least the threshold.
        recall: share of those with such a frequency that were found.
    """

    precision: float
    recall: float


def scores(found: NDArray[np.int64], truth: Floats, threshold: float) -> Scores:
    """Compare what was found with the true frequencies.

    Example:
        >>> scores(np.array([2, 0]), np.array([0.04, 0.16, 0.8]), 0.1)
        Scores(precision=0.5, recall=0.5)
    """
    heavy = truth >= threshold
    right = int(heavy[found].sum())
    return Scores(
        right / len(found) if len(found) else 1.0, right / int(heavy.sum()) if heavy.any() else 1.0
    )
