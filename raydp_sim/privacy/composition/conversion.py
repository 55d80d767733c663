"""From Renyi divergences to (epsilon, delta), and the search for the best order."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raydp_sim.privacy.bound import check_delta
from raydp_sim.privacy.curves.numerics import Array

ALPHA_MAX = 100_000
_PATIENCE, _QUICK = 9, 3


def rdp_to_dp(rdp: float, alpha: float, delta: float, tight: bool = True) -> float:
    """Return epsilon >= 0 such that D_alpha <= rdp implies (epsilon, delta)-DP.

    Tight: 000 Lemma 2.1.3, 002 Lemma 1 (Canonne, Kamath & Steinke 2020). Basic: Mironov 2017.

    Args:
        rdp: >= 0, of the whole run.
        alpha: real order > 1.
        delta: in (0, 1).
        tight: False for rdp + log(1/delta)/(alpha - 1), which is never smaller.

    Example:
        >>> round(rdp_to_dp(0.5, 10, 1e-6), 6)
        1.673853
    """
    check_delta(delta)
    if not alpha > 1.0:
        raise ValueError(f"alpha is {alpha}; it must be > 1")
    if not rdp >= 0.0:
        raise ValueError(f"rdp is {rdp}; it must be >= 0")
    if not tight:
        return rdp - math.log(delta) / (alpha - 1.0)
    return max(0.0, float(_tight(np.asarray(rdp), np.asarray(float(alpha)), math.log(delta))))


def _tight(rdp: Array, alpha: Array, log_delta: float) -> Array:
    return rdp + np.log1p(-1.0 / alpha) - (log_delta + np.log(alpha)) / (alpha - 1.0)


def dp_to_delta(rdp: float, alpha: float, epsilon: float) -> float:
    """Return the delta that D_alpha <= rdp implies at epsilon; the inverse of `rdp_to_dp`, tight.

    000 Lemma 2.1.3. At most 1, and never 0: what underflows is rounded up.

    Example:
        >>> f"{dp_to_delta(0.5, 10, 1.673848):.3e}"
        '1.000e-06'
    """
    if not alpha > 1.0:
        raise ValueError(f"alpha is {alpha}; it must be > 1")
    log_delta = (alpha - 1.0) * (rdp - epsilon) - math.log(alpha - 1.0)
    return max(5e-324, math.exp(min(0.0, log_delta + alpha * math.log1p(-1.0 / alpha))))


def real_order_rdp(alpha: float, below: float, above: float) -> float:
    """Return a bound at a real order from those at its two whole neighbours.

    000 Remark 5.3.2 (5.6): (alpha - 1) D_alpha is convex in alpha. For 1 < alpha < 2 `below` is
    not used, since there it is multiplied by 0.

    Args:
        alpha: real order > 1.
        below: bound at floor(alpha).
        above: bound at ceil(alpha).

    Example:
        >>> round(real_order_rdp(2.5, below=0.2, above=0.3), 9)
        0.266666667
    """
    low, high = math.floor(alpha), math.ceil(alpha)
    if low == high:
        return above
    a = high - alpha
    left = a * (low - 1) * below if low > 1 else 0.0
    return (left + (1.0 - a) * (high - 1) * above) / (alpha - 1.0)


def linear_rdp_to_dp(rho: float, delta: float, alpha_max: float = math.inf) -> float:
    """Return epsilon if D_alpha <= rho alpha for all orders up to alpha_max.

    000 Lemma 2.1.5: rho + 2 sqrt(rho log(1/delta)) at alpha = 1 + sqrt(log(1/delta)/rho); where
    that order exceeds alpha_max, the basic conversion at alpha_max.

    Example:
        >>> round(linear_rdp_to_dp(0.01, 1e-6), 6)
        0.753384
    """
    check_delta(delta)
    if rho == 0.0:
        return 0.0 if alpha_max == math.inf else rdp_to_dp(0.0, alpha_max, delta, tight=False)
    best = 1.0 + math.sqrt(-math.log(delta) / rho)
    return rdp_to_dp(rho * min(best, alpha_max), min(best, alpha_max), delta, tight=False)


def linear_rdp_simple(rho: float, delta: float) -> float:
    """Return 3 max{rho L, sqrt(rho L)}, L = log(1/delta), which `linear_rdp_to_dp` never exceeds.

    It needs delta <= 1/e; 000 Lemma 2.1.5 omits the condition, 003 states it.

    Example:
        >>> round(linear_rdp_simple(0.01, 1e-6), 6)
        1.115077
    """
    if not 0.0 < delta <= math.exp(-1.0):
        raise ValueError(f"delta is {delta}; this form needs 0 < delta <= 1/e")
    product = -rho * math.log(delta)
    return 3.0 * max(product, math.sqrt(product))


def order_grid(alpha_max: int = ALPHA_MAX) -> Array:
    """Return the whole orders 2, ..., 32 and round(32 1.3^j), up to alpha_max.

    Against all whole orders the best of these loses at most 1.84% of epsilon on the cases tried.

    Example:
        >>> int(order_grid()[-1]), len(order_grid())
        (83840, 61)
    """
    orders = [float(a) for a in range(2, min(32, alpha_max) + 1)]
    j = 1
    while round(32 * 1.3**j) <= alpha_max:
        orders.append(float(round(32 * 1.3**j)))
        j += 1
    return np.array(orders)


@dataclass(frozen=True)
class Best:
    """The least epsilon over orders, and the order that gave it."""

    epsilon: float
    alpha: int


def best_order(
    curve: Callable[[Array], Array],
    delta: float,
    alpha_max: int = ALPHA_MAX,
    refine: bool = True,
    quick: bool = False,
) -> Best:
    """Return the least tight epsilon over whole orders of a curve of divergences.

    The grid is scanned until nine increases in a row, then the best point is refined to the whole
    optimum between its neighbours. Any order is valid, so a missed optimum costs only tightness.

    Args:
        curve: ascending orders in, the whole run's divergences out; inf where a bound is silent.
        delta: in (0, 1).
        alpha_max: largest order to try.
        refine: False to stay on the grid.
        quick: True for a costly curve: three increases end the scan, and the search between orders
            ends where they differ by 1e-6 of epsilon.

    Example:
        >>> best_order(lambda orders: 0.01 * orders, 1e-6).alpha
        33
    """
    check_delta(delta)
    log_delta = math.log(delta)

    def epsilons(orders: Array) -> Array:
        return _tight(curve(orders), orders, log_delta)

    grid = order_grid(alpha_max)
    values = epsilons(grid[:31])
    patience, size = (_QUICK if quick else _PATIENCE), 6
    while len(values) < len(grid) and not _rising(values, patience):
        chunk = grid[len(values) : len(values) + size]
        values = np.append(values, epsilons(chunk))
    if not np.any(np.isfinite(values)):
        return Best(math.inf, 2)
    at = int(np.argmin(values))
    best = Best(float(values[at]), int(grid[at]))
    if refine:
        left = int(grid[max(at - 1, 0)])
        right = int(grid[min(at + 1, len(values) - 1)])
        best = _refine(epsilons, left, right, best, 1e-6 if quick else 0.0)
    return Best(max(0.0, best.epsilon), best.alpha)


def _rising(values: Array, patience: int) -> bool:
    last = values[-patience - 1 :]
    return bool(np.all((last[1:] > last[:-1]) | np.isinf(last[1:])))


def _refine(
    epsilons: Callable[[Array], Array], left: int, right: int, best: Best, tolerance: float
) -> Best:
    """Search between two whole orders, eight at a time, keeping the best one inside."""
    while right - left > 2:
        inside = np.unique(np.linspace(left, right, 10)[1:-1].round())
        inside = inside[(inside > left) & (inside < right) & (inside != best.alpha)]
        points = np.append(inside, best.alpha)
        values = np.append(epsilons(inside), best.epsilon)
        order = np.argsort(points)
        points, values = points[order], values[order]
        at = int(np.argmin(values))
        best = Best(float(values[at]), int(points[at]))
        left = int(points[at - 1]) if at > 0 else left
        right = int(points[at + 1]) if at + 1 < len(points) else right
        beside = values[max(at - 1, 0) : at + 2]
        if float(beside.max()) - best.epsilon < tolerance * best.epsilon:
            break
    return best
