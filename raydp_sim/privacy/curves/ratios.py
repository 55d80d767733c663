"""The law of a likelihood ratio, cut at both ends, and its moments with what was cut away."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raydp_sim.privacy.curves.atoms import Kind, merged
from raydp_sim.privacy.curves.numerics import Array, log_mean_excesses, log_sum

# Cuts per standard deviation near the middle, up to so many of them; then relative lengths.
_FINE, _MIDDLE, _RIGHT, _LEFT = {"above": 24.0, "ends": 96.0}, 10.0, 1.0 / 600.0, 1.0 / 20.0


@dataclass(frozen=True)
class Ratios:
    """The law under Q of y = P/Q - 1, which has mean 0: atoms, and what bounds the rest.

    Attributes:
        y: where the atoms are.
        log_mass: logarithms of their masses.
        log_left: left of the atoms y lies in (-1, 0), and E |y| is at most e^log_left there.
        edges: rows (c, d, s, t): right of the atoms E (1 + y)^a is at most the sum over the rows
            of e^(c + a d) (r + r^2 + ...), r = e^(s + a t).
    """

    y: Array
    log_mass: Array
    log_left: float
    edges: Array

    def log_excess(self, orders: Array, upward: bool) -> Array:
        """Return log(E (1 + y)^a - 1) per order, from above or below.

        The average of (1 + y)^a - 1 - a y, which is never negative. Left of the atoms it is at most
        a |y|, right of them at most (1 + y)^a; upwards both are added, downwards left out.

        Example:
            >>> coin = Ratios(np.array([-0.5, 0.5]), np.log([0.5, 0.5]), -math.inf, NO_EDGES)
            >>> round(math.exp(coin.log_excess(np.array([3.0]), True)[0]), 9)
            0.75
        """
        found = log_mean_excesses(self.log_mass, self.y, orders, 1 if upward else -1)
        if not upward:
            return found
        if self.log_left > -math.inf:
            found = np.logaddexp(found, self.log_left + np.log(orders))
        if len(self.edges):
            c, d, s, t = self.edges.T[:, :, None]
            found = np.logaddexp(
                found, log_sum(c + orders * d + _geometric(s + orders * t), axis=0)
            )
        return found

    def thinned(self, kind: Kind) -> "Ratios":
        """Return fewer atoms, for orders >= 2 ("above") or > 1 ("ends"); erring upwards.

        Cuts are 1/24 of a standard deviation apart near 0 and 1/600 of y further right, so that a
        divergence D of order a gains less than 1e-5 of itself where (a - 1) D is below 50.
        """
        weights = np.exp(self.log_mass - self.log_mass.max())
        sd = math.sqrt(float(weights @ (self.y * self.y)) / float(weights.sum()))
        middle = np.arange(-_MIDDLE * sd, _MIDDLE * sd, sd / _FINE[kind])
        right = _further(_MIDDLE * sd, float(self.y.max()), _RIGHT)
        left = -_further(_MIDDLE * sd, -float(self.y.min()), _LEFT)
        cuts = np.maximum(np.concatenate([left, middle, right]), self.y.min())
        y, logs = merged((self.y, self.log_mass), np.unique(cuts), kind)
        return Ratios(y, logs, self.log_left, self.edges)


def _further(start: float, end: float, length: float) -> Array:
    """Return cuts from `start` to beyond `end`, each longer than the last by this share."""
    steps = max(0, math.ceil(math.log(max(end / start, 1.0)) / math.log1p(length)))
    return np.asarray(start * (1.0 + length) ** np.arange(steps + 2))


NO_EDGES = np.zeros((0, 4))


def mixture(parts: Sequence[tuple[float, Ratios]]) -> Ratios:
    """Return the mixture of laws with the given logarithms of probabilities.

    Example:
        >>> coin = Ratios(np.array([-0.5, 0.5]), np.log([0.5, 0.5]), -math.inf, NO_EDGES)
        >>> len(mixture([(math.log(0.5), coin), (math.log(0.5), coin)]).y)
        4
    """
    edges = [law.edges + np.array([log_weight, 0.0, 0.0, 0.0]) for log_weight, law in parts]
    return Ratios(
        np.concatenate([law.y for _, law in parts]),
        np.concatenate([log_weight + law.log_mass for log_weight, law in parts]),
        float(log_sum(np.array([log_weight + law.log_left for log_weight, law in parts]))),
        np.concatenate(edges),
    )


def _geometric(fall: Array) -> Array:
    """Return log(r + r^2 + ...), r = e^fall, rounded up; inf unless r < 1."""
    safe = np.minimum(fall, -1e-6) * (1.0 - 1e-9)
    return np.where(fall < -1e-6, safe - np.log(-np.expm1(safe)), math.inf)
