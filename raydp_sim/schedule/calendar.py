"""A calendar of arrivals: columns, not one entry per client."""

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

_NEAR = 4096


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Rows of things that will happen, in any order.

    Attributes:
        time: when.
        client: to whose report.
        version: which release its ask belonged to.
        period: of the check-in it goes back to; tells a client's reports apart.
        lost: nothing arrives, but the client is free again.
        copy: it is a second copy.
    """

    time: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    client: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    version: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    period: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    lost: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    copy: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    def __len__(self) -> int:
        return len(self.time)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64] | slice) -> "Arrivals":
        """Return some of the rows."""
        return Arrivals(*(getattr(self, each.name)[rows] for each in fields(self)))

    def in_order(self) -> "Arrivals":
        """Return the rows by time; who comes at the same time goes by client, then copies last."""
        return self.take(np.lexsort((self.copy, self.client, self.time)))


def joined(parts: list[Arrivals]) -> Arrivals:
    """Put rows together."""
    if len(parts) == 1:
        return parts[0]
    return Arrivals(
        *(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Arrivals))
    )


class Calendar:
    """Rows to come: the near ones in order, the far ones in a heap of columns.

    A row is put in order when its time comes near, so pushing and popping cost what is pushed and
    popped, and not what is on the calendar.

    Example:
        >>> calendar = Calendar()
        >>> calendar.push(Arrivals(np.array([3.0, 1.0]), *(np.zeros(2, t) for t in "Iqq??")))
        >>> calendar.until(2.0).time.tolist(), len(calendar)
        ([1.0], 2)
        >>> calendar.drop(2.0)
        >>> len(calendar)
        1
    """

    def __init__(self, rows: Arrivals | None = None) -> None:
        self.near, self.far, self.edge = Arrivals(), list[Arrivals](), -np.inf
        if rows is not None:
            self.push(rows)

    def __len__(self) -> int:
        return len(self.near) + sum(len(part) for part in self.far)

    def push(self, rows: Arrivals) -> None:
        """Add rows."""
        soon = rows.time < self.edge
        if soon.any():
            self.near = joined([self.near, rows.take(soon)]).in_order()
            self._spill()
        if not soon.all():
            self.far.append(rows.take(~soon))

    def until(self, time: float) -> Arrivals:
        """Return all rows up to and including a moment, in order; they stay on the calendar."""
        while self.far and self.edge <= time:
            self._bring_near()
        return self.near.take(slice(0, int(np.searchsorted(self.near.time, time, side="right"))))

    def drop(self, time: float) -> None:
        """Forget all rows up to and including a moment."""
        self.near = self.near.take(slice(len(self.until(time)), None))

    def _spill(self) -> None:
        """Keep what is in order short, since every push puts it in order again."""
        if len(self.near) > 4 * _NEAR and self.near.time[2 * _NEAR] < self.edge:
            self.edge = float(self.near.time[2 * _NEAR])
            cut = int(np.searchsorted(self.near.time, self.edge, side="left"))
            self.far.append(self.near.take(slice(cut, None)))
            self.near = self.near.take(slice(0, cut))

    def parts(self) -> tuple[Arrivals, ...]:
        """Return everything, in any order; the parts are never changed."""
        return (self.near, *self.far)

    def _bring_near(self) -> None:
        far = joined(self.far)
        first = min(len(far), 2 * _NEAR) - 1
        self.edge = float(np.nextafter(np.partition(far.time, first)[first], np.inf))
        soon = far.time < self.edge
        self.near = joined([self.near, far.take(soon)]).in_order()
        self.far = [] if soon.all() else [far.take(~soon)]
