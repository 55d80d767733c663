"""Asynchronous batches: clients check in, work and report when they can."""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.random import Ids
from raydp_sim.schedule.batch import Cohort, Timing, closing
from raydp_sim.schedule.calendar import Arrivals, Calendar, joined
from raydp_sim.schedule.world import World

# Check-ins looked at together, at least; a batch's worth if that is more.
_CHUNK = 1024


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Where a buffer was after a batch; cheap to take, since its parts are never changed."""

    now: float
    period: int
    under_way: tuple[Arrivals, ...]

    def columns(self) -> dict[str, Any]:
        """Return it as arrays, for a checkpoint."""
        rows = joined(list(self.under_way)).in_order()
        columns = {each.name: getattr(rows, each.name) for each in fields(Arrivals)}
        # Under a name of its own: a row has a period too.
        return {"now": np.asarray(self.now), "at_period": np.asarray(self.period), **columns}


class Buffer:
    """The batch that is filling, what is under way to it, and who may begin to work.

    Check-ins are looked at in chunks, in order of time. What arrives by the moment that closes a
    batch can only stem from check-ins before it, so the chunk that holds this moment is cut there
    and the rest of it is looked at again for the next batch: by then it is known who is free.

    A client is free if it is neither at work nor in the batch.

    Args:
        policy: when batches close.
        patience: time without a closed batch after which nothing more is waited for.
        least: reports below which a batch is not released.
        clients: how many there are.
        saved: from `saved`, to go on from there.
    """

    def __init__(
        self,
        policy: Asynchronous,
        patience: float,
        least: int,
        clients: int,
        saved: dict[str, Any] | None = None,
    ) -> None:
        self.policy, self.patience, self.least = policy, patience, least
        self.now, self.period, self.loaded = 0.0, 0, False
        self.calendar, self.held = Calendar(), Arrivals()
        self.twice: list[Ids] = []  # whose report came again while it was in the batch
        self.in_batch = np.zeros(clients, np.bool_)
        self.busy_until = np.full(clients, -np.inf)
        self.loses = np.zeros(clients, np.bool_)
        self.times: NDArray[np.float64] = np.empty(0)  # of this period's check-ins, in order
        self.ids: Ids = np.empty(0, np.uint32)
        if saved is not None:
            self._restore(saved)

    def next(self, release: int, world: World, seen: bool = False) -> tuple[Cohort, Timing] | None:
        """Fill the batch of a release; None if nothing closes it within the patience.

        Args:
            release: its number.
            world: the clients.
            seen: whether whoever collects sees the reports as they come; then the last of them are
                released even if nothing closes their batch, so that they are paid for.
        """
        opened = self.now
        limit = math.inf if self.policy.deadline is None else opened + self.policy.deadline
        end = opened + self.patience
        counts = {"asked": 0, "dropped": 0, "late": 0, "repeated": 0}
        while True:
            rows, horizon = self._chunk(world)
            begun, started = self._begin(rows, release, world)
            coming = joined([self.calendar.until(horizon), begun]).in_order()
            real = ~(coming.lost | coming.copy) & (coming.time <= horizon)
            arrivals = np.concatenate([self.held.time, coming.time[real]])
            wait = self.policy.on_short == "wait"
            closed = closing(arrivals, self.policy.batch, limit, self.least, wait)
            if closed <= min(horizon, end):
                self._advance(closed, begun.take(started <= closed), counts)
                return self._close(release, opened, counts)
            if horizon >= end:
                self._advance(end, begun.take(started <= end), counts)
                return self._close(release, opened, counts) if seen and len(self.held) else None
            self._advance(horizon, begun.take(started <= horizon), counts)

    def snapshot(self) -> Snapshot:
        """Return all that a resumed run needs: the clock and what is under way."""
        return Snapshot(self.now, self.period, self.calendar.parts())

    def _restore(self, saved: dict[str, Any]) -> None:
        self.now, self.period = float(saved["now"]), int(saved["at_period"])
        rows = Arrivals(*(np.asarray(saved[each.name]) for each in fields(Arrivals)))
        self.calendar = Calendar(rows)
        own = ~rows.copy
        self.busy_until[rows.client[own]] = rows.time[own]
        self.loses[rows.client[own]] = rows.lost[own]

    def _chunk(self, world: World) -> tuple[slice, float]:
        """Return the next check-ins after `now`, and the time up to which they are all of them."""
        every = self.policy.every
        if not self.loaded:
            self._load(self.period, world)
        elif self.now >= (self.period + 1) * every:
            # Not by dividing: (p + 1) * every / every may be less than p + 1.
            self._load(self.period + 1, world)
        first = int(np.searchsorted(self.times, self.now, side="right"))
        last = first + max(_CHUNK, self.policy.batch)
        if last < len(self.times):
            # Everything strictly before the next check-in is known.
            horizon = float(np.nextafter(self.times[last], -np.inf))
            return slice(first, last), horizon
        return slice(first, len(self.times)), (self.period + 1) * every

    def _load(self, period: int, world: World) -> None:
        """Draw everyone's check-in of a period; keep, in order, those who are there then."""
        self.period, self.loaded, every = period, True, self.policy.every
        everyone = np.arange(len(self.in_batch), dtype=np.uint32)
        place = world.root.at("check-in", period).clients(everyone)
        times = (period + place.uniform("moment")[:, 0]) * every
        there = world.there(everyone, times)
        order = np.argsort(times[there], kind="stable")
        self.ids, self.times = everyone[there][order], times[there][order]

    def _begin(
        self, rows: slice, release: int, world: World
    ) -> tuple[Arrivals, NDArray[np.float64]]:
        """Let the free clients among some check-ins work; nothing is on the calendar yet.

        Returns:
            What will come of it, and when the work began, row by row.
        """
        ids, times = self.ids[rows], self.times[rows]
        rested = self.busy_until[ids] <= np.where(self.loses[ids], times, self.now)
        free = rested & ~self.in_batch[ids] & world.willing(ids)
        ids, times = ids[free], times[free]
        answers = world.answers(ids, times, world.root.at("check-in", self.period))
        twice = np.flatnonzero(np.isfinite(answers.again))
        count = len(ids) + len(twice)
        place = np.concatenate([np.arange(len(ids)), twice])
        copy = np.arange(count) >= len(ids)
        begun = Arrivals(
            np.concatenate([answers.done, answers.again[twice]]),
            ids[place],
            np.full(count, release, np.int64),
            np.full(count, self.period, np.int64),
            answers.lost[place],
            copy,
        )
        return begun, times[place]

    def _advance(self, time: float, begun: Arrivals, counts: dict[str, int]) -> None:
        """Move the clock: those who began by then are under way, what arrived by then is here."""
        own = ~begun.copy
        counts["asked"] += int(np.count_nonzero(own))
        self.busy_until[begun.client[own]] = begun.time[own]
        self.loses[begun.client[own]] = begun.lost[own]
        self.calendar.push(begun)
        come = self.calendar.until(time)
        self.calendar.drop(time)
        counts["dropped"] += int(np.count_nonzero(come.lost))
        real = come.take(~(come.lost | come.copy))
        self.in_batch[real.client] = True
        self.held = joined([self.held, real])
        self._copies(come.take(come.copy), counts)
        self.now = time

    def _copies(self, copies: Arrivals, counts: dict[str, int]) -> None:
        """Tell copies of reports in this batch from those of reports in an earlier one."""
        span = np.int64(len(self.in_batch))
        mine = self.held.period * span + self.held.client
        same = np.isin(copies.period * span + copies.client, mine)
        self.twice.append(copies.client[same])
        counts["repeated"] += int(np.count_nonzero(same))
        counts["late"] += int(np.count_nonzero(~same))

    def _close(self, release: int, opened: float, counts: dict[str, int]) -> tuple[Cohort, Timing]:
        order = np.argsort(self.held.client, kind="stable")
        ids = self.held.client[order]
        staleness = release - self.held.version[order]
        twice = np.sort(np.concatenate([*self.twice, np.empty(0, np.uint32)]))
        self.twice = []
        self.in_batch[ids] = False
        self.held = Arrivals()
        weights = self.policy.weights(staleness)
        versions = [int(part.version.min()) for part in self.calendar.parts() if len(part)]
        timing = Timing(
            opened=opened,
            closed=self.now,
            due=self.now,
            missing=counts["dropped"],
            **counts,
            staleness=float(staleness.mean()) if len(ids) else 0.0,
            stalest=int(staleness.max(initial=0)),
            weight=1.0 if weights is None or len(ids) == 0 else float(weights.mean()),
            oldest=min(versions, default=None),
        )
        return Cohort(ids, staleness, twice), timing
