"""The law of a value with normal noise behind a shuffler: a number, or a vector of an l2 ball.

Units are the noise's standard deviation: inputs x lie in the ball of radius a in d dimensions, and
R(x) = N(x, I). R has no pure guarantee, and the blanket needs none (Balle, Bell, Gascon & Nissim
2019): W = inf_x R(x) has the density (2 pi)^(-d/2) exp(-(|w| + a)^2/2), the furthest x being
opposite to w, and f = dR(x)/dW = exp(a |w| + a^2/2 + x.w - |x|^2/2) is unbounded. Any smaller
measure is a blanket too. What of R(x) lies where it is 0 is no part of f and is charged in full:
with P = P_in + P_out and Q >= Q_in the divergence of P from Q exceeds that of P_in from Q_in by no
more than the mass of P_out (`Law.beyond`).

A number (d = 1). (A) E_W (f_x - k)_+ grows with |x|, for every k. Its derivative by x is that of R
in the set where f_x > k, the outside of an interval from -L/(a - x) to L/(a + x), L = log k - (a^2
- x^2)/2, if L > 0, and everything if not. In the first case it is phi(L/(a+x) - x) - phi(L/(a-x) +
x) for the normal density phi, and for x >= 0 the first argument is not the larger one in modulus.
(The set's own boundary adds nothing: the integrand is 0 there.) So the ends are worst by (3) of
laws.py; with u = |w|, f is e^(2 a u) on one half-line and 1 on the other, f' the reverse.

A vector (d > 1). (B) It is no worse than one more dimension with all inputs on the sphere. Put x
of the ball at (x, sqrt(a^2 - |x|^2)) in D = d + 1 dimensions. Whoever sees N(., I) there can drop
the last coordinate of every report, so divergences only fall. (C) On the sphere opposite inputs
are worst. Given |w| = s the direction is uniform under W, f = exp(a (s + w.x/a)) has the same
law for every x on the sphere, and so has f' for x'; of all joint laws with these marginals that in
which w.x' = -w.x has the largest E h, by (2) of laws.py used for each s.

So f = e^(a (s + y)) and f' = e^(a (s - y)), y = w.x/a, s^2 = y^2 + t^2, where t is the length of
the rest of w. In units of N(0, I), y is a normal number and t a chi of d degrees, independently,
and W is e^(-a^2/2 - a s) times that law. The plane of (y, t) is cut into rectangles. In each, W is
lowered to e^(-a^2/2)/K, K = e^(a S) at the largest s = S of the rectangle; then (f, f') = K (e^(a
y), e^(-a y)), and masses and means are products of normal and gamma probabilities. Last, values are
put on few by (1) of laws.py: K, in which both are linear, between the next levels; and e^(+-a y)
between its ends e^(+-a l), e^(+-a m) of a stripe, each with its mean kept. Of e^(a y) the upper end
has the probability u, of e^(-a y) it has v, and by (2) they coincide never: u + v <= 1, because
both are convex in y. The pair is symmetric, as cells at y and -y are.

In many dimensions the blanket's mass is about e^(-a sqrt(d)): if that is small, so is what the
other clients hide, and the guarantee of the report alone (normal_rounds.py) is the smaller one.

Rounding. Masses are computed within 1e-10 of themselves and lowered by that, so that the blanket is
a smaller one; f is raised, and f' lowered, by more than that means.
"""

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.laws import Law

Floats = NDArray[np.float64]

# Cells of a number; stripes and cells of y, cells of t, and levels of K, of a vector.
_NUMBER = 96
_STRIPES, _CELLS, _SHELLS, _LEVELS = 64, 512, 256, 18
_SLACK = 1e-10
# Beyond, a blanket of a million million clients hides nothing.
_LARGEST = 25.0


@lru_cache(maxsize=64)
def normal(radius: float, dimension: int, tail: float) -> Law:
    """Return the law of a vector of an l2 ball with normal noise.

    Args:
        radius: of the ball over the standard deviation, > 0.
        dimension: d >= 1.
        tail: about how much of a report is charged in full, in (0, 1).

    Raises:
        NotApplicable: for a blanket that is too small to hide anything.

    Example:
        >>> law = normal(0.25, 10, 1e-12)
        >>> round(law.mass, 3), round(float(law.weights @ law.first) * law.mass, 6)
        (0.435, 1.0)
    """
    return _number(radius, tail) if dimension == 1 else _vector(radius, dimension, tail)


def _number(a: float, tail: float) -> Law:
    reach = a - float(scipy.special.ndtri(tail))
    _refuse_large(2.0 * a * reach)
    edges = np.linspace(0.0, reach, _NUMBER + 1)
    blanket = between(edges[:-1] + a, edges[1:] + a)
    report = between(edges[:-1] - a, edges[1:] - a)
    ratio = np.exp(2.0 * a * edges)
    up = _share(report / blanket, ratio[:-1], ratio[1:])
    side = np.zeros(_NUMBER + 1)
    side[:-1] += blanket * (1.0 - up)
    side[1:] += blanket * up
    ones = np.ones(_NUMBER + 1)
    first, second = np.concatenate([ratio, ones]), np.concatenate([ones, ratio])
    return _law(np.concatenate([side, side]), first, second, float(scipy.special.ndtr(a - reach)))


def _vector(a: float, d: int, tail: float) -> Law:
    reach = a - float(scipy.special.ndtri(0.25 * tail))
    half = 0.5 * d
    short, long = (
        scipy.special.gammaincinv(half, 0.25 * tail),
        scipy.special.gammainccinv(half, 0.25 * tail),
    )
    y = np.linspace(-reach, reach, _CELLS + 1)
    t = np.sqrt(2.0 * np.linspace(math.sqrt(short), math.sqrt(long), _SHELLS + 1) ** 2)
    furthest = np.maximum(np.abs(y[:-1]), np.abs(y[1:]))
    s = np.hypot(furthest[:, None], t[1:]) * (1.0 + 1e-15)
    _refuse_large(a * float(s.max() + reach))
    level = np.exp(a * s)
    levels = np.exp(np.linspace(a * float(s.min()), a * float(s.max()), _LEVELS))
    levels[-1] = max(levels[-1], float(level.max()))
    mass = between(y[:-1], y[1:])[:, None] * _chi(half, t) * math.exp(-0.5 * a * a) / level
    place = np.clip(np.searchsorted(levels, level, side="right") - 1, 0, _LEVELS - 2)
    raised = _share(level, levels[place], levels[place + 1])
    row = np.arange(_CELLS)[:, None] * _LEVELS
    size = _CELLS * _LEVELS
    by_level = np.zeros(size)
    by_level += np.bincount((row + place).ravel(), (mass * (1.0 - raised)).ravel(), size)
    by_level += np.bincount((row + place + 1).ravel(), (mass * raised).ravel(), size)
    weights, first, second = _on_stripes(a, y, by_level.reshape(_CELLS, _LEVELS))
    beyond = 2.0 * float(scipy.special.ndtr(a - reach)) + float(
        scipy.special.gammainc(half, 0.5 * t[0] ** 2)
        + scipy.special.gammaincc(half, 0.5 * t[-1] ** 2)
    )
    first, second = (np.multiply.outer(values, levels).ravel() for values in (first, second))
    return _law(weights.ravel(), first, second, beyond)


def _on_stripes(a: float, y: Floats, mass: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the weights per level, and e^(a y) and e^(-a y), of the ends of stripes."""
    each = _CELLS // _STRIPES
    ends = y[::each]
    low, high = np.repeat(ends[:-1], each), np.repeat(ends[1:], each)
    cell = between(y[:-1], y[1:])
    grown = math.exp(0.5 * a * a) / cell
    up = _share(between(y[:-1] - a, y[1:] - a) * grown, np.exp(a * low), np.exp(a * high))
    down = _share(between(y[:-1] + a, y[1:] + a) * grown, np.exp(-a * high), np.exp(-a * low))
    neither = np.maximum(1.0 - up - down, 0.0)

    def summed(share: Floats) -> Floats:
        return np.asarray((share[:, None] * mass).reshape(_STRIPES, each, -1).sum(axis=1))

    at_ends = np.zeros((_STRIPES + 1, mass.shape[1]))
    at_ends[1:] += summed(up)
    at_ends[:-1] += summed(down)
    weights = np.concatenate([at_ends, summed(neither)])
    first = np.exp(a * np.concatenate([ends, ends[:-1]]))
    return weights, first, np.exp(-a * np.concatenate([ends, ends[1:]]))


def _law(mass: Floats, first: Floats, second: Floats, beyond: float) -> Law:
    # Nothing is left out: what no blanket covers is beyond.
    seen = mass > 0.0
    mass = mass[seen] * (1.0 - 2.0 * _SLACK)
    first, second = first[seen] * (1.0 + 6.0 * _SLACK), second[seen] * (1.0 - 6.0 * _SLACK)
    total = float(mass.sum())
    most = math.log(float((first / second).max())) * (1.0 + 1e-12)
    return Law(total, mass / total, first, second, most, beyond * (1.0 + 1e-6))


def _refuse_large(loss: float) -> None:
    if loss > _LARGEST:
        raise NotApplicable("so little noise in so many dimensions leaves no blanket that hides")


def between(low: Floats, high: Floats) -> Floats:
    """Return the normal probability of intervals, by the tail that is the lesser.

    Example:
        >>> [f"{x:.9g}" for x in between(np.array([-1.0, 8.0]), np.array([1.0, 9.0]))]
        ['0.682689492', '6.21983199e-16']
    """
    right = low > 0.0
    return np.where(
        right,
        scipy.special.ndtr(-low) - scipy.special.ndtr(-high),
        scipy.special.ndtr(high) - scipy.special.ndtr(low),
    )


def _chi(half: float, t: Floats) -> Floats:
    """Return the probability of intervals of a chi of 2 half degrees, by the lesser tail."""
    x = 0.5 * t * t
    below, above = scipy.special.gammainc(half, x), scipy.special.gammaincc(half, x)
    return np.where(below[:-1] > 0.5, above[:-1] - above[1:], below[1:] - below[:-1])


def _share(mean: Floats, low: Floats, high: Floats) -> Floats:
    """Return how likely the upper of two ends is if the mean is to be kept."""
    return np.clip((mean - low) / (high - low), 0.0, 1.0)
