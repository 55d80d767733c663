"""What every collector does: take batches in, refuse zombies, close a release once."""

from typing import Any

from raydp_sim.stream.batches import Reports
from raydp_sim.stream.shuffle import Gathered, gather


class Inbox:
    """Batches by release, until each release is closed.

    A batch counts once however often it arrives: a stale epoch or a closed release is refused at
    the door, and `gather` drops rows that repeat a (release, client, sequence).
    """

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}
        self._open: dict[int, list[Reports]] = {}
        self._closed: set[int] = set()

    def admit(self, source: int, epoch: int) -> None:
        """Accept from now on only batches of this epoch or a later one from a placement."""
        self._epochs[source] = max(epoch, self._epochs.get(source, 0))

    def collect(self, batch: Reports) -> bool:
        """Take a batch in; return False if it was refused."""
        stale = batch.epoch < self._epochs.get(batch.source, 0)
        if stale or batch.release in self._closed:
            return False
        self._open.setdefault(batch.release, []).append(batch)
        return True

    def close(self, release: int) -> Gathered:
        """Let nothing more in and return what there is, in canonical order."""
        self._closed.add(release)
        return gather(self._open.pop(release, []))


def batch_counts(batch: Gathered) -> dict[str, Any]:
    """Return what the driver observes of a closed batch; none of it names a client."""
    return {
        "reports": batch.senders.reports(),
        "messages": len(batch.payload),
        "duplicates": batch.duplicates,
        "bytes": batch.payload.nbytes,
    }
