"""Averages over how many others hide one client, charged upwards: the outer sum of two bounds."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from raydp_sim.privacy.curves.atoms import Kind
from raydp_sim.privacy.curves.binomials import rounding
from raydp_sim.privacy.curves.local import local_rdp
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.curves.ratios import Ratios, mixture
from raydp_sim.privacy.curves.windows import Buckets, below, central, window

# What a cut end may add, relative to the sum: e^-25.
_NEGLIGIBLE = -25.0
# Counts up to which each is taken by itself: so many for each bucket, or for few hiding.
_PER_BUCKET, _EXACT = 10, 1000
# More messages are taken as so many: more hide no less, and sums take longer.
_MOST = 10**11
# Least width of a bucket of others, as a share of their mean: what it costs at most.
_RELATIVE = 1e-5
# Where more than so many hide the buckets are narrow anyway, and may be wider by a factor.
_PLENTY, _WIDER = 1e6, 20.0
# Where atoms times orders are more than this, atoms are taken together.
_TERMS = 1 << 19
# Laws are made for orders up to 128, 2048, ..., so that few are made.
_FIRST, _GROWTH = 128.0, 16.0

Family = Callable[[int, float, float, Kind], Ratios]
"""(messages that hide, epsilon0, largest order, kind) -> law of the ratio, spread less by more."""


@lru_cache(maxsize=64)
def _known(key: tuple[object, ...]) -> dict[float, float]:
    return {}


def cached(key: tuple[object, ...], orders: Array, compute: Callable[[Array], Array]) -> Array:
    """Return a curve at ascending orders and compute only those not asked for before.

    The bounds on one run ask for the same curves one after another.

    Example:
        >>> cached(("doubled",), np.array([2.0, 3.0]), lambda orders: 2.0 * orders).tolist()
        [4.0, 6.0]
    """
    known = _known(key)
    new = np.array([order for order in orders if order not in known])
    if len(new):
        known.update(zip(new.tolist(), compute(new).tolist(), strict=True))
    return np.array([known[order] for order in orders])


def order_class(orders: Array) -> float:
    """Return the largest order that a law is made for, if it is to serve these ascending ones.

    Example:
        >>> order_class(np.array([2.0, 200.0]))
        2048.0
    """
    top = _FIRST
    while top < orders[-1]:
        top *= _GROWTH
    return top


def average_rdp(epsilon0: float, n: int, orders: Array, family: Family, buckets: int) -> Array:
    """Return log E_j[moment of j + 1 messages]/(alpha - 1) per order, j ~ Bin(n - 1, 1/E), upwards.

    A bucket of values of j is charged at its smallest, because more that hide are a
    post-processing. Values of j right of all buckets belong to the last one; what is left of them
    is charged at the most that any epsilon0-DP pair can have, and where that is more than e^-25 of
    the sum, its values are put into buckets too. Added to the logarithm of the sum for rounding:
    `rounding(n)`, and 1e-15 (1 + epsilon0) alpha for the powers.

    Args:
        epsilon0: >= 0.
        n: messages >= 1.
        orders: real, > 1, ascending.
        family: the law of the ratio for one value of j.
        buckets: about how many around the mean, where there are more than 1000 values of j.
    """
    if epsilon0 == 0.0 or len(orders) == 0:
        return np.zeros(len(orders))
    n = min(n, _MOST)
    first = int(np.searchsorted(orders, 2.0))
    logs = np.empty(len(orders))
    if first > 0:
        logs[:first] = _log_moments(epsilon0, n, orders[:first], family, buckets, "ends")
    if first < len(orders):
        logs[first:] = _log_moments(epsilon0, n, orders[first:], family, buckets, "above")
    return logs / (orders - 1.0)


def _log_moments(
    epsilon0: float, n: int, orders: Array, family: Family, buckets: int, kind: Kind
) -> Array:
    trials, p, top = n - 1, _hides(epsilon0), order_class(orders)
    law, log_below, first = _law(epsilon0, trials, p, top, family, buckets, kind)
    sums = law.log_excess(orders)
    caps = np.array([(a - 1.0) * local_rdp(epsilon0, a) for a in orders])
    rest = np.full(len(orders), log_below)
    cut = log_below + caps > sums + _NEGLIGIBLE
    if np.any(cut) and first > 0:
        # At large orders few hiding others, though rare, carry the moment.
        worth = float(np.max(caps[cut] - sums[cut])) - _NEGLIGIBLE
        # Rounded up to a power of two, so that few laws are made.
        worth = 2.0 ** math.ceil(math.log2(worth))
        more, left = _law_below(epsilon0, trials, p, first - 1, worth, top, family, kind)
        sums[cut] = np.logaddexp(sums[cut], more.log_excess(orders[cut]))
        rest[cut] = left
    sums = np.logaddexp(sums, rest + caps) + rounding(n) + 1e-15 * (1.0 + epsilon0) * orders
    return np.asarray(np.logaddexp(0.0, sums))


@dataclass(frozen=True)
class _Law:
    """The law of a ratio, and the same by fewer atoms, made when it is asked for."""

    full: Ratios
    kind: Kind

    @cached_property
    def few(self) -> Ratios:
        return self.full.thinned(self.kind)

    def log_excess(self, orders: Array) -> Array:
        small = len(self.full.y) * len(orders) <= _TERMS
        return (self.full if small else self.few).log_excess(orders, upward=True)


def _hides(epsilon0: float) -> float:
    """Return 1/E rounded down: fewer hide."""
    return math.exp(-epsilon0) * (1.0 - 4e-16)


@lru_cache(maxsize=8)
def _law(
    epsilon0: float, trials: int, p: float, top: float, family: Family, buckets: int, kind: Kind
) -> tuple[_Law, float, int]:
    """Return the mixture over the middle values of j, the mass left of them, and the least."""
    low, high = window(trials, p)
    few = high - low < _PER_BUCKET * buckets
    relative = _RELATIVE * (_WIDER if trials * p > _PLENTY else 1.0)
    pieces = central(trials, p, None if few else buckets, relative)
    law = _mixed(epsilon0, pieces, top, family, kind)
    return law, pieces.log_below, int(pieces.low[0])


@lru_cache(maxsize=8)
def _law_below(
    epsilon0: float,
    trials: int,
    p: float,
    high: int,
    worth: float,
    top: float,
    family: Family,
    kind: Kind,
) -> tuple[_Law, float]:
    """Return the mixture over rare small values of j, down to a probability of e^-worth."""
    pieces = below(trials, p, high, high < _EXACT, -worth)
    return _mixed(epsilon0, pieces, top, family, kind), pieces.log_below


def _mixed(epsilon0: float, pieces: Buckets, top: float, family: Family, kind: Kind) -> _Law:
    masses = pieces.log_mass.copy()
    masses[-1] = np.logaddexp(masses[-1], pieces.log_above)  # further right it is smaller still
    parts = [
        (float(mass), family(int(low) + 1, epsilon0, top, kind))
        for low, mass in zip(pieces.low, masses, strict=True)
    ]
    law = mixture(parts)
    return _Law(law if len(law.y) <= _TERMS else law.thinned(kind), kind)
