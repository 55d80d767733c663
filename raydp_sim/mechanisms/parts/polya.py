"""Whole-number noise that clients add up to discrete Laplace noise."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Floats
from raydp_sim.random import ClientStream

_FINEST = 2.0**-64


@dataclass(frozen=True)
class PolyaNoise:
    """The difference of two Polya variables, Polya(1/clients, a) with a = e^(-1/scale).

    The noise of `clients` clients adds up to the difference of two geometric variables, which is
    discrete Laplace: P(j) = (1 - a)/(1 + a) a^|j| (Goryczka & Xiong 2015, Section 4). A function
    that one client moves by at most `steps` is then (steps / scale)-DP; more clients add more.

    A Polya variable is a Poisson number of logarithmic ones, 1 + floor(log V / log(1 - (1 - a)^U))
    each (Kemp 1981), so most clients of a large group draw nothing but one uniform.

    Attributes:
        clients: how many share the noise, >= 1.
        scale: steps / epsilon, > 0.

    Example:
        >>> round(PolyaNoise(clients=1, scale=10.0).variance, 3)
        199.833
    """

    clients: int
    scale: float

    @property
    def a(self) -> float:
        """The ratio e^(-1/scale)."""
        return math.exp(-1.0 / self.scale)

    @property
    def _log_rest(self) -> float:
        """The logarithm of 1 - a."""
        return float(_log1mexp(np.array(-1.0 / self.scale)))

    @property
    def variance(self) -> float:
        """Of one client's noise: 2 a / (clients (1 - a)^2)."""
        return 0.5 / (self.clients * math.sinh(min(350.0, 0.5 / self.scale)) ** 2)

    @cached_property
    def _more_than(self) -> NDArray[np.uint64]:
        """P(Poisson > j) for j = 0, 1, ... in steps of 2^-64, as long as there is a step."""
        rate = -self._log_rest / self.clients
        chances = np.minimum(scipy.special.pdtrc(np.arange(400.0), rate), 1.0 - 2.0**-53)
        return (chances[chances >= _FINEST] / _FINEST).astype(np.uint64)

    @property
    def sampling_error(self) -> float:
        """Bound how far the noise of `clients` clients, as drawn, is from the exact law.

        Each probability of the Poisson number is off by at most a step of 2^-64, twice per client.
        With l = -log(1 - a), the comparison of V with the j-th power of p = 1 - (1 - a)^U is off by
        (1 - j log p)(l + 8) 2^-53 of that power, which is 2 (l + 8) 2^-53 / (1 - p) over all j.
        The mean of 1 / (1 - p) over U is below 1 / (l (1 - a)), and 2 l draws are expected of all
        clients. 2^-48 instead of 2^-51 leaves room for the tables' own rounding.
        """
        tables = 2.0 * self.clients * (len(self._more_than) + 2) * _FINEST
        rest = -self._log_rest
        return tables + (rest + 8.0) * math.exp(rest) * 2.0**-48

    def tail(self, clients: int, most: int) -> float:
        """Return a bound on the chance that so many clients' noise exceeds `most` in size."""
        return 2.0 * float(scipy.special.betainc(most + 1.0, clients / self.clients, self.a))

    def draw(self, stream: ClientStream) -> NDArray[np.int64]:
        """Draw one client's noise, for every client."""
        return self._one_sided(stream, "plus") - self._one_sided(stream, "minus")

    def _one_sided(self, stream: ClientStream, sign: str) -> NDArray[np.int64]:
        number = (_joined(*stream.words(f"{sign}-number")) < self._more_than).sum(axis=1)
        total = np.zeros(len(number), np.int64)
        rows = np.flatnonzero(number)
        if len(rows) == 0:
            return total
        own, columns = stream.take(rows), int(number.max())
        exponent = (own.uniform(f"{sign}-shape", columns) + 2.0**-54) * self._log_rest
        log_ratio = _log1mexp(exponent)
        high, low = own.words(f"{sign}-size", columns)
        # 64 bits, so that small values keep their digits.
        v = (high + (low + 0.5) * 2.0**-32) * 2.0**-32
        sizes = 1 + np.floor(np.log(v) / log_ratio).astype(np.int64)
        drawn = np.arange(columns) < number[rows, None]
        total[rows] = np.where(drawn, sizes, 0).sum(axis=1)
        return total


def _joined(high: NDArray[np.uint32], low: NDArray[np.uint32]) -> NDArray[np.uint64]:
    return (high.astype(np.uint64) << np.uint64(32)) | low


def _log1mexp(x: Floats) -> Floats:
    """Return log(1 - e^x) for x < 0, with all its digits at both ends."""
    half = -math.log(2.0)
    far = np.log1p(-np.exp(np.minimum(x, half)))
    return np.where(x < half, far, np.log(-np.expm1(np.maximum(x, half))))
