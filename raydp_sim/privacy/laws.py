"""The law of a randomizer, as far as its shuffles' divergences depend on it.

Setting. W is a measure with W <= R(x) for every input x, of mass g: the blanket. For two inputs of
the victim f = dR(x)/dW and f' = dR(x')/dW are random numbers under W/g, each of mean 1/g. A `Law`
lists the values of (f, f') for two inputs at which every divergence is largest, or values that are
no better hidden than these (below). composition/law_rounds.py turns it into the divergence of a
shuffle: E h(sum of f_i - c f'_i) over independent copies, h convex and rising, c = e^epsilon.

Which inputs are worst. Three facts are used, one copy at a time, the others held fixed.

(1) Spread. If (f, f') is replaced by a random pair with that mean, E h does not decrease.
(2) Order. h(f - c f') is submodular in (f, f'), as h'' >= 0 and c >= 0, so of all joint laws with
    given marginals the one in which f falls where f' rises has the largest E h.
(3) If for some x0 the law of f at x0 is the largest in convex order among all inputs, then the
    joint law of (2) with both marginals at x0 is the largest of all: spread f to the larger
    marginal, then f', each time followed by (2). In convex order f at x0 is the largest if
    E (f - k)_+, that is the divergence of R(x) from k W, is largest at x0 for every k, because the
    means agree.

For the names that events use, with p = e^epsilon0:

* two values ("2rr", "krr", "rbin", "hadamard" with several blocks, "privunit"): f is p on a set of
  share u <= 1/2 of W and 1 elsewhere, the same share for every input; by (2) the sets of two inputs
  are disjoint at worst. g = 1/(1 + u (p - 1)). 2rr, rbin: u = 1/2; krr: 1/k; hadamard: 1/(2B).
  PrivUnit (Bhowmick et al. 2018): the density is a/q in a cap of uniform mass q and (1 - a)/(1 - q)
  outside, so W is the latter times the uniform law, and u = q. A vector inside the ball is a
  mixture of two directions, and divergences are jointly convex.
* "hadamard" with one block: two inputs' sets overlap in half, for every two inputs, so the four
  values (p, p), (p, 1), (1, p), (1, 1) have a quarter each.
* "rappor": R(x) is p^(+-1/2) times the law B of flipped zeros, + where the bit of x is set. W = B/
  sqrt(p) <= R(x), and f, f' are p where the bits of x and x' are set: independent under B, of
  probability 1/(sqrt(p) + 1).
* "laplace", a vector of an l1 ball with independent Laplace noise of scale 2 radius/epsilon0; a
  number of an interval is one of one dimension. In units of the scale inputs have |x|_1 <= A =
  epsilon0/2, and W has the density 2^-d e^(-|w|_1 - A): the furthest x, in |w - x|_1, is a corner
  of the ball against the sign of w. Under W/g, g = e^-A, the coordinates of w are independent
  Laplace numbers, and f is e^A times all e^l_i, l_i = |w_i| - |w_i - x_i|, each of mean 1.
  Let l(x) be the law of such an l: -x with probability 1/2, x with e^-x/2, between them Pr[l > v] =
  e^(-(v + x)/2)/2. (L) e^(l(x) + l(y)), independent, is smaller in convex order than e^l(x + y).
  With x >= y >= 0, Pr[l(x) + l(y) > v] e^((v + x + y)/2) is 3/4 + (v + x + y)/8 from v = -x - y to
  y - x, then 1/2 + y/4 to x - y, then 1/4 + (x + y - v)/8 to x + y; for l(x + y) it is 1/2 all the
  way. So one crosses the other once, from above to below, and their means agree (Karlin & Novikoff
  1963). A factor that is independent and not negative keeps a convex order, so all of |x|_1 may be
  put on one coordinate; and Pr[l(x) > v] - Pr[l(A) > v], x < A, crosses 0 once too, from above to
  below. So the corners are worst by (3). At a corner f is p with W-mass 1/(2p), v in (1, p) with
  density v^(-3/2)/(4 sqrt(p)), and 1 on the half towards the opposite corner, where f' rises: the
  joint law of (2). Cells of v are spread to their ends by (1).
* "vqsgd" over 2d corners: randomized response on a corner that the client draws, +-e_i with
  probability w = |x_i|/sqrt(d) for its own sign of x_i besides an equal share of what is left, x in
  the unit ball. W is what the response says whatever the corner, f = 1 + c w, c = e^epsilon' - 1 of
  the response. The j largest w of an x add up to at most A_j = sqrt(j/d) (1 - j/(2d)) + j/(2d), j
  <= d: if S is the sum of their |x_i|/sqrt(d), T that of the others, it is S + j (1 - S - T)/(2d),
  largest for T = 0 and S = sqrt(j/d) (if an equal share is among the j largest, S has fewer terms).
  A_d = 1, so the law with w = A_j - A_(j-1), j = 1 ... d, falling, and 0 on the other d corners,
  each as likely, is larger than all in convex order (majorization), and in the joint law of (2) f
  and f' have the two halves. Largest is w = A_1 = m, so epsilon0 = log(1 + c m) gives c.
* whole reports of R^Bin ("coins"): independent messages, each of the two-valued law with u = 1/2.
  Ratios multiply: f is e^y, y the sum of the losses of a random half of the messages. By (2),
  message by message, complementary inputs are worst: f' = e^(total - y). Many values of y are put
  on a lattice: to its two next points so that f' keeps its mean, which raises that of f, and
  h rises with f. (Divergences of the true pair are symmetric, so one direction is enough.)

A randomizer with a smaller loss than stated is a mixture with noise without data, of every message
alike, so its law may be taken at the stated loss. Names that are not here are refused.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.names import hadamard_blocks, parameter_of

Floats = NDArray[np.float64]

_CELLS = 64
# Reports with more than so many different ratios are put on a lattice, or refused.
_FEW, _MANY = 200, 1 << 14


@dataclass(frozen=True, eq=False)
class Law:
    """Values of (f, f') with their probabilities under W/g; see the module.

    Attributes:
        mass: g.
        weights: probabilities, which add up to 1.
        first, second: values of f and of f'.
        most: largest loss of one message, without what is beyond.
        beyond: how much of R(x) has no f, because W is 0 there; it is charged in full.
    """

    mass: float
    weights: Floats
    first: Floats
    second: Floats
    most: float
    beyond: float = 0.0


def two_valued(epsilon0: float, share: float) -> Law:
    """Return the law of densities with two values, the larger one on a share of the blanket.

    Example:
        >>> round(two_valued(1.0, 0.5).mass, 9)
        0.537882843
    """
    if not 0.0 < share <= 0.5:
        raise ValueError(f"share is {share}; it must lie in (0, 1/2]")
    p = math.exp(epsilon0)
    weights = np.array([share, share, 1.0 - 2.0 * share])
    mass = 1.0 / (1.0 + share * math.expm1(epsilon0))
    return Law(mass, weights, np.array([p, 1.0, 1.0]), np.array([1.0, p, 1.0]), epsilon0)


def independent(epsilon0: float, share: float, mass: float) -> Law:
    """Return the law of two independent ratios, each p = e^epsilon0 with this probability, else 1.

    Example:
        >>> float(independent(2.0, 0.25, 0.5).weights[2])
        0.0625
    """
    p, u = math.exp(epsilon0), share
    weights = np.array([u * (1.0 - u), u * (1.0 - u), u * u, (1.0 - u) ** 2])
    return Law(mass, weights, np.array([p, 1.0, p, 1.0]), np.array([1.0, p, p, 1.0]), epsilon0)


def interval(epsilon0: float) -> Law:
    """Return the law of a number of an interval, or a vector of an l1 ball, with Laplace noise.

    Example:
        >>> law = interval(2.0)
        >>> round(law.mass, 9), round(float(law.weights @ law.first) * law.mass, 9)
        (0.367879441, 1.0)
    """
    edges = np.exp(np.linspace(0.0, epsilon0, _CELLS + 1))
    low, high = edges[:-1], edges[1:]
    # The integrals of v^(-3/2)/4 and of v^(-1/2)/4, over sqrt(p); of mass e^(-epsilon0/2) in all.
    mass = 0.5 * (1.0 / np.sqrt(low) - 1.0 / np.sqrt(high))
    mean = 0.5 * (np.sqrt(high) - np.sqrt(low))
    up = np.clip((mean / np.maximum(mass, 1e-300) - low) / (high - low), 0.0, 1.0)
    side = np.zeros(_CELLS + 1)
    side[:-1] += mass * (1.0 - up)
    side[1:] += mass * up
    side[-1] += 0.5 * math.exp(-0.5 * epsilon0)
    weights = np.concatenate([side, side]) / (2.0 * side.sum())
    first = np.concatenate([edges, np.ones(_CELLS + 1)])
    second = np.concatenate([np.ones(_CELLS + 1), edges])
    return Law(math.exp(-0.5 * epsilon0), weights, first, second, epsilon0)


@lru_cache(maxsize=64)
def coins(losses: tuple[float, ...]) -> Law:
    """Return the law of whole reports of independent two-valued messages of these losses.

    Example:
        >>> coins((0.5, 0.5)).first.round(6).tolist()
        [1.0, 1.648721, 2.718282]
    """
    groups = Counter(loss for loss in losses if loss > 0.0).items()
    if math.prod(many + 1 for _, many in groups) > _MANY:
        raise NotApplicable(f"reports of {len(losses)} messages have too many different ratios")
    y, weights = np.zeros(1), np.ones(1)
    for loss, many in groups:
        heads = np.arange(many + 1)
        share = np.array([math.comb(many, int(j)) for j in heads]) * 0.5**many
        y = np.add.outer(y, loss * heads).ravel()
        weights = np.multiply.outer(weights, share).ravel()
    total = math.fsum(losses)
    if len(y) > _FEW:
        y, weights = _on_lattice(y, weights, total)
    mass = reduce(lambda g, loss: g * 2.0 / (math.exp(loss) + 1.0), losses, 1.0)
    return Law(mass, weights, np.exp(y), np.exp(total - y), total)


def _on_lattice(y: Floats, weights: Floats, total: float) -> tuple[Floats, Floats]:
    """Split every y between the next points of a lattice so that e^-y keeps its mean."""
    step = total / (_FEW - 1)
    below = np.clip(np.floor(y / step), 0, _FEW - 2)
    up = np.clip(np.expm1(below * step - y) / math.expm1(-step), 0.0, 1.0)
    index = below.astype(np.int64)
    kept = np.bincount(index, weights * (1.0 - up), _FEW).astype(np.float64)
    kept += np.bincount(index + 1, weights * up, _FEW)
    return step * np.arange(_FEW, dtype=np.float64), kept


def clones(epsilon0: float) -> Law:
    """Return the law of any epsilon0-LDP randomizer: two kinds of clones.

    Feldman, McMillan & Talwar 2021, Theorem 3.1. There are laws Q0 and Q1 with R(x) = (p Q0 + Q1)/
    (p + 1) and R(x') = (Q0 + p Q1)/(p + 1), and every R(z) is at least (R(x) + R(x'))/(2p) = (Q0 +
    Q1)/(2p). W is that, of mass 1/p, with its two halves distinguished, which only reveals more.

    Example:
        >>> law = clones(1.0)
        >>> round(float(law.weights @ law.first) * law.mass, 12)
        1.0
    """
    p = math.exp(epsilon0)
    large, small = 2.0 * p * p / (p + 1.0), 2.0 * p / (p + 1.0)
    half = np.array([0.5, 0.5])
    ratios = np.array([large, small])
    return Law(math.exp(-epsilon0), half, ratios, ratios[::-1].copy(), epsilon0)


def corners(epsilon0: float, alphabet: int) -> Law:
    """Return the law of vqSGD over an even number of corners.

    Example:
        >>> law = corners(1.0, 200)
        >>> round(law.mass, 4), round(float(law.weights @ law.first) * law.mass, 9)
        (0.924, 1.0)
    """
    d = alphabet // 2
    j = np.arange(d + 1)
    summed = np.sqrt(j / d) * (1.0 - 0.5 * j / d) + 0.5 * j / d
    c = math.expm1(epsilon0) / float(summed[1])
    own = 1.0 + c * np.minimum(np.diff(summed), summed[1])
    values, side = own[::-1], np.full(d, 0.5 / d)
    if d > _FEW // 2:
        edges = np.geomspace(values[0], values[-1], _FEW // 2)
        values, side = _spread(np.clip(values, edges[0], edges[-1]), side, edges)
    weights = np.concatenate([side, side])
    ones = np.ones(len(values))
    first, second = np.concatenate([values, ones]), np.concatenate([ones, values])
    return Law(1.0 / (1.0 + c / alphabet), weights / weights.sum(), first, second, epsilon0)


def _spread(values: Floats, weights: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Split every value between the next edges so that it keeps its mean."""
    below = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    up = np.clip((values - edges[below]) / (edges[below + 1] - edges[below]), 0.0, 1.0)
    kept = np.bincount(below, weights * (1.0 - up), len(edges)).astype(np.float64)
    kept += np.bincount(below + 1, weights * up, len(edges))
    return edges, kept


def _vqsgd(epsilon0: float, alphabet: int | None, share: float | None) -> Law:
    if alphabet is None or alphabet < 2 or alphabet % 2:
        raise ValueError(f"alphabet of vqsgd is {alphabet}; it must be an even number of corners")
    return corners(epsilon0, alphabet)


def _alphabet(name: str, alphabet: int | None) -> int:
    if alphabet is None or alphabet < 2:
        raise ValueError(f"alphabet of {name} is {alphabet}; it must be an integer >= 2")
    return alphabet


def _hadamard(epsilon0: float, alphabet: int | None, share: float | None) -> Law:
    blocks = hadamard_blocks(epsilon0, _alphabet("hadamard", alphabet))
    if blocks > 1:
        return two_valued(epsilon0, 0.5 / blocks)
    return independent(epsilon0, 0.5, 2.0 / (math.exp(epsilon0) + 1.0))


def _privunit(epsilon0: float, alphabet: int | None, share: float | None) -> Law:
    if share is None:
        raise ValueError("privunit needs the mass of its cap, as in 'privunit(0.25)'")
    return two_valued(epsilon0, share)


def _rappor(epsilon0: float, alphabet: int | None, share: float | None) -> Law:
    half = math.exp(0.5 * epsilon0)
    return independent(epsilon0, 1.0 / (half + 1.0), 1.0 / half)


LAWS: dict[str, Callable[[float, int | None, float | None], Law]] = {
    "2rr": lambda e, alphabet, share: two_valued(e, 0.5),
    "rbin": lambda e, alphabet, share: two_valued(e, 0.5),
    "krr": lambda e, alphabet, share: two_valued(e, 1.0 / _alphabet("krr", alphabet)),
    "hadamard": _hadamard,
    "privunit": _privunit,
    "rappor": _rappor,
    "laplace": lambda e, alphabet, share: interval(e),
    "vqsgd": _vqsgd,
}


@lru_cache(maxsize=64)
def law_of(randomizer: str | None, epsilon0: float, alphabet: int | None = None) -> Law:
    """Return the law of a named randomizer.

    Args:
        randomizer: a name of the module's list, with its parameter in brackets where it has one.
        epsilon0: > 0.
        alphabet: number of symbols, for krr and hadamard.

    Raises:
        Unsupported: for a randomizer whose law is not known.
        NotApplicable: for a name without what its law depends on.

    Example:
        >>> round(law_of("privunit(0.25)", 1.0).mass, 6)
        0.699511
    """
    kind, parameter = parameter_of(randomizer)
    if kind not in LAWS:
        named = "names no randomizer" if randomizer is None else f"is of {randomizer}"
        raise Unsupported(f"the law is known of {', '.join(LAWS)}; the event {named}")
    try:
        return LAWS[kind](float(epsilon0), alphabet, parameter)
    except ValueError as fault:
        raise NotApplicable(str(fault)) from None
