"""The one place where values meet a mechanism: checked against its domain, randomized, counted."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Mechanism, Messages
from raydp_sim.mechanisms.domain import Admitted
from raydp_sim.mechanisms.parts.exact import exact_sum, unit
from raydp_sim.mechanisms.walk import Settle, Walk
from raydp_sim.random import ClientStream

Floats = NDArray[np.float64]

_SHARE = 2.0**40
# Doubles handled at a time, so that they stay in cache.
_CACHED = 1 << 16


@dataclass
class Clipped:
    """What clipping did to some values, in exact sums that add up in any order.

    Attributes:
        rows: values that lay outside the domain.
        share: sum of the parts of their norms that were cut away, in units of 2^-40.
        cut: sum of what was taken from them (`exact_sum`), in units of `unit(radius)`; without
            columns where nobody asks for it.
        inside: messages of values that the mechanism itself had to clip, though inside.
        values: all values that were randomized.
    """

    cut: Counts
    rows: int = 0
    share: int = 0
    inside: int = 0
    values: int = 0

    def add(self, other: "Clipped") -> None:
        """Add what was counted elsewhere."""
        self.cut = self.cut + other.cut
        self.rows += other.rows
        self.share += other.share
        self.inside += other.inside
        self.values += other.values

    @property
    def mean_share(self) -> float:
        """By how much of their norm the values outside were clipped, on average."""
        return self.share / _SHARE / self.rows if self.rows else 0.0


def nothing_clipped(mechanism: Mechanism, sums_cut: bool = True) -> Clipped:
    """Return the counts of no values at all.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> nothing_clipped(make("2rr", epsilon_local=1.0)).rows
        0
    """
    return Clipped(np.zeros((2, mechanism.domain.width if sums_cut else 0), np.int64))


@dataclass
class Randomizer:
    """A mechanism that randomizes nothing unchecked, and counts what it clips.

    Where noise is added inside local steps (`Mechanism.inner_steps`), clients are handed a `walk`,
    and the only values that can be sent are the very ones that it holds.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> from raydp_sim.random import Stream
        >>> laplace = make(
        ...     "laplace", epsilon_local=1.0, dimension=1, radius=1.0, on_out_of_range="clip"
        ... )
        >>> guard = Randomizer(laplace)
        >>> stream = Stream(1).clients(np.arange(2, dtype=np.uint32))
        >>> _ = guard(np.array([[0.5], [4.0]]), stream)
        >>> guard.clipped.rows, guard.clipped.mean_share
        (1, 0.75)
    """

    mechanism: Mechanism
    sums_cut: bool = True  # whether `cut` is summed; of long vectors that takes longer than they do
    clipped: Clipped = field(init=False)
    _walk: Walk | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.clipped = nothing_clipped(self.mechanism, self.sums_cut)

    @property
    def walk(self) -> Walk:
        """The noisy steps of the clients that are being asked."""
        if self._walk is None:
            raise InputError(
                f"mechanism '{self.mechanism.kind}' adds its noise once, not inside local steps; "
                "use gaussian-steps"
            )
        return self._walk

    def begin(self, stream: ClientStream, settle: Settle) -> None:
        """Begin the noisy steps of a block of clients, if the mechanism has any.

        Args:
            stream: of the randomizer's draws, one row per client.
            settle: what of the sum of noisy directions is kept after a step; it knows no data.
        """
        if self.mechanism.inner_steps:
            self._walk = Walk(self.mechanism, stream, settle, self._count_step)

    def check(self, values: Any) -> None:
        """Refuse values that did not come out of the noisy steps, if there are to be any.

        Raises:
            InputError: says what has to be returned.
        """
        if not self.mechanism.inner_steps:
            return
        walk = self.walk
        if values is not walk.total or walk.left_out():
            raise InputError(
                f"mechanism '{self.mechanism.kind}' adds its noise inside local steps: `client` "
                f"must take all {self.mechanism.inner_steps} of them by `randomizer.walk.step` and "
                "return `randomizer.walk.total` itself"
            )

    def walked(self, total: Floats, weights: Floats | None = None) -> Messages:
        """Send sums of noisy steps, which are randomized already, as their means.

        Args:
            total: of `Walk`, possibly of several in another order; checked by `check`.
            weights: of each row; applied to what is noisy, which costs nothing.
        """
        mean = total / self.mechanism.inner_steps
        if weights is not None:
            mean *= weights[:, None]
        return Messages(mean[:, None, :])

    def __call__(self, values: Any, stream: ClientStream) -> Messages:
        """Check and randomize values, one row per entry of the stream.

        Raises:
            InputError: names the client and the coordinate of the first value refused.
        """
        return self.send(values, self.mechanism.admit(values, stream.ids), stream)

    def send(
        self,
        raw: Any,
        admitted: Admitted,
        stream: ClientStream,
        weights: Floats | None = None,
        adds: bool = False,
    ) -> Messages:
        """Randomize values that the mechanism has admitted.

        Args:
            raw: the values before that, which clipping is measured against.
            admitted: the same, from `Mechanism.admit`.
            stream: of the randomizer's draws.
            weights: in (0, 1], of each row, applied before it is randomized; a ball holds every
                value that is scaled down.
            adds: whether messages are only added up: then nobody need scale them before.
        """
        self._count(raw, admitted)
        if weights is not None:
            admitted = Admitted(admitted.values * weights[:, None], admitted.share)
        if adds and self.mechanism.sends_values and admitted.factors is not None:
            return Messages(admitted)
        sent = self.mechanism.messages_of(admitted, stream)
        self.clipped.inside += sent.clipped
        return sent

    def _count_step(self, part: int, raw: Any, admitted: Admitted) -> None:
        """Count what was clipped in a step; directions change, so nothing is summed up of them."""
        self.clipped.values += len(admitted)
        if admitted.share is not None:
            self.clipped.rows += int(np.count_nonzero(admitted.share > 0.0))
            self.clipped.share += int(np.rint(admitted.share * _SHARE).astype(np.int64).sum())

    def _count(self, raw: Any, admitted: Admitted) -> None:
        self._count_step(0, raw, admitted)
        if admitted.share is None or not self.sums_cut:
            return
        rows = np.flatnonzero(admitted.share > 0.0)
        # A few rows at a time: a block may be large, where it is looked at and not copied.
        given, step = np.asarray(raw), unit(self.mechanism.domain.radius)
        some = max(1, _CACHED // given.shape[1])
        for first in range(0, len(rows), some):
            part = rows[first : first + some]
            taken = given[part].astype(np.float64) - admitted.values[part]
            self.clipped.cut = self.clipped.cut + exact_sum(taken, step)
