"""Binary levels of a number in [0, 1], and how a budget is shared between them."""

from typing import Literal

import numpy as np

from raydp_sim.mechanisms.base import Counts, Floats

Allocation = Literal["seed", "equal", "rdp"]

# Exponent of the weight that a level's share is proportional to.
_POWERS: dict[str, float] = {"seed": 2 / 3, "equal": 0.0, "rdp": 1 / 2}


def weights(levels: int) -> Floats:
    """Return the worth of each level's bit: 1/2, 1/4, ..., and the last one twice.

    Example:
        >>> weights(3).tolist()
        [0.5, 0.25, 0.25]
    """
    return np.exp2(-np.minimum(np.arange(1, levels + 1), levels - 1).astype(np.float64))


def shares(levels: int, allocation: Allocation = "seed") -> Floats:
    """Return each level's share of the budget.

    "seed" is proportional to weight^(2/3), which minimises sum(weight^2 / budget^2) at a fixed sum
    of budgets (Girgis & Diggavi 2024, Algorithm 2 with the last exponent corrected); "rdp" to
    weight^(1/2), which does so at a fixed sum of squares; "equal" is the ablation.

    Example:
        >>> shares(3).round(6).tolist()
        [0.442493, 0.278753, 0.278753]
    """
    parts = weights(levels) ** _POWERS[allocation]
    return np.asarray(parts / parts.sum())


def split(z: Floats, levels: int) -> tuple[Counts, Floats]:
    """Write z in [0, 1] as (prefix + rest) / 2^(levels-1), with rest in [0, 1].

    Bit k (1-based) of the first levels-1 bits is `(prefix >> (levels - 1 - k)) & 1`; the last level
    rounds `rest` at random. Exact, since 2^(levels-1) z is; z = 1 keeps every bit at 1.

    Example:
        >>> prefix, rest = split(np.array([0.7, 1.0]), 3)
        >>> prefix.tolist(), rest.round(6).tolist()
        ([2, 3], [0.8, 1.0])
    """
    scaled = z * 2.0 ** (levels - 1)
    prefix = np.minimum(scaled.astype(np.int64), (1 << (levels - 1)) - 1)
    return prefix, scaled - prefix


def level(z: Floats, k: int, levels: int) -> Floats:
    """Return level k's (0-based) bit of every entry; at the last level, the chance that it is 1.

    Example:
        >>> level(np.array([0.7]), 0, 3).tolist()
        [1.0]
    """
    prefix, rest = split(z, levels)
    if k == levels - 1:
        return rest
    return ((prefix >> (levels - 2 - k)) & 1).astype(np.float64)


def columns(z: Floats, levels: int) -> Floats:
    """Turn values at sampled coordinates, level by level along the row, into those levels' bits.

    Example:
        >>> columns(np.array([[0.7, 0.7]]), 2).round(6).tolist()
        [[1.0, 0.4]]
    """
    if levels == 1:
        return z
    each = z.reshape(len(z), levels, -1)
    prefix, rest = split(each, levels)
    shifts = np.arange(levels - 2, -1, -1)[:, None]
    bits = np.empty_like(each)
    bits[:, :-1] = (prefix[:, :-1] >> shifts) & 1
    bits[:, -1] = rest[:, -1]
    return bits.reshape(z.shape)
