"""By how much a sum of independent draws exceeds a threshold on average, from above.

E (S - K)_+ for S the sum of n copies of a variable X with finitely many values: this is what the
divergence of a shuffle is (law_rounds.py). It is convex in each copy, so it does not decrease if a
value is replaced by a random one with that mean: values are split between the two next points of a
lattice, and a lattice is made twice as coarse by splitting its odd points between their neighbours.
That keeps the mean, so its error is of second order in the step. Sums of twice as many copies
come from a convolution of the law with itself, and each law keeps to `POINTS` points of its own
lattice, so the time grows with the logarithm of n only.

Everything is tilted by exp(t x - log E exp(t X)), t near where Chernoff's bound on Pr[S > K] is
least, so that what decides is the bulk and rounding is relative to it. Any t > 0 is valid. What is
left out, and what covers it:

* Rounding of the convolutions. The entries of a convolution of a and b by transforms of size 2^m
  err by at most 24 (m + 2) 2^-53 times the 2-norms of a and b, which is added to every entry; the
  true ones are not negative, so negative ones are raised to 0 first.
* Points that are dropped. For every event B, E[(S - K)_+; B] <= E[exp(t S)] e^(-t K) Pr_t[B]/(e t),
  because y e^(-t y) <= 1/(e t). B has at most n/N blocks of N copies of which a point was dropped.
* Rounding of the tilt, of weights and of exponents: 1e-7 and 1e-14 n, relatively.
* n has nine digits in base two, the rest are dropped: S/n for more copies is smaller in convex
  order (the means of exchangeable variables are a reversed martingale), so E (S/n - k)_+, which is
  what is returned, may only fall with n.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.curves.binomials import Floats

POINTS = 512
# Points of one copy's lattice: more where its largest values are many standard deviations.
_FIRST, _MOST, _PER_DEVIATION = 200, 3072, 4.0
_DIGITS = 9
_DROP = 1e-11
_U = 2.0**-53
_ROWS = 64
# Rows whose lattice is too coarse for their tilt are given up, to Chernoff's bound.
_TOO_COARSE, _TOO_HEAVY, _TOO_LARGE = 30.0, 1e3, 100.0
_COARSE = 3.0


def fewer(copies: int) -> int:
    """Return the number of copies with all but its first nine binary digits set to 0.

    Example:
        >>> fewer(100), fewer(10_001)
        (100, 9984)
    """
    shift = max(0, copies.bit_length() - _DIGITS)
    return copies >> shift << shift


def mean_excess(values: Floats, weights: Floats, copies: int, thresholds: Floats) -> Floats:
    """Return upper bounds on E (S/n - k)_+, one per row, S the sum of n copies of the row's X.

    Args:
        values: that X can have besides 0, one row per threshold, of any sign.
        weights: their probabilities; the rest, to 1, is at 0.
        copies: n >= 1.
        thresholds: k >= 0, one per row.

    Example:
        >>> found = mean_excess(np.array([[1.0, -1.0]]), np.array([0.5, 0.5]), 64, np.zeros(1))
        >>> exact = math.comb(64, 32) / 2**65
        >>> bool(exact <= found[0] < 1.001 * exact)
        True
    """
    n = fewer(copies)
    found = np.empty(len(thresholds))
    for begin in range(0, len(found), _ROWS):
        part = slice(begin, begin + _ROWS)
        found[part] = _rows(values[part], weights, n, thresholds[part])
    return found


def _rows(values: Floats, weights: Floats, n: int, thresholds: Floats) -> Floats:
    top, bottom = values.max(axis=1), np.minimum(values.min(axis=1), 0.0)
    out = np.zeros(len(values))
    seen = top > thresholds
    if not np.any(seen):
        return out
    values, top, bottom, k = values[seen], top[seen], bottom[seen], thresholds[seen]
    best = _tilts(values, weights, n, k, top)
    spread = np.sqrt((weights * values * values).sum(axis=1))
    first = np.clip(_PER_DEVIATION * (top - bottom) / spread, _FIRST, _MOST)
    step = (top - bottom) / first
    # A lattice that is coarse for its tilt says little.
    tilt = np.minimum(best, _COARSE / step)
    copy = _Copy(values, weights, tilt)
    law, done = copy.law(step), 1
    for digit in bin(n)[3:]:
        law, done = _trimmed(_sum(law, law), n / (2 * done)), 2 * done
        if digit == "1":
            law, done = _trimmed(_sum(law, copy.law(law.step)), n / done), done + 1
    assert done == n
    points = (law.offset[:, None] + np.arange(law.mass.shape[1])) * law.step[:, None]
    over = np.maximum(points - n * k[:, None], 0.0)
    # Nothing here overflows: the exponent is at most 0 where the excess is not.
    gains = over * np.exp(-tilt[:, None] * over)
    total = (law.mass * gains).sum(axis=1)
    # Twice, for what rounding added to the other blocks' masses.
    dropped = 2.0 * np.maximum(law.mass.sum(axis=1), 1.0) * law.dropped / (math.e * tilt)
    bound = np.where(law.lost, np.inf, total + dropped) * _scale(copy, n, k)
    # Chernoff's bound is y e^(-t y) <= 1/(e t) for the whole of S.
    chernoff = _scale(_Copy(values, weights, best), n, k) / (math.e * best)
    bound = np.minimum(bound, chernoff) / n * (1.0 + 1e-7 + 1e-14 * n)
    # A mean of one copy exceeds no less.
    plain = (np.maximum(values - k[:, None], 0.0) * weights).sum(axis=1)
    out[seen] = np.minimum(bound, plain * (1.0 + 1e-12))
    return out


def _scale(copy: "_Copy", n: int, k: Floats) -> Floats:
    """Return E exp(t (S - n k)), at least 1e-300, inf past e^300."""
    exponent = n * copy.log_moment - copy.tilt * n * k
    return np.where(exponent > 300.0, np.inf, np.exp(np.clip(exponent, -690.0, 300.0)))


def _tilts(values: Floats, weights: Floats, n: int, k: Floats, top: Floats) -> Floats:
    """Return about where n log E exp(t X) - t n k is least, within sensible limits."""
    spread = np.sqrt(n * (weights * values * values).sum(axis=1))
    low, high = 0.3 / spread, np.maximum(50.0 / top, 0.6 / spread)
    rest = 1.0 - weights.sum()
    for _ in range(18):
        t = np.sqrt(low * high)
        # Relative to the largest exponent, so that nothing overflows.
        grown = weights * np.exp(t[:, None] * (values - top[:, None]))
        moment = grown.sum(axis=1) + rest * np.exp(-t * top)
        above = (grown * values).sum(axis=1) > k * moment
        high, low = np.where(above, t, high), np.where(above, low, t)
    # No exponent may overflow.
    return np.asarray(np.minimum(np.sqrt(low * high), 600.0 / top))


@dataclass(frozen=True)
class _Law:
    """Tilted laws on lattices: `mass[i, j]` stands at (offset[i] + j) step[i].

    `dropped` is how much was dropped over all blocks, `lost` marks rows that are not computed, and
    `noise` is what was last added to every entry.
    """

    mass: Floats
    offset: NDArray[np.int64]
    step: Floats
    tilt: Floats
    dropped: Floats
    lost: NDArray[np.bool_]
    noise: Floats


@dataclass(frozen=True)
class _Copy:
    """The law of one copy, on any lattice."""

    values: Floats
    weights: Floats
    tilt: Floats

    @property
    def _rest(self) -> float:
        return max(0.0, 1.0 - float(self.weights.sum()))

    @property
    def log_moment(self) -> Floats:
        """Logarithm of what one copy's tilted masses are divided by."""
        x = self.tilt[:, None] * self.values
        return np.asarray(np.log1p((self.weights * np.expm1(x)).sum(axis=1)))

    def law(self, step: Floats) -> _Law:
        """Split every value between the next points of the lattice."""
        place = self.values / step[:, None]
        below = np.floor(place)
        up = np.clip(place - below, 0.0, 1.0)
        low = np.minimum(below.min(axis=1), 0.0)
        high = np.maximum(below.max(axis=1) + 1.0, 0.0)
        size = int((high - low).max()) + 1
        rows = np.arange(len(place))[:, None]
        index = (rows * size + (below - low[:, None])).astype(np.int64)
        flat = np.zeros(len(place) * size)
        flat += np.bincount(index.ravel(), (self.weights * (1.0 - up)).ravel(), len(flat))
        # The last point's right neighbour has weight 0 only if it is not there.
        right = np.minimum(index + 1, rows * size + size - 1)
        flat += np.bincount(right.ravel(), (self.weights * up).ravel(), len(flat))
        mass = flat.reshape(len(place), size)
        mass[np.arange(len(place)), (-low).astype(np.int64)] += self._rest
        points = (low[:, None] + np.arange(size)) * step[:, None]
        exponent = self.tilt[:, None] * points - self.log_moment[:, None]
        lost = exponent.max(axis=1) > _TOO_LARGE
        mass *= np.exp(np.minimum(exponent, _TOO_LARGE))
        none = np.zeros(len(place))
        return _Law(mass, low.astype(np.int64), step, self.tilt, none, lost, none)


def _sum(one: _Law, other: _Law) -> _Law:
    """Return the law of the sum of two independent sums on the same lattices."""
    length = one.mass.shape[1] + other.mass.shape[1] - 1
    size = 1 << (length - 1).bit_length()
    first = np.fft.rfft(one.mass, size, axis=1)
    second = first if one is other else np.fft.rfft(other.mass, size, axis=1)
    found = np.fft.irfft(first * second, size, axis=1)[:, :length]
    norms = np.sqrt((one.mass**2).sum(axis=1) * (other.mass**2).sum(axis=1))
    eta = 24.0 * (math.log2(size) + 2.0) * _U * norms
    mass = np.maximum(found, 0.0) + eta[:, None]
    # Blocks are counted where they are dropped, so nothing is added up twice here.
    dropped = np.maximum(one.dropped, other.dropped)
    lost = one.lost | other.lost
    return _Law(mass, one.offset + other.offset, one.step, one.tilt, dropped, lost, eta)


def _trimmed(law: _Law, blocks: float) -> _Law:
    """Keep to so many points: make lattices coarser, then drop what is at the ends, and count it.

    `blocks` is how many such sums there are in the whole one.
    """
    heavy = law.mass.sum(axis=1) > _TOO_HEAVY
    if np.any(heavy):
        law = replace(law, mass=np.where(heavy[:, None], 0.0, law.mass), lost=law.lost | heavy)
    while law.mass.shape[1] > POINTS:
        total = np.cumsum(law.mass, axis=1)
        light = (_DROP + 2.0 * law.noise * law.mass.shape[1])[:, None]
        first = (total < light).sum(axis=1)
        last = (total <= total[:, -1:] - light).sum(axis=1)
        wide = last - first + 1 > POINTS
        if np.any(wide):
            law = _coarser(law, wide)
            continue
        start = np.clip((first + last + 1 - POINTS) // 2, 0, law.mass.shape[1] - POINTS)
        kept = np.take_along_axis(law.mass, start[:, None] + np.arange(POINTS), axis=1)
        lost = np.maximum(total[:, -1] - kept.sum(axis=1), 0.0) + 1e-15
        law = replace(
            law, mass=kept, offset=law.offset + start, dropped=law.dropped + blocks * lost
        )
    return law


def _coarser(law: _Law, chosen: NDArray[np.bool_]) -> _Law:
    """Split the odd points of the chosen rows between their neighbours; the rest stay."""
    rows, size = np.flatnonzero(chosen), law.mass.shape[1]
    odd = law.offset[rows] % 2
    # Even first: a row that begins at an odd point gets an empty one before it.
    padded = np.zeros((len(rows), size + 3 - (size + 1) % 2))
    for parity in (0, 1):
        which = odd == parity
        padded[which, parity : parity + size] = law.mass[rows[which]]
    exponent = law.tilt[rows] * law.step[rows]
    lost = law.lost.copy()
    lost[rows] |= exponent > _TOO_COARSE
    padded[lost[rows]] = 0.0
    grow = np.exp(np.minimum(exponent, _TOO_COARSE))[:, None]
    even, between = padded[:, 0::2], padded[:, 1::2]
    halves = np.zeros((len(rows), max(even.shape[1], between.shape[1]) + 1))
    halves[:, : even.shape[1]] += even
    halves[:, : between.shape[1]] += 0.5 * between / grow
    halves[:, 1 : between.shape[1] + 1] += 0.5 * between * grow
    offset, step = law.offset.copy(), law.step.copy()
    offset[rows] = (law.offset[rows] - odd) // 2
    step[rows] *= 2.0
    if len(rows) == len(law.mass):
        return replace(law, mass=halves, offset=offset, step=step, lost=lost)
    mass = law.mass.copy()
    mass[rows] = 0.0
    mass[rows, : halves.shape[1]] = halves
    return replace(law, mass=mass, offset=offset, step=step, lost=lost)
