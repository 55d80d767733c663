"""Privacy losses on a grid, and their convolution, both erring upwards.

Discretisation. The part of (P, Q) with losses between two grid points is split to these two so that
its masses under P and under Q are kept. Merging is a post-processing, so splitting can only
increase every divergence, and unlike rounding up it does so in the second order of the step. Losses
beyond the grid count as infinite; what they weigh under Q stands at the grid's lower end.

Composition. The transform of the tilted distribution exp(lambda l) P(l) is raised to the number of
rounds, lambda from Chernoff's bound: the tail that decides delta becomes the bulk, so rounding is
relative to delta. A cyclic convolution moves mass that leaves the window back into it, which only
adds to delta; mass above the window is bounded by Chernoff and added; rounding errors, by the
Cauchy-Schwarz inequality, too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, logsumexp

from raydp_sim.privacy.binomials import Floats, log_binomial
from raydp_sim.privacy.tilted import TiltedCoins

_MOST_WINDOW = 1 << 21
_WHOLE = 1 << 16


@dataclass(frozen=True)
class LossDistribution:
    """Masses of P on losses (-J, ..., J) step, and what counts as an infinite loss."""

    mass: Floats
    step: float
    infinite: float

    @property
    def losses(self) -> Floats:
        """The grid."""
        half = len(self.mass) // 2
        return np.arange(-half, half + 1, dtype=np.float64) * self.step

    def log_moment(self, order: float) -> float:
        """Return log E_P exp(order * loss) without the infinite part.

        Example:
            >>> law = LossDistribution(np.array([0.25, 0.0, 0.75]), math.log(3.0), 0.0)
            >>> round(law.log_moment(1.0), 9)
            0.84729786
        """
        seen = self.mass > 0.0
        return float(logsumexp(np.log(self.mass[seen]) + order * self.losses[seen]))


def _tails(pair: TiltedCoins, losses: Floats) -> tuple[Floats, Floats]:
    """Return the masses under P and Q of losses at least `losses` (> 0 for the first entry 0)."""
    p, q = np.zeros_like(losses), np.zeros_like(losses)
    slope = np.tanh(0.5 * losses)
    for m, h, mass in zip(pair.coins, pair.tilt, np.exp(pair.log_mass), strict=True):
        k = np.ceil(0.5 * m * (1.0 + slope / h) * (1.0 - 1e-15))
        k = np.where(losses <= 0.0, np.floor(0.5 * m) + 1.0, k)
        inside = k <= m
        kept = k[inside]
        above = betainc(kept, m - kept + 1.0, 0.5)
        lean = h * (kept / m) * np.exp(log_binomial(m, 0.5, kept))
        p[inside] += mass * (above + lean)
        q[inside] += mass * (above - lean)
    return p, np.maximum(q, 0.0)


def _significant(pair: TiltedCoins, tail: float) -> tuple[TiltedCoins, float]:
    """Return the pair without its rarest components, of total probability at most `tail`."""
    order = np.argsort(pair.log_mass)
    total = np.cumsum(np.exp(pair.log_mass[order]))
    dropped = int(np.searchsorted(total, tail))
    kept = np.sort(order[dropped:])
    lost = float(total[dropped - 1]) if dropped else 0.0
    part = TiltedCoins(pair.coins[kept], pair.tilt[kept], pair.log_mass[kept], pair.most)
    return part, lost


def discretise(coins: TiltedCoins, step: float, tail: float, rate: float = 1.0) -> LossDistribution:
    """Put one round's losses on a grid of this step, erring upwards.

    Args:
        coins: the round's dominating pair, without sampling.
        step: > 0.
        tail: most probability that may count as an infinite loss.
        rate: of sampling, in (0, 1]; pld.py has the sampled pair and its proof.

    Example:
        >>> pair = TiltedCoins(np.full(1, 9.0), np.full(1, 0.5), np.zeros(1), 2 * math.atanh(0.5))
        >>> law = discretise(pair, 0.01, 1e-12)
        >>> round(float(law.mass.sum()), 9)
        1.0
    """
    pair, lost = _significant(coins, 0.5 * tail)
    g = rate
    # A loss beyond which P weighs at most tail/2, not far above the least.
    cut = min(4.0 * deviation(pair), pair.most)
    while cut < pair.most and _tails(pair, np.array([cut]))[0][0] > 0.5 * tail:
        cut = min(1.3 * cut, pair.most)
    width = math.log1p(g * math.expm1(cut))
    half = math.ceil(width / step) + 1
    grid = np.arange(half + 1) * step
    base = np.log1p(np.expm1(np.minimum(grid, 700.0)) / g)
    p, q = _tails(pair, base)
    p = g * p + (1.0 - g) * q
    cell_p, cell_q = -np.diff(p), -np.diff(q)
    # masses x, y at the two ends: x + y = cell_p, x e^-low + y e^-high = cell_q.
    up = (cell_p - cell_q * np.exp(grid[:-1])) / -math.expm1(-step)
    up = np.clip(up + 1e-7 * cell_p, 0.0, np.maximum(cell_p, 0.0))
    positive = np.zeros(half + 1)
    positive[:-1] += cell_p - up
    positive[1:] += up
    positive = np.maximum(positive, 0.0)
    negative = positive * np.exp(-grid)
    negative[-1] += q[-1]
    infinite = float(p[-1]) + lost
    rest = 1.0 - float(positive[1:].sum()) - float(negative[1:].sum()) - infinite
    mass = np.concatenate([negative[:0:-1], [max(rest, 0.0)], positive[1:]])
    return LossDistribution(mass, step, infinite)


def deviation(pair: TiltedCoins) -> float:
    """Return about the standard deviation of the pair's loss.

    Example:
        >>> deviation(TiltedCoins(np.full(1, 4.0), np.full(1, 0.5), np.zeros(1), 1.1))
        0.5
    """
    weight = np.exp(pair.log_mass)
    return 2.0 * math.sqrt(float((weight * pair.tilt**2 / pair.coins).sum()))


@dataclass(frozen=True)
class Composed:
    """The composed distribution in a window, tilted by `order`."""

    losses: Floats
    tilted: Floats
    log_scale: float
    order: float
    beyond: float
    rounding: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at epsilon."""
        seen = self.losses > epsilon
        losses = self.losses[seen]
        # Past e^300 the charge for rounding alone exceeds 1.
        scale = np.exp(np.minimum(self.log_scale - self.order * losses, 300.0))
        gain = -np.expm1(epsilon - losses) * scale
        error = self.rounding * math.sqrt(float((gain * gain).sum()))
        return min(1.0, float((self.tilted[seen] * gain).sum()) + error + self.beyond)


def convolve(parts: Sequence[tuple[LossDistribution, int]], order: float) -> Composed:
    """Convolve the parts, each the given number of times, after tilting them by `order`."""
    step = parts[0][0].step
    centre, variance, log_scale, infinite, rounds, reach = 0.0, 0.0, 0.0, 0.0, 0, 0
    laws = []
    for law, times in parts:
        log_moment = law.log_moment(order)
        weight = law.mass * np.exp(order * law.losses - log_moment)
        mean = float(weight @ law.losses)
        centre += times * mean
        variance += times * float(weight @ (law.losses - mean) ** 2)
        log_scale += times * log_moment
        infinite += times * law.infinite
        rounds += times
        reach += times * (len(law.mass) // 2)
        laws.append((weight, times))
    half = math.ceil(12.0 * math.sqrt(variance) / step) + 32
    # All of it where that is small: otherwise its lower tail may come back at the top.
    half = 2 * reach + 2 if 2 * reach < _WHOLE else min(half, 2 * reach + 2)
    size = min(1 << math.ceil(math.log2(2 * half + 1)), _MOST_WINDOW)
    transform = np.ones(size // 2 + 1, dtype=np.complex128)
    for weight, times in laws:
        index = np.arange(len(weight)) - len(weight) // 2
        folded = np.bincount(index % size, weights=weight, minlength=size)
        transform *= np.power(np.fft.rfft(folded), times)
    cyclic = np.fft.irfft(transform, size)
    first = round(centre / step) - size // 2
    tilted = np.maximum(np.roll(cyclic, -first), 0.0)
    losses = np.arange(first, first + size, dtype=np.float64) * step
    top = float(losses[-1])
    # Chernoff, at this order and at larger ones.
    orders = order + np.array([0.0, 2.0, 4.0, 8.0]) / math.sqrt(variance + step * step)
    logs = [sum(t * law.log_moment(float(o)) for law, t in parts) - o * top for o in orders]
    above = math.exp(min(0.0, *map(float, logs))) if reach * step > top else 0.0
    rounding = (rounds + 64.0) * 2e-15 * math.sqrt(float((tilted * tilted).sum()))
    return Composed(losses, tilted, log_scale, order, infinite + above, rounding)
