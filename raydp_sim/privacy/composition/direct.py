"""Composition of loss laws by direct summation over knots of any spacing: no transform, no window.

H_(a * b)(e) is the sum of a's masses times H_b(e - loss), plus a's infinite part times b's total.
All terms are positive, so the sum is right to relative rounding, which is charged. Evaluated at
new knots and connected again it is a law whose profile is at least the true one (losses.py). With
some hundred knots, spaced by ratio and by level, a composition of any number of rounds costs as
many of these steps as the number has binary digits, twice at most, and each adds an error of
second order in the spacing. It is right where few rounds decide, or rare large losses: there a
uniform grid has to be fine for the small ones and long for the large ones at the same time.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from raydp_sim.privacy.composition.losses import (
    LossLaw,
    Profile,
    connect,
    connect_side,
    join,
)
from raydp_sim.privacy.curves.binomials import Floats

# Relative rounding of sums of positive terms, with their exponentials; errs upwards.
_ROUNDING = 1e-11
_ELEMENTS = 1 << 18

T = TypeVar("T")


def by_squaring(base: T, times: int, combine: Callable[[T, T], T]) -> T:
    """Combine `times` >= 1 copies of the base with as few steps as binary digits, twice at most.

    Example:
        >>> by_squaring(3, 5, lambda a, b: a * b)
        243
    """
    done = None
    while True:
        if times & 1:
            done = base if done is None else combine(base, done)
        times >>= 1
        if not times:
            assert done is not None
            return done
        base = combine(base, base)


def spaced(profile: Profile, most: float, floor: float, count: int, looks: int = 121) -> Floats:
    """Return knots for a profile up to a loss: by ratio, and by level where it falls.

    Any knots are valid. Half of these have equal ratios, half equal steps of the logarithm of the
    profile, down to `floor`; the last is `most`, or where the profile is below the floor. It is
    looked at in so many places before.

    Example:
        >>> knots = spaced(lambda e: np.maximum(0.5 - e, 0.0), 0.5, 1e-9, 64)
        >>> float(knots[-1]), bool(len(knots) <= 64)
        (0.5, True)
    """
    rough = most * np.exp2(np.linspace(-40.0, 0.0, looks))
    values = np.maximum.accumulate(profile(rough)[::-1])[::-1]
    # Losses that matter begin where the profile leaves its value at 0, and end below the floor.
    top = float(profile(np.zeros(1))[0])
    first = max(0, int(np.searchsorted(-values, -0.999 * top)) - 3)
    end = min(int(np.searchsorted(-values, -floor)), len(rough) - 1)
    first = min(first, max(0, end - 1))
    rough, values = rough[first : end + 1], values[first : end + 1]
    half = count // 2
    by_ratio = np.geomspace(rough[0], rough[-1], half)
    level = np.log(np.maximum(values, floor))
    at = np.linspace(level[0], level[-1], count - half)
    by_level = np.exp(np.interp(-at, -level, np.log(rough)))
    inner = np.unique(np.concatenate([by_ratio, by_level]))
    # Knots that nearly coincide would only lose digits.
    inner = inner[(inner < (1.0 - 1e-9) * rough[-1]) & (np.diff(inner, prepend=0.0) > 1e-9 * inner)]
    return np.append(inner, rough[-1])


def convolve(first: LossLaw, second: LossLaw, floor: float, count: int) -> LossLaw:
    """Return a law whose profile is at least that of the two laws' sum.

    Args:
        first: of one part.
        second: of the other.
        floor: profile below which a loss may count as infinite.
        count: knots.

    Example:
        >>> one = connect(np.array([1.0]), np.array([np.tanh(0.5), 0.0]))
        >>> two = convolve(one, one, 1e-12, 300)
        >>> exact = (1 - np.exp(-0.5)) * (np.e / (np.e + 1)) ** 2
        >>> bool(exact <= two.profile(np.array([1.5]))[0] <= 1.001 * exact)
        True
    """
    knots, values = _composed(first, second, floor, count)
    if first.back is None and second.back is None:
        return connect(knots, values)
    back = _composed(first.swapped(), second.swapped(), floor, count)
    return join(connect_side(knots, values), connect_side(*back))


def _composed(first: LossLaw, second: LossLaw, floor: float, count: int) -> tuple[Floats, Floats]:
    """Return knots > 0, and upper bounds on the profile of the sum of two laws at 0 and there."""
    atoms, masses = first.atoms
    seen = masses > 0.0
    atoms, masses = atoms[seen], masses[seen]

    def profile(epsilons: Floats) -> Floats:
        found = np.empty_like(epsilons)
        rows = max(1, _ELEMENTS // len(atoms))
        for begin in range(0, len(epsilons), rows):
            part = slice(begin, begin + rows)
            found[part] = second.profile(epsilons[part, None] - atoms) @ masses
        return (found + first.infinite * second.total) * (1.0 + _ROUNDING)

    knots = _sums(first, second, count)
    if knots is None:
        most = float(first.losses[-1] + second.losses[-1])
        knots = spaced(profile, most, floor, count)
    return knots, profile(np.append(0.0, knots))


def _sums(one: LossLaw, other: LossLaw, count: int) -> Floats | None:
    """Return every loss > 0 that the sum of two laws can have, if these are few: then it is exact.

    Those that nearly coincide are one knot, the largest of them; any knots are valid.
    """
    if len(one.losses) * len(other.losses) > 2 * count:
        return None
    total = np.unique(np.add.outer(one.atoms[0], other.atoms[0]))
    total = total[total > 1e-12 * total[-1]]
    last = np.append(np.diff(total) > 1e-12 * total[1:], True)
    return total[last] if np.count_nonzero(last) <= count else None


@lru_cache(maxsize=1024)
def _convolved(first: LossLaw, second: LossLaw, floor: float, count: int) -> LossLaw:
    """Convolve, or take it from the cache: runs that go on have most of their steps in common."""
    return convolve(first, second, floor, count)


def power(law: LossLaw, times: int, floor: float, count: int) -> LossLaw:
    """Return a law whose profile is at least that of `times` independent losses of the law.

    Example:
        >>> one = connect(np.array([1.0]), np.array([np.tanh(0.5), 0.0]))
        >>> ten = power(one, 10, 1e-12, 300)
        >>> exact = (1 - np.exp(-1.0)) * (np.e / (np.e + 1)) ** 10
        >>> bool(exact <= ten.profile(np.array([9.0]))[0] <= 1.02 * exact)
        True
    """
    return by_squaring(law, times, lambda a, b: _convolved(a, b, floor, count))


def compose(parts: Sequence[tuple[LossLaw, int]], floor: float, count: int) -> LossLaw:
    """Return a law whose profile is at least that of all parts, each so many times.

    Example:
        >>> one = connect(np.array([1.0]), np.array([np.tanh(0.5), 0.0]))
        >>> compose([(one, 1), (one, 2)], 1e-12, 100).losses[-1] <= 3.0
        np.True_
    """
    powers = [power(law, times, floor, count) for law, times in parts]
    total = powers[0]
    for part in powers[1:]:
        total = _convolved(part, total, floor, count)
    return total
