"""Duchi's l_inf mechanism: a corner of the cube on the client's side, or on the other."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.bitmaps import Bitmaps
from raydp_sim.mechanisms.coin import Coin
from raydp_sim.mechanisms.half_space import half_step
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
    def agreements(self) -> Floats:
        """P(at most j) for the number j of coordinates on the chosen side, from ceil(d/2) to d."""
        d = self.need_dimension()
        j = np.arange((d + 1) // 2, d + 1)
        ways = -gammaln(j + 1.0) - gammaln(d - j + 1.0)
        law = np.exp(ways - ways.max())
        if d % 2 == 0:
            law[0] *= 0.5
        law = np.cumsum(law)
        return np.asarray(law / law[-1])

    @cached_property
    def wire(self) -> Bitmaps:
        """One message of a bit per coordinate, 1 for + and 0 for -."""
        return Bitmaps(self.need_dimension())

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Round to a corner, draw how many coordinates agree, and then which."""
        n, d = values.shape
        sent = np.empty((n, 1, self.wire.octets), np.uint8)
        step = max(1, _CACHED // d)
        for first in range(0, n, step):
            rows = slice(first, first + step)
            part = stream.take(rows)
            corner = part.uniform("round", d) < 0.5 + values[rows] * (0.5 / self.radius)
            right = self.coin.shows(np.ones((len(corner), 1)), part.uniform("side"))
            # As the corner is on the chosen coordinates if the side is right, else elsewhere.
            sent[rows, 0] = np.packbits(corner ^ self._chosen(part) ^ right, axis=1)
        return Messages(sent)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the reports."""
        ones, received = counts[:-1], int(counts[-1])
        return np.asarray(self.size * ((2 * ones - received) / max(1, received)))

    def event(self) -> LocalReport:
        """Return the coin's loss: both sides give every corner the same weight, or none."""
        return self.coin.event()

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self.worst_mse() - (values * values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the error at 0."""
        return self.need_dimension() * self.size**2

    def _chosen(self, stream: ClientStream) -> NDArray[np.bool_]:
        """Draw a uniform set of at least half of the coordinates."""
        d = self.need_dimension()
        table = self.agreements
        beyond = np.searchsorted(table, stream.uniform("agreements")[:, 0], side="right")
        count = (d + 1) // 2 + np.minimum(beyond, len(table) - 1)
        high, low = stream.words("which", d)
        # The column in the last bits: no two are equal, so the set has exactly its size.
        bits = np.uint64(max(1, (d - 1).bit_length()))
        keys = (high.astype(np.uint64) << np.uint64(32) | low) >> bits << bits
        keys |= np.arange(d, dtype=np.uint64)
        last = np.take_along_axis(np.sort(keys, axis=1), count[:, None] - 1, axis=1)
        return np.asarray(keys <= last)
