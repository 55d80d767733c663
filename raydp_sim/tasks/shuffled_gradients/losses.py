"""Losses of one record: gradients one by one, and what the privacy bound asks of them.

A clipped gradient of each is that of a convex function no less smooth (Huber's), so that a clipped
step of size <= 2/L is still non-expansive; for losses that are no function of <x, a> clipping may
break that.
"""

from typing import Any, Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim.errors import bad_field

Floats = NDArray[np.float64]
LossName = Literal["mean", "ridge", "logistic"]


def check_records(loss: LossName, features: Any, targets: Any) -> tuple[Floats, Floats]:
    """Return records as (n, d) features and (n,) targets; those of `mean` have none (zeros).

    Example:
        >>> check_records("logistic", [[1.0]], [-1.0])
        Traceback (most recent call last):
            ...
        raydp_sim.errors.InputError: targets is -1.0; logistic loss needs labels 0 and 1
    """
    if loss not in get_args(LossName):
        raise bad_field("loss", loss, f"choose one of {', '.join(get_args(LossName))}")
    x = np.ascontiguousarray(features, dtype=np.float64)
    if x.ndim != 2 or not np.isfinite(x).all():
        raise bad_field("features", x.shape, "give finite rows, one record each")
    y = np.zeros(len(x)) if loss == "mean" else np.asarray(targets, dtype=np.float64)
    if y.shape != (len(x),) or not np.isfinite(y).all():
        raise bad_field("targets", y.shape, "give one finite number per record")
    if loss == "logistic" and not np.isin(y, (0.0, 1.0)).all():
        wrong = y[~np.isin(y, (0.0, 1.0))][0]
        raise bad_field("targets", wrong, "logistic loss needs labels 0 and 1")
    return x, y


def values(loss: LossName, point: Floats, features: Floats, targets: Floats) -> Floats:
    """Return f(x; record) for all records.

    mean: |x - q|^2 / 2. ridge: (<x, a> - y)^2. logistic: log(1 + e^<x, a>) - y <x, a>, for y in
    {0, 1} (the text says +-1).
    """
    if loss == "mean":
        return np.asarray(0.5 * np.square(features - point).sum(axis=1))
    score = features @ point
    if loss == "ridge":
        return np.asarray(np.square(score - targets))
    return np.asarray(np.logaddexp(0.0, score) - targets * score)


def slopes(loss: LossName, scores: Floats, targets: Floats) -> Floats:
    """Return f'(<x, a>) of losses that are functions of <x, a>: the gradient is that times a."""
    if loss == "ridge":
        return 2.0 * (scores - targets)
    return np.asarray(scipy.special.expit(scores) - targets)


def gradient(loss: LossName, point: Floats, feature: Floats, target: float) -> Floats:
    """Return the gradient for one record."""
    if loss == "mean":
        return point - feature
    score = float(feature @ point)
    if loss == "ridge":
        return 2.0 * (score - target) * feature
    return (float(scipy.special.expit(score)) - target) * feature


def smoothness(loss: LossName, features: Floats) -> Floats:
    """Return L_i of every record: 1, 2 |a|^2 and |a|^2 / 4."""
    if loss == "mean":
        return np.ones(len(features))
    squares = np.square(features).sum(axis=1)
    return np.asarray(2.0 * squares if loss == "ridge" else 0.25 * squares)
