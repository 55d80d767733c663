"""What is added to the loss, applied once per epoch by its proximal map.

The map is argmin_z n psi(z) + |z - x|^2 / (2 eta): the factor n stands for the n steps of an epoch.
Maps of convex functions are non-expansive (section 4.5.2 says they need not be).
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import bad_field

Floats = NDArray[np.float64]
RegulariserName = Literal["ball", "l2", "l1"]


def check_regulariser(kind: RegulariserName, weight: float) -> None:
    """Refuse what is none of the three."""
    if kind not in get_args(RegulariserName):
        raise bad_field(
            "regulariser", kind, f"choose one of {', '.join(get_args(RegulariserName))}"
        )
    if not 0.0 < weight < np.inf:
        raise bad_field("weight", weight, "it must be finite and > 0")


def value(kind: RegulariserName, weight: float, point: Floats) -> float:
    """Return psi: 0 inside the ball of radius `weight`; weight/2 |x|^2; weight |x|_1."""
    if kind == "ball":
        return 0.0 if float(np.sqrt((point * point).sum())) <= weight * (1.0 + 1e-12) else np.inf
    if kind == "l2":
        return 0.5 * weight * float((point * point).sum())
    return weight * float(np.abs(point).sum())


def prox(
    kind: RegulariserName, weight: float, point: Floats, step: float | Floats, records: int
) -> Floats:
    """Return the proximal map at the end of an epoch, of one point or of many.

    Args:
        kind: of psi.
        weight: radius of the ball, or lambda.
        point: x, or several: (..., d).
        step: eta, or one for each point: (...).
        records: n, steps of an epoch.

    Example:
        >>> prox("l1", 0.1, np.array([1.0, -0.05]), 0.1, 10).tolist()
        [0.9, -0.0]
    """
    if kind == "ball":
        length = np.sqrt(np.square(point).sum(axis=-1, keepdims=True))
        return np.asarray(point * (weight / np.maximum(length, weight)))
    cut = np.asarray(step)[..., None] * (records * weight)
    if kind == "l2":
        return np.asarray(point / (1.0 + cut))
    return np.asarray(np.sign(point) * np.maximum(np.abs(point) - cut, 0.0))
