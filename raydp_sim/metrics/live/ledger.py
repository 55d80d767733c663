"""The ledger as a stream: charges in the order in which they were made, read from disk."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from raydp_sim.metrics import charged
from raydp_sim.metrics.live.store import Interrupted, Store
from raydp_sim.privacy.ledger import store as ledger

_PAUSE = 0.1


def count(folder: Path, stream: str) -> int:
    """Return how many rows a stream of the ledger has now."""
    found = ledger.logged_after(folder, 0)
    rows = found[0] if found is not None else _compacted(folder)
    return len(rows) if stream == "ledger" else sum(row["charged"] for row in rows)


def _compacted(folder: Path) -> charged.Rows:
    return ledger.read(folder).to_pylist() if (folder / ledger.COMPACTED).exists() else []


def charges(store: Store, folder: Path, stream: str) -> Iterator[pa.RecordBatch]:
    """Yield charges as they are made until the run is over; an empty batch now and then.

    Args:
        store: of the run, which knows when it is over.
        folder: the ledger's.
        stream: `ledger` or `participation`.
    """
    seen: set[tuple[int, int]] = set()
    place = 0
    while True:
        # Before the log is looked at: when it says so, everything is there to be read.
        ended, interrupted = store.ended, store.interrupted
        if (found := ledger.logged_after(folder, place)) is not None:
            rows, place = found
        else:
            rows = _compacted(folder)
        rows = [row for row in rows if (row["repetition"], row["release"]) not in seen]
        seen.update((row["repetition"], row["release"]) for row in rows)
        yield charged.STREAMS[stream](rows)
        if rows:
            continue
        if interrupted:
            raise Interrupted
        if ended:
            return
        time.sleep(_PAUSE)
