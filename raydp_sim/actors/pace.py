"""How many releases one call carries, where none depends on the one before."""

import time
from collections.abc import Callable

from raydp_sim.scenario.sections import Placement

_SECONDS = 0.5  # that a span may take: rows come in spans, and somebody may be watching
_BYTES = 1 << 26  # of reports in a span; some spans are under way at once
_CHUNK = 1 << 22  # larger batches go chunk by chunk, and gain nothing from company
_MOST = 64


class Pace:
    """Says how many releases the next span has; nothing but time depends on it.

    Args:
        placement: what the user says.
        clock: of wall-clock seconds.

    Example:
        >>> seconds = iter([0.0, 0.01, 0.03, 1.03])
        >>> pace = Pace(Placement(), lambda: next(seconds))
        >>> [pace.after(releases, 1000) for releases in (1, 1, 2, 2)]
        [1, 2, 4, 1]
    """

    def __init__(self, placement: Placement, clock: Callable[[], float] = time.monotonic) -> None:
        given = placement.span
        if given == "auto" and placement.checkpoint_seconds == 0:
            given = 1  # a checkpoint after every release
        self.fixed = None if given == "auto" else given
        self.clock = clock
        self.span = 1
        self._last: float | None = None

    def after(self, releases: int, size: int) -> int:
        """Return it, now that a span has been made.

        Args:
            releases: that it had.
            size: bytes of the reports of one.
        """
        if self.fixed is not None:
            return self.fixed
        now, before = self.clock(), self._last
        self._last = now
        if size > _CHUNK:
            self.span = 1
        elif before is not None:
            fit = min(_SECONDS * releases / max(now - before, 1e-9), _BYTES / max(size, 1), _MOST)
            self.span = max(1, min(2 * self.span, int(fit)))
        return self.span
