"""The oracle of composition: two laws as lists of atoms, multiplied out, no grid and no transform.

A pair (P, Q) is a list of atoms with masses p under P and q under Q. The composition of rounds is
the list of all products of their atoms, so delta(epsilon) = sum (p - e^epsilon q)_+ is a finite sum
of products of positive numbers. Nothing here comes from the package's numerics.

Rounding. Beside p and q an atom carries its difference d = p - q, of which nothing cancels when the
loss is small, and a number s >= |d| that bounds what its rounding is relative to: every stored p
and q is within a factor 1 +- `error` of the true one and d within `error` * s. A product of atoms
has d = d1 p2 + q1 d2 and s = s1 p2 + q1 s2. What `delta` returns is lower (or, for upper bounds,
higher) than the true value by at least the rounding that these allow.

Too many atoms are brought together in narrow cells of losses, relatively about as narrow everywhere
between the smallest that matters and the largest:

- "down": the masses of a cell are added, under P and under Q. That is a post-processing, so delta
  at every epsilon can only fall, and in the second order of the width of the cells.
- "up": every atom is split to the two ends of its cell so that its masses under P and under Q are
  kept. Adding these two would give the atom back, so delta can only rise.

Atoms left out when a round's list is made have lost masses that are kept apart: without them delta
is lower, and with them as infinite losses it is higher. `exact` says that neither was done.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Way = Literal["down", "up"]

ULP = float(np.finfo(np.float64).eps)

# Atoms of a factor that is multiplied out, and of one of the last two, which are only summed.
FACTOR, LAST = 700, 4000


@dataclass(frozen=True)
class Atoms:
    """Two laws, atom by atom.

    Attributes:
        p, q, d, s: masses under P and Q, difference, and the scale of its rounding error.
        error: relative, of p and q; of d, relative to s.
        lost: mass of P, and at most of Q, that was left out.
        exact: whether nothing was left out or brought together.
    """

    p: Array
    q: Array
    d: Array
    s: Array
    error: float
    lost: float = 0.0
    exact: bool = True

    @property
    def loss(self) -> Array:
        """log p/q."""
        small = np.abs(self.d) < 0.5 * self.q
        near = np.log1p(np.where(small, self.d, 0.0) / self.q)
        return np.where(small, near, np.log(self.p / self.q))

    @property
    def reverse(self) -> "Atoms":
        """(Q, P)."""
        return replace(self, p=self.q, q=self.p, d=-self.d)


UNIT = Atoms(np.ones(1), np.ones(1), np.zeros(1), np.zeros(1), 0.0)


def merged(pair: Atoms, most: int, way: Way = "down") -> Atoms:
    """Bring the atoms together in at most about `most` cells, if they are more."""
    if len(pair.p) <= most:
        return pair
    loss = pair.loss
    size = np.abs(loss)
    # Below the scale the cells are equally wide: losses there make 1e-4 of the variance at most.
    power = np.frexp(size)[1]
    low = int(power.min())
    share = np.cumsum(np.bincount(power - low, weights=np.abs(pair.d) * size))
    scale = math.ldexp(1.0, int(np.searchsorted(share, 1e-4 * share[-1])) + low)
    width = 2.0 * math.asinh(float(size.max()) / scale) / most
    place = np.arcsinh(size / scale) / width
    if way == "up":
        return _split(pair, loss, place, scale, width)
    # Only what has no loss at all has the cell 0, so that in no cell differences cancel.
    cell = (np.sign(loss) * np.ceil(place)).astype(np.int64)
    cell -= cell.min()
    count = np.bincount(cell)
    p, q, d, s = (np.bincount(cell, weights=part)[count > 0] for part in _parts(pair))
    error = pair.error + float(count.max()) * ULP
    return replace(pair, p=p, q=q, d=d, s=s, error=error, exact=False)


def _parts(pair: Atoms) -> tuple[Array, Array, Array, Array]:
    return pair.p, pair.q, pair.d, pair.s


def _split(pair: Atoms, loss: Array, place: Array, scale: float, width: float) -> Atoms:
    """Return the pair with every atom split to the ends of its cell."""
    below = np.where(loss < 0.0, -np.floor(place) - 1.0, np.floor(place)).astype(np.int64)
    first = int(below.min())
    ends = scale * np.sinh(width * np.arange(first, int(below.max()) + 2))
    low, high = ends[below - first], ends[below - first + 1]
    # x + y = p and x e^-low + y e^-high = q.
    upper = np.clip(np.expm1(low - loss) / np.expm1(low - high), 0.0, 1.0)

    def spread(part: Array) -> Array:
        out = np.bincount(below - first, weights=part * (1.0 - upper), minlength=len(ends))
        return out + np.bincount(below - first + 1, weights=part * upper, minlength=len(ends))

    p, s = spread(pair.p), spread(pair.s)
    seen = p > 0.0
    p, s, ends = p[seen], s[seen], ends[seen]
    d = -p * np.expm1(-ends)
    # A share is off by the rounding of a loss against the width of its cell.
    error = pair.error + ULP * (8.0 + 8.0 / width + float(np.bincount(below - first).max()))
    s = np.maximum(s, np.abs(d))
    return replace(pair, p=p, q=p * np.exp(-ends), d=d, s=s, error=error, exact=False)


def product(one: Atoms, two: Atoms, way: Way = "down", factor: int = FACTOR) -> Atoms:
    """Multiply out, after bringing factors of more than factor^2 products together."""
    if len(one.p) * len(two.p) > factor**2:
        # Whatever one has fewer of the other may have more.
        most = max(factor, factor**2 // max(1, min(len(one.p), len(two.p))))
        one, two = merged(one, most, way), merged(two, most, way)

    def outer(left: Array, right: Array) -> Array:
        return np.multiply.outer(left, right).ravel()

    return Atoms(
        outer(one.p, two.p),
        outer(one.q, two.q),
        outer(one.d, two.p) + outer(one.q, two.d),
        outer(one.s, two.p) + outer(one.q, two.s),
        one.error + two.error + 4.0 * ULP,
        one.lost + two.lost,
        one.exact and two.exact,
    )


def power(pair: Atoms, times: int, way: Way = "down", factor: int = FACTOR) -> Atoms:
    """Return the composition of `times` equal rounds, by squaring."""
    if times == 0:
        return UNIT
    if times == 1:
        return pair
    half = power(pair, times // 2, way, factor)
    square = product(half, half, way, factor)
    return product(square, pair, way, factor) if times % 2 else square


class Composition:
    """The product of two pairs, of which only tails are ever summed.

    The atoms of the product with loss above epsilon are, for each atom i of the first, those of the
    second with loss above epsilon - l_i, so sums over a tail of the second are all that it takes.
    """

    def __init__(self, one: Atoms, two: Atoms, way: Way) -> None:
        self.one, self.two, self.way = one, two, way
        order = np.argsort(two.loss)
        self._own, self._losses = one.loss, two.loss[order]
        self._tails = [_tail(part[order]) for part in _parts(two)]
        # Sums of so many terms; 1.01 for products of errors.
        roundings = len(one.p) + len(two.p) + 16.0
        self._error = 1.01 * (one.error + two.error + roundings * ULP)

    @property
    def exact(self) -> bool:
        """Whether no atoms were left out or brought together."""
        return self.one.exact and self.two.exact

    @property
    def most(self) -> float:
        """The largest loss."""
        return float(self._own.max() + self._losses[-1])

    def delta(self, epsilon: float) -> float:
        """Return delta at epsilon >= 0: at most the true one ("down") or at least it ("up")."""
        first = np.searchsorted(self._losses, epsilon - self._own, side="right")
        p, q, d, s = (tail[first] for tail in self._tails)
        one, scale = self.one, math.expm1(epsilon)
        value = one.d * p + one.q * d - scale * one.q * q
        doubt = self._error * (one.s * p + one.q * s + scale * one.q * q)
        if self.way == "up":
            return float((value + doubt).sum()) + one.lost + self.two.lost
        return float(np.maximum(value - doubt, 0.0).sum())

    def epsilon(self, delta: float) -> float:
        """Return epsilon to 1e-11 of its value: one that fails ("down"), or is enough ("up").

        "down": 0, or delta at the value returned exceeds `delta`. "up": it does not there.
        """
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, self.most * (1.0 + 1e-9)
        if self.way == "up" and self.delta(high) > delta:
            return math.inf
        # Down to the size of the answer first, which may be far below the largest loss.
        while high > 1e-300 and self.delta(0.1 * high) <= delta:
            high *= 0.1
        low = 0.1 * high if self.delta(0.1 * high) > delta else 0.0
        while high - low > 1e-11 * high:
            middle = 0.5 * (low + high)
            if self.delta(middle) > delta:
                low = middle
            else:
                high = middle
        return low if self.way == "down" else high


def _tail(part: Array) -> Array:
    """Return the sums from each index to the end, and 0."""
    return np.append(np.cumsum(part[::-1])[::-1], 0.0)


Rounds = Sequence[tuple[Atoms, int]]


def compose(
    rounds: Rounds, way: Way = "down", factor: int = FACTOR, last: int = LAST
) -> Composition:
    """Return the composition of rounds of several kinds, each with how often it happens."""
    if len(rounds) == 1:
        pair, times = rounds[0]
        one = power(pair, times // 2, way, factor)
        two = one if times % 2 == 0 else product(one, pair, way, factor)
    else:
        one = power(*rounds[0], way, factor)
        two = power(*rounds[1], way, factor)
        for pair, times in rounds[2:]:
            two = product(two, power(pair, times, way, factor), way, factor)
    return Composition(merged(one, last, way), merged(two, last, way), way)


def both_directions(rounds: Rounds, delta: float) -> float:
    """Return a number that epsilon of the composed rounds exceeds, the larger of two directions."""
    reverse = [(pair.reverse, times) for pair, times in rounds]
    return max(compose(part).epsilon(delta) for part in (rounds, reverse))
