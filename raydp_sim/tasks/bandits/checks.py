"""What bandits refuse, by field, before anything is played."""

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raydp_sim.errors import InputError, bad_field

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Unit vectors are computed, so their length may exceed 1 by rounding.
SLACK = 1e-9


def check_vectors(field: str, values: ArrayLike) -> Floats:
    """Return vectors of length <= 1 as rows; at least one of them is not zero.

    Example:
        >>> check_vectors("actions", [[0.0, 2.0]])
        Traceback (most recent call last):
            ...
        raydp_sim.errors.InputError: actions[0] has length 2; scale it to at most 1
    """
    array = np.array(values, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{field} has shape {array.shape}; give rows, one vector each")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise bad_field(f"{field}[{row}]", array[row], "it must be finite")
    lengths = np.linalg.norm(array, axis=1)
    if lengths.max() > 1.0 + SLACK:
        row = int(lengths.argmax())
        raise InputError(f"{field}[{row}] has length {lengths[row]:g}; scale it to at most 1")
    if lengths.max() == 0.0:
        raise InputError(f"{field} are all zero; give at least one that is not")
    array.flags.writeable = False
    return array


def check_theta(theta: ArrayLike, dimension: int) -> Floats:
    """Return the unknown vector, of length <= 1."""
    array = np.array(theta, dtype=np.float64)
    if array.shape != (dimension,):
        raise InputError(f"theta has shape {array.shape}; give {dimension} numbers")
    length = float(np.linalg.norm(array))
    if not length <= 1.0 + SLACK:
        raise InputError(f"theta has length {length:g}; it must be finite, of length <= 1")
    return array


def check_horizon(horizon: int) -> int:
    """Return the number of rounds T >= 3, for which there is at least one batch."""
    if isinstance(horizon, bool) or not isinstance(horizon, Integral) or horizon < 3:
        raise bad_field("horizon", horizon, "it must be a whole number >= 3")
    return int(horizon)


def check_epsilon(epsilon: float, field: str = "epsilon") -> float:
    """Return a loss > 0; infinite: no noise."""
    if not epsilon > 0.0:
        raise bad_field(field, epsilon, "it must be > 0 (or inf, for no noise)")
    return float(epsilon)


def check_delta(delta: float) -> float:
    """Return a delta in (0, 1)."""
    if not 0.0 < delta < 1.0:
        raise bad_field("delta", delta, "it must lie in (0, 1)")
    return float(delta)


def check_share(field: str, value: float) -> float:
    """Return a share in (0, 1]."""
    if not 0.0 < value <= 1.0:
        raise bad_field(field, value, "it must lie in (0, 1]")
    return float(value)
