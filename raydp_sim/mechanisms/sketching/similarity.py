"""How alike clients are taken to be, which is what decoders of sketches know of the data.

T(m) = 1 + s (m - 1) divides what m clients sent about one direction: s = 0 sums (orthogonal
vectors), s = 1 averages (identical ones).
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import bad_field

Floats = NDArray[np.float64]
Similarity = Literal["one", "max", "opt", "avg"]


def correlation(vectors: Floats) -> float:
    """Return R = |sum x|^2 / sum |x|^2 - 1 (Eq. 2.7): -1 to n - 1, 0 for orthogonal vectors.

    It is 0 where all vectors are.

    Example:
        >>> correlation(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))
        2.0
    """
    squares = float(np.square(vectors).sum())
    return float(np.square(vectors.sum(axis=0)).sum()) / squares - 1.0 if squares else 0.0


def slope(kind: Similarity, clients: int, known: float | None = None) -> float:
    """Return s of T(m) = 1 + s (m - 1).

    Args:
        kind: `one`, s = 0; `max`, s = 1; `opt`, R/(n-1), the least error for a known R; `avg`, R
            taken as n/2, where nothing is known.
        clients: n that arrived; a single one has nobody to be like.
        known: R for `opt`. Below 0 it counts as 0: T may not reach 0 for eigenvalues up to n.

    Example:
        >>> slope("avg", 11), slope("opt", 11, known=5.0)
        (0.55, 0.5)
    """
    if kind not in ("one", "max", "opt", "avg"):
        raise bad_field("similarity", kind, "choose one, max, opt or avg")
    if clients <= 1 or kind == "one":
        return 0.0
    if kind == "max":
        return 1.0
    if kind == "avg":
        return 0.5 * clients / (clients - 1)
    check_known(kind, known)
    assert known is not None
    return min(max(known, 0.0) / (clients - 1), 1.0)


def check_known(kind: Similarity, known: float | None) -> None:
    """Refuse `opt` without R."""
    if kind == "opt" and (known is None or not math.isfinite(known)):
        raise bad_field("correlation", known, "give R for similarity: opt, or choose avg")


def check_sizes(clients: int, kept: int, dimension: int) -> None:
    """Refuse sketches of nothing, or longer than the vectors.

    Example:
        >>> check_sizes(2, 5, 4)
        Traceback (most recent call last):
            ...
        raydp_sim.errors.InputError: kept is 5; it must lie in [1, 4], the length of the vectors
    """
    if not 1 <= kept <= dimension:
        raise bad_field("kept", kept, f"it must lie in [1, {dimension}], the length of the vectors")
    if clients < 1:
        raise bad_field("clients", clients, "there must be at least one")
