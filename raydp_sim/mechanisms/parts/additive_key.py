"""A category plus a secret key in a finite abelian group: who has the key subtracts it exactly.

The group is Z_B x Z_N. Without the key, a report is the category seen through a channel that only
depends on report - category, so its law, its unbiased decoder and its error are convolutions.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.parts.budget import SLACK
from raydp_sim.mechanisms.parts.categories import allowed, codes
from raydp_sim.mechanisms.parts.entropy import law_entropy
from raydp_sim.random import Ids

_STEPS = 1 << 53


@dataclass(frozen=True, eq=False)
class AdditiveKey:
    """Keys of a group, the heavy ones about e^epsilon times as likely as the others.

    Category x is the element (x mod B, x // B), and element (b, i) the symbol b N + i. A key is
    drawn from one uniform of 53 bits, so every key's probability is a multiple of 2^-53; they are
    chosen such that no two differ by more than a factor of e^epsilon.

    Attributes:
        categories: k, at most B N.
        blocks, period: B and N.
        heavy: symbols of the heavy keys.
        epsilon: most loss of a report without its key.

    Example:
        >>> key = AdditiveKey(5, 1, 5, np.array([4]), math.log(3.0))
        >>> key.law.round(6).tolist()
        [0.142857, 0.142857, 0.142857, 0.142857, 0.428571]
    """

    categories: int
    blocks: int
    period: int
    heavy: NDArray[np.int64]
    epsilon: float

    @property
    def size(self) -> int:
        """Elements of the group."""
        return self.blocks * self.period

    @cached_property
    def units(self) -> tuple[int, int, int]:
        """Steps of 2^-53 that every key has, the heavy ones have on top, and how many have all.

        The heavy keys after the first so many have a step less, so that all add up to 1.
        """
        q, s = math.exp(-allowed(self.epsilon)), len(self.heavy)
        each = max(1, math.ceil(math.ldexp(q / (s + (self.size - s) * q), 53)))
        while True:
            left = _STEPS - each * self.size
            more = -(-left // s)
            if math.log1p(more / each) <= self.epsilon * (1.0 - 0.5 * SLACK):
                return each, more, left - (more - 1) * s
            each += 1

    @cached_property
    def law(self) -> Floats:
        """Exact probability of every key."""
        each, more, full = self.units
        units = np.full(self.size, each)
        units[self.heavy] += more - 1
        units[self.heavy[:full]] += 1
        return np.asarray(units / _STEPS)

    @property
    def loss(self) -> float:
        """Exact loss of a report without its key."""
        each, more, full = self.units
        return math.log1p((more if full else more - 1) / each)

    @property
    def entropy(self) -> float:
        """Bits of a key."""
        return float(law_entropy(self.law[None])[0])

    def draw(self, uniform: Floats) -> NDArray[np.uint32]:
        """Turn uniforms of 53 bits into keys."""
        units, more, full = self.units
        each = math.ldexp(units, -53)
        # Quotients of whole numbers below 2^53 never round up to the next whole number.
        key = (uniform / each).astype(np.int64)
        beyond = np.flatnonzero(key >= self.size)
        step = ((uniform[beyond] - self.size * each) * _STEPS).astype(np.int64)
        late = full + (step - full * more) // max(1, more - 1)
        place = np.where(step < full * more, step // max(1, more), late)
        key[beyond] = self.heavy[place]
        return key.astype(np.uint32)

    def element(self, category: Ids) -> Ids:
        """Return the symbol of a category."""
        b = np.uint32(self.blocks)
        return np.asarray(category % b * np.uint32(self.period) + category // b)

    def plus(self, symbol: NDArray[Any], key: NDArray[Any], sign: int = 1) -> Ids:
        """Return symbol + key, or symbol - key, in the group."""
        n = np.int64(self.period)
        first, second = (np.asarray(part, np.int64) for part in (symbol, key))
        block = (first // n + sign * (second // n)) % self.blocks
        return np.asarray(block * n + (first + sign * second) % n, np.uint32)

    # Without the key.

    @property
    def span(self) -> float:
        """By how much an entry of a decoded report can vary."""
        return float(np.ptp(self._decoded))

    def decode(self, counts: Counts) -> Floats:
        """Estimate the frequencies of the categories: divide by the channel's transform."""
        seen = np.fft.rfft2(self._grid(counts[0].astype(np.float64)))
        whole = self._back(seen * np.conj(self._inverse))
        return np.asarray(whole[self._held] / max(1, int(counts.sum())))

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self._errors[codes(values[:, 0])])

    def worst_mse(self) -> float:
        """Return the largest of these errors."""
        return float(self._errors.max())

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return the variance of each estimate at these shares."""
        share = np.clip(mean, 0.0, 1.0)
        placed = np.zeros(self.size)
        placed[self._held] = share
        spread = self._back(np.fft.rfft2(self._grid(placed)) * self._squares)
        return np.asarray((spread[self._held] - share) / reports)

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of the symbols."""
        own = self.element(codes(values[:, 0]))[:, None]
        return [self.law[self.plus(np.arange(self.size)[None], own, -1)]]

    @cached_property
    def _held(self) -> Ids:
        return self.element(np.arange(self.categories, dtype=np.uint32))

    @cached_property
    def _inverse(self) -> NDArray[np.complex128]:
        """Transform of g with sum_u law(u) g(u - z) = 1 for z = 0 and 0 else."""
        return np.asarray(1.0 / np.conj(np.fft.rfft2(self._grid(self.law))))

    @cached_property
    def _squares(self) -> NDArray[np.complex128]:
        """Transform of w(z), the expected square at x + z of a report of x decoded by itself."""
        square = np.fft.rfft2(self._grid(self._decoded**2))
        return np.asarray(np.conj(square) * np.fft.rfft2(self._grid(self.law)))

    @cached_property
    def _decoded(self) -> Floats:
        return self._back(self._inverse)

    @cached_property
    def _errors(self) -> Floats:
        held = np.zeros(self.size)
        held[self._held] = 1.0
        total = self._back(np.fft.rfft2(self._grid(held)) * np.conj(self._squares))
        return np.asarray(total[self._held] - 1.0)

    def _grid(self, flat: Floats) -> Floats:
        return flat.reshape(self.blocks, self.period)

    def _back(self, transform: NDArray[np.complex128]) -> Floats:
        return np.asarray(np.fft.irfft2(transform, (self.blocks, self.period))).reshape(-1)


@dataclass(frozen=True)
class Recovered:
    """What the holder of the keys computes: every category as it is.

    Attributes:
        key: of the reports that were opened.
    """

    key: AdditiveKey

    @property
    def loss(self) -> float:
        """Infinite: the category is seen."""
        return math.inf

    @property
    def span(self) -> float:
        """Return 0: nothing varies given the data."""
        return 0.0

    def decode(self, counts: Counts) -> Floats:
        """Return the frequencies."""
        return np.asarray(counts[0, self.key._held] / max(1, int(counts.sum())))

    def mse(self, values: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(len(values))

    def worst_mse(self) -> float:
        """Return 0."""
        return 0.0

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return zeros."""
        return np.zeros(len(mean))

    def laws(self, values: Floats) -> list[Floats]:
        """Return certainties."""
        own = self.key.element(codes(values[:, 0]))[:, None]
        return [(own == np.arange(self.key.size)).astype(np.float64)]
