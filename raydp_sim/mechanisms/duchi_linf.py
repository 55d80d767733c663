"""Duchi's l_inf mechanism: a corner of the cube on the client's side, or on the other."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.coin import ONE_COIN, Coin
from raydp_sim.mechanisms.parts.half_space import half_step
from raydp_sim.mechanisms.wires.bitmaps import Bitmaps
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# Draws handled at a time, so that the arrays of one step stay in cache.
_CACHED = 1 << 16


class DuchiLInf(Mechanism):
    """Send a corner z of {-B, B}^d on the side <z, w> > 0 of the client, or on the other.

    Duchi, Jordan & Wainwright 2018, "Minimax optimal procedures for locally private estimation",
    the l_inf sampling strategy. w is the client's vector rounded to a corner, unbiased coordinate
    by coordinate, and the right side is taken with probability e^epsilon_local /
    (e^epsilon_local + 1). Corners with <z, w> = 0 (even d) belong to each side by
    half: half as likely, given the side, as a corner inside it. As published they belong to both
    sides in full; they then are 1 + e^epsilon_local times as likely as corners of the wrong side,
    which breaks the guarantee for even d, and the error is larger as well.

    B = a C_d K with a the radius, K = (e^epsilon_local + 1) / (e^epsilon_local - 1) and
    C_d = 2^(d-1) / C(d-1, floor(d/2)). Unbiased, with the exact error d B^2 - |x|^2, in d bits.

    Fields:
        radius: of the l_inf ball, > 0.

    Example:
        >>> round(DuchiLInf(epsilon_local=1.0, dimension=10, radius=1.0).size, 4)
        8.7932
    """

    kind: ClassVar[str] = "duchi-linf"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Duchi, Jordan & Wainwright 2018"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 4.0, "dimension": 4, "radius": 2.0},
        {"epsilon_local": 0.3, "dimension": 5, "radius": 1.0},
    )

    radius: Positive

    @property
    def domain(self) -> Domain:
        """The l_inf ball."""
        return Domain("linf", self.radius, self.need_dimension())

    @cached_property
    def coin(self) -> Coin:
        """What decides on the side."""
        return Coin(self.need_epsilon())

    @property
    def size(self) -> float:
        """B, the size of every coordinate of a report."""
        d = self.need_dimension()
        # The binomial of C_d is a ratio of gamma functions half a step apart.
        return self.radius * half_step(d // 2 + 0.5) * self.coin.scale

    @cached_property
    def wire(self) -> Bitmaps:
        """One message of a bit per coordinate, 1 for + and 0 for -."""
        return Bitmaps(self.need_dimension())

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw a uniform corner and turn it to the side of the client's as the coin says.

        Turned or not, a corner between the sides is as likely as its opposite: half on each.
        """
        n, d = values.shape
        sent = np.empty((n, 1, self.wire.octets), np.uint8)
        every = np.packbits(np.ones(d, np.uint8))
        step = max(1, _CACHED // d)
        for first in range(0, n, step):
            rows = slice(first, first + step)
            part = stream.take(rows)
            own = part.uniform("round", d) < 0.5 + values[rows] * (0.5 / self.radius)
            right = self.coin.shows(np.ones((len(own), 1)), part.uniform("side"))
            words = np.stack(part.words("corner", -(-d // 64)), axis=2).astype("<u4")
            corner = words.reshape(len(own), -1).view(np.uint8)[:, : len(every)] & every
            apart = np.bitwise_count(corner ^ np.packbits(own, axis=1)).sum(axis=1, dtype=np.int64)
            turned = (2 * apart[:, None] < d) != right
            sent[rows, 0] = np.where(turned, corner ^ every, corner)
        return Messages(sent)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the reports."""
        ones, received = counts[:-1], int(counts[-1])
        return np.asarray(self.size * ((2 * ones - received) / max(1, received)))

    def event(self) -> LocalReport:
        """Return the coin's loss: nothing else depends on the value, given the uniform corner."""
        return self.coin.event()

    def randomizer(self) -> str:
        """Name the report's law: a pair of opposite corners, then one coin."""
        return ONE_COIN

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self.worst_mse() - (values * values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the error at 0."""
        return self.need_dimension() * self.size**2
