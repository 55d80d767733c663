"""Composition of loss laws by a discrete Fourier transform: sharp where many rounds add up.

The laws are put on one uniform grid by connecting the dots (losses.py), tilted by exp(order * loss)
and scaled to 1, transformed on `size` points, raised to their numbers of rounds and transformed
back. The order comes from Chernoff's bound: the tail that decides delta becomes the bulk, so that
rounding is relative to delta. What delta(epsilon) leaves out, and the inequality that covers it:

* Aliasing. The cyclic result at a loss l of the window [bottom, top] is the sum of the tilted
  masses at all l + k size step, each >= 0, so it is at least the true mass at l.
* Above the window. The mass beyond `top` is at most the least of E exp(o L) e^(-o top) over some
  orders o (Chernoff), and is charged in full.
* Below the window. Losses between epsilon and `bottom`, folded upwards, would be charged too
  little. They are charged as if the whole measure were there: total * (1 - e^(epsilon - bottom)).
* Infinite losses. At most the sum of rounds times mass, times the total of the other rounds.
* Rounding. Each entry of a transform of numbers that sum to 1 in modulus errs by at most eta =
  8 (log2(size) + 2) u: every path through the butterflies rounds so often. With b = min(1, |z| +
  eta), a product of powers z^t, by squaring, errs by at most T (eta + 4u) times the product of
  b^(t-1), T the number of all rounds. By Parseval that bounds the result's error in the 2-norm, the
  transform back adds eta times the norm, and the Cauchy-Schwarz inequality bounds its effect on
  delta. Negative values are set to 0: the true ones are not negative, so no error grows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raydp_sim.privacy.composition.direct import by_squaring
from raydp_sim.privacy.composition.losses import LossLaw, Side, connect, connect_side, join
from raydp_sim.privacy.curves.binomials import Floats

_U = 2.0**-53
_LARGEST = 1 << 20
# Grid points per standard deviation of one round's loss, tilted: many while the transform is small.
_PER_DEVIATION, _LEAST_PER_DEVIATION = 64.0, 16.0
_SMALL = 1 << 18


@dataclass(frozen=True)
class Composed:
    """The composed law in a window, tilted by `order`; module docstring for what is charged."""

    losses: Floats
    tilted: Floats
    log_scale: float
    order: float
    beyond: float
    rounding: float
    total: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at epsilon >= 0."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        gain = -np.expm1(epsilon - self.losses[first:]) * self._scale[first:]
        error = self.rounding * math.sqrt(float(gain @ gain))
        below = self.total * -math.expm1(min(0.0, epsilon - float(self.losses[0])))
        known = float(self.tilted[first:] @ gain) * (1.0 + 1e-11)
        return min(1.0, known + error + self.beyond + below)

    @cached_property
    def _scale(self) -> Floats:
        """What takes the tilt away again; past e^300 the charge for rounding alone exceeds 1."""
        return np.asarray(np.exp(np.minimum(self.log_scale - self.order * self.losses, 300.0)))


def _moments(law: LossLaw, order: float) -> tuple[float, float]:
    """Return mean and variance of the law's losses, tilted by the order."""
    losses, mass = law.atoms
    weight = np.exp(order * losses - law.log_moment(order)) * mass
    mean = float(weight @ losses)
    return mean, float(weight @ (losses - mean) ** 2)


def _on_grid(law: LossLaw, step: float, tail: float) -> LossLaw:
    """Return a law on multiples of the step whose profile is at least the given one's."""
    front = _side_on_grid(law.front, step, tail)
    if law.back is None:
        return connect(*front)
    return join(connect_side(*front), connect_side(*_side_on_grid(law.back, step, tail)))


def _side_on_grid(side: Side, step: float, tail: float) -> tuple[Floats, Floats]:
    light = np.append(side.losses[side.profile(side.losses) <= tail], side.losses[-1])
    count = min(math.ceil(float(light[0]) / step) + 1, _LARGEST // 4)
    grid = np.arange(1, count + 1, dtype=np.float64) * step
    return grid, side.profile(np.append(0.0, grid)) * (1.0 + 1e-12)


def _power(base: Floats, times: int) -> Floats:
    """Return powers of numbers in (0, 1]; those that round to 0 are not computed, which is slow."""
    seen = base > 2.0 ** (-1100.0 / max(1, times))
    return np.asarray(np.power(base, times, out=np.zeros_like(base), where=seen))


def transform(parts: Sequence[tuple[LossLaw, int]], order: float, tail: float) -> Composed:
    """Compose the parts, each so many times, in a window around where the order tilts them to.

    Args:
        parts: laws with their numbers of rounds.
        order: of the tilt, > 0; any is valid, a good one is near the root of Chernoff's bound.
        tail: mass that may count as infinite.

    Example:
        >>> one = connect(np.array([0.1]), np.array([math.tanh(0.05), 0.0]))
        >>> round(transform([(one, 100)], 4.0, 1e-12).delta(2.0), 4)
        0.0202
    """
    rounds = sum(times for _, times in parts)
    moments = [(*_moments(law, order), times) for law, times in parts]
    centre = sum(times * mean for mean, _, times in moments)
    spread = math.sqrt(sum(times * variance for _, variance, times in moments))
    each = spread / math.sqrt(rounds)
    step = max(each / _PER_DEVIATION, 24.0 * spread / _SMALL * 1.01)
    step = min(step, each / _LEAST_PER_DEVIATION)
    # The window holds 12 deviations to each side; a coarser step where that is too long.
    step = max(step, 24.0 * spread / _LARGEST * 1.01)
    size = 1 << math.ceil(math.log2(24.0 * spread / step + 64.0))
    laws = [(_on_grid(law, step, tail / rounds), times) for law, times in parts]
    first = round(centre / step) - size // 2
    eta = 8.0 * (math.log2(size) + 2.0) * _U
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    bound = np.ones(size // 2 + 1)
    log_scale, infinite, log_total, relative = 0.0, 0.0, 0.0, 0.0
    for law, times in laws:
        log_moment = law.log_moment(order)
        behind = law.behind
        up = law.mass * np.exp(order * law.losses - log_moment)
        down = behind.mass * np.exp(-(order + 1.0) * behind.losses - log_moment)
        folded = np.bincount(np.arange(1, len(up) + 1) % size, weights=up, minlength=size)
        folded += np.bincount(-np.arange(1, len(down) + 1) % size, weights=down, minlength=size)
        folded[0] += law.origin * math.exp(-log_moment)
        base = np.fft.rfft(folded)
        product *= by_squaring(base, times, np.multiply)
        bound *= _power(np.minimum(np.abs(base) * (1.0 + 4.0 * _U) + eta, 1.0), times - 1)
        log_scale += times * log_moment
        infinite += times * law.infinite
        log_total += times * math.log(law.total)
        # Exponents, their rounding and that of the sums, as a factor on the whole measure.
        longest = max(float(law.losses[-1]), float(behind.losses[-1]))
        largest = (order + 1.0) * longest + abs(log_moment)
        relative += times * 16.0 * _U * (largest + 16.0)
    tilted = np.maximum(np.roll(np.fft.irfft(product, size), -first), 0.0)
    losses = np.arange(first, first + size, dtype=np.float64) * step
    top = float(losses[-1])
    norm = math.sqrt(2.0 * float(bound @ bound) / size)
    rounding = norm * ((rounds + 1.0) * eta + 4.0 * rounds * _U) * (1.0 + 1e-9)
    reach = sum(times * float(law.losses[-1]) for law, times in laws)
    above = 0.0
    if reach >= top:
        orders = order + np.array([0.0, 2.0, 4.0, 8.0]) / (spread + step)
        logs = [sum(t * law.log_moment(float(o)) for law, t in laws) - o * top for o in orders]
        above = math.exp(min(0.0, *map(float, logs)) + relative)
    total = math.exp(min(log_total, 600.0))
    # A measure that is so much too heavy says nothing.
    beyond = (infinite + above) * total * (1.0 + 1e-9) if log_total < 600.0 else 1.0
    return Composed(losses, tilted, log_scale + relative, order, beyond, rounding, total)
