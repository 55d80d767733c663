"""Types and shapes, checked before C is entered."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

SHORT = ("B", "H", "I")
"""Types of symbols that C has loops for."""


def need(name: str, given: Any, kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array of this type and shape, copied if it is not contiguous."""
    if not isinstance(given, np.ndarray) or given.dtype != kind:
        found = getattr(given, "dtype", type(given).__name__)
        raise TypeError(f"{name} has type {found}; it must be an array of {np.dtype(kind)}")
    if given.shape != shape:
        raise ValueError(f"{name} has shape {given.shape}; it must be {shape}")
    return np.ascontiguousarray(given)
