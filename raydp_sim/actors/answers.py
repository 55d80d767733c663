"""What the clients of one actor answer, block by block: computed, checked, randomized."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.actors.payloads import Kept, Payloads
from raydp_sim.errors import InputError, RunError
from raydp_sim.mechanisms.base import Counts, Mechanism, Messages
from raydp_sim.mechanisms.domain import Admitted
from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.mechanisms.randomizer import Clipped, Randomizer
from raydp_sim.mechanisms.recoverable import Recoverable
from raydp_sim.mechanisms.sequences import KeyBook
from raydp_sim.random import ClientStream, Ids, Stream
from raydp_sim.stream.sealed import fingerprint, record_ids
from raydp_sim.tasks.base import Answer, Arrays, Ask, Floats, Setting, Task
from raydp_sim.tasks.trial import check_values

_BLOCK_BYTES = 1 << 22
# Of the data that one block of clients may hold: where they are copied, and where they lie behind
# one another and only what a mechanism makes of them takes room.
_COPY_BYTES, _LOOK_BYTES = 1 << 26, 1 << 29
# Of the values that a block computes, were they doubles: gradients are looked at again by who
# clips and randomizes them, and should still be in cache then. Where samples are longer than the
# gradient, those pass through the cache meanwhile, and more clients in a block are faster.
_SHORT_BYTES, _MADE_BYTES = 1 << 22, 1 << 23

Weigh = Callable[[NDArray[np.int64] | None], Floats | None]


@dataclass(frozen=True, eq=False)
class Receipt:
    """What the simulation's analyst learns of a dispatch; no actor of the protocol sees it.

    Attributes:
        reports: clients that answered.
        fewest: values of the client that sent fewest.
        most: values of the client that sent most.
        clipped: what the domain cut off.
        truth: of those who answered.
        seen: what the task counted.
        groups: those who answered, by group; None where the population has none.
    """

    reports: int
    fewest: int
    most: int
    clipped: Clipped
    truth: Counts
    seen: Counts | None
    groups: Counts | None = None


class Given(NamedTuple):
    """Randomized answers: message l of value i, and which of the reporting clients i is of.

    Where the mechanism has levels, `rid[i]` is the id of value i's record, and `keys[i, j]` its key
    for level j.
    """

    payload: Any  # an array, or Summed
    owner: NDArray[np.int64] | None
    clipped: Clipped
    seen: Counts | None
    rid: NDArray[np.uint64] | None = None
    keys: NDArray[Any] | None = None


class Answers:
    """Clients' data and state, and how they answer asks.

    A task that reports what clients hold returns the very rows it was given. They are the same in
    every release, so they are checked once, before the first; and nobody can write to them.
    """

    def __init__(self, task: Task, setting: Setting, data: Any, ids: Ids, stream: Stream) -> None:
        self.task, self.setting = task, setting
        self.data, self.ids, self.stream = data, ids, stream
        self.memory: Arrays = {}
        self._checked: tuple[Any, Admitted] | None = None
        self._book = KeyBook(first=int(ids[0]) if len(ids) else 0)
        _keep(data)

    def begin(self) -> None:
        """Start the clients' state; refuse data that can never be used."""
        stream = self.stream.at("memory").clients(self.ids)
        self.memory = self.task.memory(self.setting, self.data, stream)
        check_values(self.task, self.setting, self.data, self.ids, self.stream)

    def restore(self, memory: Arrays) -> None:
        """Take the clients' state up from a checkpoint."""
        self.memory = {name: np.array(memory[name]) for name in self.memory}

    def give(
        self,
        release: int,
        asks: dict[int, Ask],
        rows: Any,
        stale: NDArray[np.int64] | None,
        slots: NDArray[np.int64] | None,
        weigh: Weigh,
        collected: Payloads | None = None,
    ) -> Given:
        """Let the clients of some rows answer, each the ask that it was given.

        A block's reports, not its data, should fit the cache: a mechanism that samples a few of
        many coordinates draws little per client and is slow on few clients. Where clients compute
        what they send, that should.

        Args:
            release: that the answers are for.
            asks: by version.
            rows: a slice of all, or their numbers.
            stale: how many versions behind each row's ask is; None: none is.
            slots: of each row.
            weigh: how much each report counts, by its staleness.
            collected: where messages go; all are kept by default.
        """
        ids, mechanism = self.ids[rows], asks[release].mechanism
        randomizer = Randomizer(mechanism, self.task.sums_cut)
        stream = self.stream.at("randomize", release)
        task_stream = self.stream.at("task", release).clients(ids)
        size = self._block(mechanism, copied=not isinstance(rows, slice))
        collected = collected or Kept()
        collected.expect(len(ids))
        owners: list[tuple[int, int, NDArray[np.int64] | None]] = []
        several, seen, first = False, None, 0
        keys, rids = [], []
        for start in range(0, max(1, len(ids)), size):
            block = slice(start, start + size)
            mine = block if isinstance(rows, slice) else rows[block]
            held = _keep(self.data[mine])
            behind = None if stale is None else stale[block]
            own = None if slots is None else slots[block]
            streams = task_stream.take(block), stream.clients(ids[block])
            answer = self._answer(release, asks, mine, held, behind, own, randomizer, streams)
            weights, each = weigh(behind), self._owners(answer, len(held))
            heavy = weights if weights is None or each is None else weights[each]
            sent = self._sent(
                randomizer, answer, held, mine, ids[block], stream, heavy, collected.adds
            )
            collected.add(sent.payload)
            if sent.keys is not None:
                keys.append(sent.keys)
                rids.append(self._recorded(mechanism, stream, ids[block]))
                if isinstance(mechanism, Recoverable):
                    mark = np.array([fingerprint(rids[-1], np.asarray(answer.values)[:, 0])])
                    seen = mark if seen is None else seen + mark
            owners.append((first, len(held), each))
            several |= each is not None
            if answer.seen is not None:
                seen = answer.seen if seen is None else seen + answer.seen
            first += len(held)
            # The memory of these values is that of the next ones, while it is in cache.
            del answer, sent
        owner = _numbered(owners) if several else None
        records = (np.concatenate(rids), np.concatenate(keys)) if keys else ()
        return Given(collected.whole(), owner, randomizer.clipped, seen, *records)

    def _recorded(self, mechanism: Mechanism, place: Stream, ids: Ids) -> NDArray[np.uint64]:
        """Draw the ids of a block's records; refuse keys that have hidden a value before."""
        assert isinstance(mechanism, Leveled)  # others have no keys
        try:
            self._book.use(f"release {place.path[-1]}", ids, mechanism.key_entropy)
        except InputError as error:
            raise RunError(str(error), resumable=False) from None
        return record_ids(place, ids)

    def _owners(self, answer: Answer, clients: int) -> NDArray[np.int64] | None:
        """Return which client of a block each value is of; refuse an answer that leaves it open.

        None where each client has one: then nobody need number them.
        """
        rows, owner, name = len(answer.values), answer.owner, type(self.task).__name__
        if owner is None:
            if rows != clients:
                raise InputError(
                    f"{name}.client returns {rows} values for {clients} clients; give one each, or "
                    "say with `owner` whose each one is"
                )
            return None
        owner = np.asarray(owner, np.int64)
        ascending = len(owner) == rows and not (np.diff(owner) < 0).any()
        if not ascending or (rows and not 0 <= owner[0] <= owner[-1] < clients):
            raise InputError(
                f"{name}.client returns an `owner` that does not fit: one number of a client per "
                f"value, ascending, below {clients}"
            )
        return owner

    def _block(self, mechanism: Mechanism, copied: bool) -> int:
        # Samples are gathered tile by tile; what a block copies are their numbers. What a client
        # computes may be longer than what it holds: gradients of a large model.
        width, sent = 8 * mechanism.domain.width, max(8, -(-mechanism.bits // 8))
        if isinstance(self.data, np.ndarray):
            held = _COPY_BYTES if copied else _LOOK_BYTES
            most = held // max(8, self.data.nbytes // max(1, len(self.ids)), width)
            return max(256, min(most, _BLOCK_BYTES // sent))
        shape, tile = self.setting.shape, self.task.tile(self.setting)
        most = _MADE_BYTES if 8 * math.prod(shape) > width else _SHORT_BYTES
        tiles = most // (tile * max(8 * math.prod(shape[:1]), width))
        return min(tile * max(1, tiles), max(256, _BLOCK_BYTES // sent))

    def _answer(
        self,
        release: int,
        asks: dict[int, Ask],
        mine: Any,
        held: Any,
        behind: NDArray[np.int64] | None,
        slots: NDArray[np.int64] | None,
        randomizer: Randomizer,
        streams: tuple[ClientStream, ClientStream],
    ) -> Answer:
        """Compute a block's values, version by version, and keep the clients' new state.

        The first stream is of the task's draws, the second of the randomizer's.
        """
        before = {name: column[mine] for name, column in self.memory.items()}
        versions = [0] if behind is None or len(asks) == 1 else np.unique(behind).tolist()
        if len(versions) <= 1:
            ask = asks[release - sum(versions)]
            answer = self._asked(ask, held, before, slots, randomizer, streams)
            for name, column in self.memory.items():
                column[mine] = self._column(answer, name)
            return answer
        assert behind is not None
        parts = []
        for version in versions:
            rows = np.flatnonzero(behind == version)
            ask = asks[release - version]
            mine_before = {name: column[rows] for name, column in before.items()}
            own = None if slots is None else slots[rows]
            theirs = streams[0].take(rows), streams[1].take(rows)
            part = self._asked(ask, held[rows], mine_before, own, randomizer, theirs)
            for name in before:
                before[name][rows] = self._column(part, name)
            whose = self._owners(part, len(rows))
            parts.append((rows if whose is None else rows[whose], part))
        for name, column in self.memory.items():
            column[mine] = before[name]
        return _joined(parts)

    def _asked(
        self,
        ask: Ask,
        held: Any,
        memory: Arrays,
        slots: NDArray[np.int64] | None,
        randomizer: Randomizer,
        streams: tuple[ClientStream, ClientStream],
    ) -> Answer:
        """Let the task compute values; where noise is added inside, only the noisy ones will do."""
        randomizer.begin(streams[1], partial(self.task.settle, self.setting, ask))
        own = streams[0]
        # What overflows is refused by whoever looks at it, with a message; C does not warn either.
        with np.errstate(over="ignore", invalid="ignore"):
            answer = self.task.client(self.setting, ask, held, memory, slots, randomizer, own)
        randomizer.check(answer.values)
        return answer

    def _column(self, answer: Answer, name: str) -> NDArray[Any]:
        if name not in answer.memory:
            task = type(self.task).__name__
            raise InputError(f"{task}.client returns no memory {name!r}; give every column back")
        return answer.memory[name]

    def _sent(
        self,
        randomizer: Randomizer,
        answer: Answer,
        held: Any,
        mine: Any,
        ids: Ids,
        stream: Stream,
        weights: Floats | None,
        adds: bool,
    ) -> Messages:
        """Check and randomize a block's values; those of one client have draws of their own."""
        mechanism, values = randomizer.mechanism, answer.values
        if mechanism.inner_steps:
            return randomizer.walked(values, weights)
        if answer.owner is None:
            own = stream.clients(ids)
            admitted = self._admit(mechanism, mine) if values is held else None
            if admitted is None:
                admitted = mechanism.admit(values, ids)
            return randomizer.send(values, admitted, own, weights, adds)
        owner, rank = answer.owner, rank_of(answer.owner)
        payload: Any = None
        for each in range(int(rank.max(initial=0)) + 1):
            rows = np.flatnonzero(rank == each)
            sender = ids[owner[rows]]
            own = (stream if each == 0 else stream.at("value", each)).clients(sender)
            heavy = None if weights is None else weights[rows]
            admitted = mechanism.admit(values[rows], sender)
            part = randomizer.send(values[rows], admitted, own, heavy).payload
            if payload is None:
                payload = np.empty((len(owner), *part.shape[1:]), part.dtype)
            payload[rows] = part
        return Messages(np.asarray(payload))

    def _admit(self, mechanism: Mechanism, mine: Any) -> Admitted:
        """Return rows of the data as values; all of them are checked the first time."""
        rule = (mechanism.domain, mechanism.on_out_of_range, mechanism.clip)
        if self._checked is None or self._checked[0] != rule:
            self._checked = rule, mechanism.admit(self.data, self.ids)
        return self._checked[1].take(mine)


def _keep(held: Any) -> Any:
    """Let nobody write to clients' data: they are checked once and used again."""
    if isinstance(held, np.ndarray):
        held.flags.writeable = False
    return held


def _numbered(blocks: list[tuple[int, int, NDArray[np.int64] | None]]) -> NDArray[np.int64]:
    """Return which client each value is of, given each block's first client, size and owners."""
    each = [first + (np.arange(size) if owner is None else owner) for first, size, owner in blocks]
    return np.concatenate(each)


def rank_of(owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each value, how many of its owner come before it; owners ascend.

    Example:
        >>> rank_of(np.array([0, 0, 2, 5, 5, 5])).tolist()
        [0, 1, 0, 0, 1, 2]
    """
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    lengths = np.diff(np.append(starts, len(owner)))
    return np.arange(len(owner)) - np.repeat(starts, lengths)


def _joined(parts: list[tuple[NDArray[np.int64], Answer]]) -> Answer:
    """Put the answers to several versions back in the order of the clients."""
    owner = np.concatenate([owners for owners, _ in parts])
    order = np.argsort(owner, kind="stable")
    values = np.concatenate([part.values for _, part in parts])[order]
    several = any(part.owner is not None for _, part in parts)
    seen = [part.seen for _, part in parts if part.seen is not None]
    total = np.sum(seen, axis=0) if seen else None
    return Answer(values, owner[order] if several else None, seen=total)
