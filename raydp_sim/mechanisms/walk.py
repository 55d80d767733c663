"""Noise inside local steps: directions go in, and what leaves is made of noisy ones alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.domain import Admitted
from raydp_sim.random import ClientStream

Floats = NDArray[np.float64]
Settle = Callable[[Floats], Floats]
Count = Callable[[int, Floats, Admitted], None]


class Walk:
    """Where the noisy steps of some clients have led.

    A task hands directions to `step` and reads `total`, the sum of the noisy ones; it can write to
    nothing here. Every step is clipped, draws noise of its own, and is passed through `settle`,
    which knows no data. So whatever a client computes from its data, `total` is a function of
    Gaussian releases, `mechanism.inner_steps` of each part, each of which may depend on those
    before it.

    Attributes:
        total: of the noisy directions so far, one row per client; cannot be written to.
    """

    def __init__(
        self, mechanism: Mechanism, stream: ClientStream, settle: Settle, count: Count
    ) -> None:
        self._mechanism, self._stream = mechanism, stream
        self._settle, self._count = settle, count
        clients, domains = len(stream.ids), mechanism.inner_domains
        self._domains = domains
        self._edges = np.cumsum([0, *(domain.dimension for domain in domains)])
        self._sum = np.zeros((clients, int(self._edges[-1])))
        self._taken = np.zeros((len(domains), clients), np.int64)
        self.total = self._sum.view()
        self.total.flags.writeable = False

    def step(self, part: int, directions: Any, rows: slice = slice(None)) -> None:
        """Take one noisy step of one part, for some of the clients.

        Args:
            part: of a step, by number; each is taken as often as the mechanism has steps.
            directions: one row per client, clipped here.
            rows: which clients; a client's steps do not depend on who else takes them.

        Raises:
            InputError: for directions that are not finite, and for a step too many.
        """
        mechanism, own = self._mechanism, self._stream.take(rows)
        taken = self._taken[part, rows]
        if not len(taken):
            return
        number = int(taken[0])
        if number >= mechanism.inner_steps or (taken != number).any():
            raise InputError(
                f"mechanism '{mechanism.kind}' has {mechanism.inner_steps} noisy steps, all of "
                "which every client takes in turn; raise mechanism.steps, or take fewer"
            )
        admitted = self._domains[part].admitted(directions, own.ids, "clip")
        self._count(part, directions, admitted)
        columns = slice(int(self._edges[part]), int(self._edges[part + 1]))
        self._sum[rows, columns] += mechanism.noisy(part, number, admitted.values, own)
        self._sum[rows] = self._settle(self._sum[rows])
        # Not `taken += 1`: rows that are an array, not a slice, would be counted in a copy only.
        self._taken[part, rows] = number + 1

    def left_out(self) -> bool:
        """Say whether some client has not taken all of its steps."""
        return bool((self._taken != self._mechanism.inner_steps).any())
