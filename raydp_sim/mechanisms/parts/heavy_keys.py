"""Which keys of a group are likely: how many take the least entropy, and which decode best.

Recoverability and privacy only ask for how many heavy keys there are (Girgis 2024, Theorem 7.5.1).
Which they are decides whether someone without the key can invert the channel, and how well.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from raydp_sim.random import Stream

# Feedback of primitive polynomials x^m + sum x^t + 1, by m.
_TAPS: dict[int, tuple[int, ...]] = {
    2: (1,),
    3: (1,),
    4: (1,),
    5: (2,),
    6: (1,),
    7: (1,),
    8: (4, 3, 2),
    9: (4,),
    10: (3,),
    11: (2,),
    12: (6, 4, 1),
    13: (4, 3, 1),
    14: (10, 6, 1),
    15: (1,),
    16: (12, 3, 1),
    17: (3,),
    18: (7,),
    19: (5, 2, 1),
    20: (3,),
    21: (2,),
}
# Sets of heavy keys that are tried, fewer of large ones, which differ less; the best is taken.
_TRIED, _LEAST_TRIED, _ELEMENTS = 32, 4, 1 << 18


def key_entropy(categories: int, heavy: int, epsilon: float) -> float:
    """Return the bits of a key out of k of which s are e^epsilon times as likely as the rest.

    Girgis 2024, Theorem 7.5.1: log t - s epsilon e^epsilon / t, t = s e^epsilon + k - s.

    Example:
        >>> round(key_entropy(10, 3, 1.0), 5)
        3.14539
    """
    q = math.exp(-epsilon)
    # t over e^epsilon, so that no epsilon overflows.
    t = heavy + (categories - heavy) * q
    return (math.log(t) + epsilon - heavy * epsilon / t) / math.log(2.0)


def fewest_bits(categories: int, epsilon: float) -> int:
    """Return the number s* of heavy keys that takes the least entropy.

    The real optimum is k (e^epsilon (epsilon - 1) + 1) / (e^epsilon - 1)^2, and s* the better of
    the whole numbers beside it, at least 1.

    Example:
        >>> fewest_bits(10, 1.0), fewest_bits(1000, 5.0)
        (3, 27)
    """
    if epsilon < 1e-4:
        best = categories * (0.5 - epsilon / 6.0)
    else:
        q = math.exp(-epsilon)
        best = categories * q * (epsilon - 1.0 + q) / math.expm1(-epsilon) ** 2
    low = max(1, min(categories - 1, math.floor(best)))
    high = max(1, min(categories - 1, math.ceil(best)))
    return min((low, high), key=lambda s: key_entropy(categories, s, epsilon))


def relaxed_entropy(categories: int, epsilon: float) -> float:
    """Return log k + 1 + log w - w in bits, w = epsilon e^epsilon / (e^epsilon - 1): a lower bound.

    Example:
        >>> relaxed_entropy(10, 1.0) < key_entropy(10, 3, 1.0)
        True
    """
    w = epsilon / -math.expm1(-epsilon)
    return (math.log(categories) + 1.0 + math.log(w) - w) / math.log(2.0)


@lru_cache(maxsize=64)
def spread_keys(size: int, count: int) -> NDArray[np.int64] | None:
    """Return `count` elements of Z_size whose transform is nowhere near 0.

    The seed takes the last ones, whose transform has zeros wherever the two numbers have a common
    factor: nobody without the key could then estimate anything. These are the best of a few sets
    drawn at random, the same ones always, by the mean of 1 / |transform|^2, to which the error is
    proportional for small losses; None if all of them have zeros, as any 2 of 4 do.

    Example:
        >>> spread_keys(10, 1).tolist()
        [9]
    """
    if count == 1:
        return np.array([size - 1])
    best, least = None, math.inf
    for trial in range(max(_LEAST_TRIED, min(_TRIED, _ELEMENTS // size))):
        order = Stream(size).at("heavy keys", count, trial).generator().permutation(size)
        chosen = np.sort(order[:count]).astype(np.int64)
        power = np.abs(np.fft.rfft(_indicator(size, chosen)))[1:] ** 2
        if power.min() > 1e-9 * count and (mean := float((1.0 / power).mean())) < least:
            best, least = chosen, mean
    return best


def difference_set(degree: int) -> NDArray[np.int64]:
    """Return the places of Z_N, N = 2^m - 1, at which an m-sequence is 0.

    There are s = 2^(m-1) - 1, and every difference other than 0 occurs 2^(m-2) - 1 times among
    them: the Hadamard matrix without its row and column of ones, in cyclic form.

    Example:
        >>> difference_set(3).tolist()
        [0, 1, 3]
    """
    return np.flatnonzero(_sequence(degree) == 0)


@lru_cache(maxsize=32)
def _sequence(degree: int) -> NDArray[np.uint8]:
    length = (1 << degree) - 1
    out = np.zeros(max(length, degree), np.uint8)
    out[degree - 1] = 1
    known = degree
    while known < length:
        # The recurrence's square holds too, with all lags doubled, and so on: long steps.
        scale = 1 << ((known // degree).bit_length() - 1)
        step = min(scale * (degree - max(_TAPS[degree])), length - known)
        for tap in (0, *_TAPS[degree]):
            start = known - scale * (degree - tap)
            out[known : known + step] ^= out[start : start + step]
        known += step
    return out[:length]


def _indicator(size: int, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    out = np.zeros(size)
    out[chosen] = 1.0
    return out
