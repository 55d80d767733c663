"""Exact moments and losses of mechanisms whose reports are symbols of a finite alphabet."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from raydp_sim.check.samples import SERVER
from raydp_sim.mechanisms.base import Counts, Floats, Mechanism


class Parts(NamedTuple):
    """A decoder as an affine map: its constant, and what one symbol at one index adds to it."""

    constant: Floats
    added: Floats

    def decoded(self, payload: Floats) -> Floats:
        """Decode each report by itself, shape (reports, dimension).

        Example:
            >>> parts = Parts(np.zeros(1), np.array([[[-1.0], [2.0]]]))
            >>> parts.decoded(np.array([[0], [1], [1]])).tolist()
            [[-1.0], [2.0], [2.0]]
        """
        each = np.tile(self.constant, (len(payload), 1))
        for index, table in enumerate(self.added):
            each += table[payload[:, index]]
        return each


def contributions(mechanism: Mechanism) -> Parts:
    """Decode every symbol at every message index by itself."""
    return contributions_of(lambda counts: mechanism.decode(counts, SERVER), mechanism.zero())


def contributions_of(decode: Callable[[Counts], Floats], zero: Counts) -> Parts:
    """Decode every cell of an accumulator by itself."""
    constant = decode(zero)
    added = np.empty((*zero.shape, len(constant)))
    for place in np.ndindex(zero.shape):
        counts = zero.copy()
        counts[place] = 1
        added[place] = decode(counts) - constant
    return Parts(constant, added)


def exact_moments(
    mechanism: Mechanism, values: Floats, parts: Parts | None = None
) -> tuple[Floats, Floats]:
    """Return mean and summed variance of a client's decoded report, from every symbol's law.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> mean, variance = exact_moments(make("2rr", epsilon_local=1.0), np.array([[1.0]]))
        >>> round(float(mean[0, 0]), 9), round(float(variance[0]), 6)
        (1.0, 0.920674)
    """
    return moments(mechanism.laws(values), contributions(mechanism) if parts is None else parts)


def moments(laws: list[Floats], parts: Parts) -> tuple[Floats, Floats]:
    """Return mean and summed variance of a decoded report, per row of the laws of its messages."""
    rows = len(laws[0])
    mean, variance = np.tile(parts.constant, (rows, 1)), np.zeros(rows)
    for law, part in zip(laws, parts.added, strict=True):
        expected = law @ part
        mean += expected
        variance += law @ (part**2).sum(axis=1) - (expected**2).sum(axis=1)
    return mean, variance


def losses(laws: list[Floats]) -> Floats:
    """Return per pair of inputs the exact log-likelihood ratio of the worst report.

    Messages are independent given the value, so a report's loss is the sum over its messages.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> laws = make("2rr", epsilon_local=1.0).laws(np.array([[0.0], [1.0]]))
        >>> round(float(losses(laws).max()), 9)
        1.0
    """
    total = np.zeros((len(laws[0]), len(laws[0])))
    for law in laws:
        total += message_loss(law)
    return total


def message_loss(law: Floats) -> Floats:
    """Return per pair of inputs the largest log-likelihood ratio of one message."""
    reached = law[:, law.max(axis=0) > 0.0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(reached)[:, None] - np.log(reached)[None]
    # Where neither input gives the symbol, it tells them apart no better than any other.
    return np.asarray(np.where(np.isnan(ratio), -np.inf, ratio).max(axis=2))
