"""A small population whose behaviour the tests set, and a schedule written the slow, plain way."""

import heapq
import math
from dataclasses import dataclass

import numpy as np

from raydp_sim.schedule.world import World


@dataclass
class Town:
    """Clients that are there half of the time and work for a log-normal while."""

    clients: int
    dropout: float = 0.0
    duplicates: float = 0.0
    share: float = 0.6
    median: float = 0.3
    sigma: float = 1.0

    def available(self, ids, time, root):
        moments = np.broadcast_to(np.asarray(time, float), len(ids))
        days = np.floor(moments * 4).astype(int)
        coins = np.empty(len(ids))
        for day in np.unique(days):
            place = root.at("there", int(day)).clients(ids[days == day])
            coins[days == day] = place.uniform("coin")[:, 0]
        return coins < self.share

    def durations(self, ids, ask, root):
        normal = ask.at("work").clients(ids).normal("z")[:, 0]
        return self.median * np.exp(self.sigma * normal)

    def rate(self):
        return self.share


def naive(policy, least, town, root, releases, able=None, seen=False):
    """Play asynchronous batches event by event, client by client; return (ids, staleness, timing).

    One heap of events: check-ins, arrivals, losses, copies. Nothing is looked at ahead of its time.
    """
    world = World(town, root, able=able)
    everyone = np.arange(town.clients, dtype=np.uint32)
    heap, loaded = [], -1
    busy, batch, batches = {}, {}, []
    release, opened, now = 0, 0.0, 0.0
    counts = dict.fromkeys(("asked", "dropped", "late", "repeated"), 0)
    limit = opened + (policy.deadline or math.inf)

    def load(period):
        moments = root.at("check-in", period).clients(everyone).uniform("moment")[:, 0]
        for client in range(town.clients):
            time = (period + moments[client]) * policy.every
            heapq.heappush(heap, (time, 1, client, "check-in", period, 0))

    def close(time):
        nonlocal release, opened, limit, batch
        ids = np.array(sorted(batch), dtype=np.uint32)
        stale = np.array([release - batch[int(i)][1] for i in ids], dtype=np.int64)
        batches.append((ids, stale, opened, time, dict(counts)))
        batch = {}
        counts.update(dict.fromkeys(counts, 0))
        release, opened = release + 1, time
        limit = opened + (policy.deadline or math.inf)

    def due():
        """The moment of the deadline, if the batch may be closed then as it is."""
        if math.isinf(limit):
            return math.inf
        return limit if len(batch) >= least or policy.on_short == "discard" else math.inf

    while release < releases:
        while not heap or heap[0][0] >= (loaded + 1) * policy.every:
            loaded += 1
            load(loaded)
        time = heap[0][0]
        end = opened + policy.longest_wait(0.0)
        if min(time, due()) > end:
            if not (seen and batch):
                return batches
            close(end)
            continue
        if due() < time:
            close(due())
            continue
        time, _, client, what, period, version = heapq.heappop(heap)
        now = time
        if what == "check-in":
            one = np.array([client], dtype=np.uint32)
            if client in busy or client in batch:
                continue
            if not (world.there(one, now)[0] and world.willing(one)[0]):
                continue
            answer = world.answers(one, now, root.at("check-in", period))
            busy[client] = True
            counts["asked"] += 1
            kind = "lost" if answer.lost[0] else "report"
            heapq.heappush(heap, (answer.done[0], 0, client, kind, period, release))
            if math.isfinite(answer.again[0]):
                heapq.heappush(heap, (answer.again[0], 0, client, "copy", period, release))
        elif what == "lost":
            del busy[client]
            counts["dropped"] += 1
        elif what == "report":
            del busy[client]
            batch[client] = (period, version)
            after_limit = now >= limit and policy.on_short == "wait" and len(batch) >= least
            if len(batch) >= policy.batch or after_limit:
                close(now)
        elif client in batch and batch[client][0] == period:
            counts["repeated"] += 1
        else:
            counts["late"] += 1
    return batches
