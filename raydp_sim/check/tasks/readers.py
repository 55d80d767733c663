"""What readers make of messages: the same in any order, by every reader, from messages alone."""

import numpy as np

from raydp_sim.check.finding import check, plural, require
from raydp_sim.check.tasks.subject import Made, TaskSubject
from raydp_sim.tasks.base import Arrays, Batch

_CHUNK = 5


def identical(one: Arrays, other: Arrays) -> bool:
    """Say whether two dictionaries of arrays agree in names, types, shapes and every bit."""
    if set(one) != set(other):
        return False
    pairs = ((np.asarray(one[name]), np.asarray(other[name])) for name in one)
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs
    )


def _require_same(made: Made, reader: int, found: tuple[Arrays, Arrays], why: str) -> None:
    state, public = found
    same = identical(state, made.after[reader]) and identical(public, made.public[reader])
    require(same, f"reader {reader} makes something else of release {made.release} {why}")


@check("messages add up in any order")
def order(subject: TaskSubject) -> str:
    """Chunks of five messages in reverse and shuffled order make the same release, bit by bit."""
    random = np.random.default_rng(5)
    for made in subject.made:
        count = len(made.messages.payload)
        for rows in (np.arange(count)[::-1], random.permutation(count)):
            parts = [rows[first : first + _CHUNK] for first in range(0, count, _CHUNK)]
            batches = [
                subject.batch(made.release, made.messages.take(part), made.ask) for part in parts
            ]
            for reader in subject.readers:
                found = subject.step(made, reader, subject.folded(made, reader, batches))
                _require_same(
                    made, reader, found, "if messages come in another order; use exact sums"
                )
    return "in one piece, reversed and shuffled, five at a time"


@check("every reader is served")
def several(subject: TaskSubject) -> str:
    """A reader changes nothing of what the next is handed, and needs no other to have come."""
    for made in subject.made:
        batch = subject.batch(made.release, made.messages, made.ask)
        before = _bytes(batch)
        for reader in reversed(subject.readers):
            accumulator = subject.folded(made, reader, [batch])
            require(_bytes(batch) == before, f"reader {reader} changes the batch in `fold`")
            found = subject.step(made, reader, accumulator)
            _require_same(made, reader, found, "if the other readers come first")
    names = subject.task.readers(subject.setting)
    return f"{plural(len(names), 'reader')}: {', '.join(names)}"


def _bytes(batch: Batch) -> bytes:
    return np.asarray(batch.payload).tobytes() + np.asarray(batch.index).tobytes()


@check("readers use messages alone")
def alone(subject: TaskSubject) -> str:
    """What a release is follows from its messages, whatever clients have computed since.

    Behind a shuffler nothing that readers are handed names a client.
    """
    for made in subject.made:
        batch = subject.batch(made.release, made.messages, made.ask)
        if subject.scenario.trust_model.shuffled:
            named = [name for name in ("client", "senders", "ids", "owner") if hasattr(batch, name)]
            require(not named, f"a {type(batch).__name__} has {named}")
        # Half of the clients, as if elsewhere: what they leave behind must not reach a reader.
        subject.given(subject.first(len(subject.ids) // 2), made.release, made.ask)
        for reader in subject.readers:
            found = subject.step(made, reader, subject.folded(made, reader, [batch]))
            _require_same(
                made, reader, found, "once other clients have answered; it has seen their data"
            )
    return f"{plural(len(subject.made), 'release')}, after other clients have answered"
