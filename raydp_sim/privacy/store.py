"""The ledger on disk: one row per release, durable before the release is made."""

import heapq
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from raydp_sim.durable import write_durable
from raydp_sim.privacy import events
from raydp_sim.random import Ids

SCHEMA = pa.schema(
    [
        ("repetition", pa.int32()),
        ("release", pa.int64()),
        ("time", pa.float64()),
        ("event", pa.string()),
        ("parameters", pa.string()),
        ("shuffled", pa.string()),
        ("shuffled_parameters", pa.string()),
        ("charged", pa.int64()),
        ("encoding", pa.string()),
        ("participants", pa.binary()),
    ]
)

_GROUP = 64  # rows in memory at once when a whole ledger is read; each may name all clients
_Row = tuple[tuple[int, int], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Charge:
    """One row of the ledger: an event and the clients it is charged to."""

    repetition: int
    release: int
    time: float
    event: events.Event
    participants: Ids | range
    shuffled: events.Release | None = None

    def row(self, clients: int) -> dict[str, Any]:
        """Return the row as it is stored: ids as a range, a bitmap or a list, what is shortest."""
        ids = self.participants
        if isinstance(ids, range):
            encoding, packed = "range", np.array([ids.start, ids.stop], "<u4").tobytes()
        elif len(ids) * 32 > clients:
            mask = np.zeros(clients, np.uint8)
            mask[ids] = 1
            encoding, packed = "bitmap", np.packbits(mask).tobytes()
        else:
            encoding, packed = "ids", ids.astype("<u4").tobytes()
        return {
            "repetition": self.repetition,
            "release": self.release,
            "time": self.time,
            "event": type(self.event).__name__,
            "parameters": _parameters(self.event),
            "shuffled": None if self.shuffled is None else type(self.shuffled).__name__,
            "shuffled_parameters": None if self.shuffled is None else _parameters(self.shuffled),
            "charged": len(ids),
            "encoding": encoding,
            "participants": packed,
        }

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "Charge":
        """Read a stored row back."""
        raw = np.frombuffer(row["participants"], np.uint8)
        ids: Ids | range
        if row["encoding"] == "bitmap":
            ids = np.flatnonzero(np.unpackbits(raw)).astype(np.uint32)
        else:
            ids = raw.view("<u4").astype(np.uint32)
        if row["encoding"] == "range":
            ids = range(int(ids[0]), int(ids[1]))
        event = _event(row["event"], row["parameters"])
        place = (row["repetition"], row["release"], row["time"])
        return cls(*place, event, ids, _event(row["shuffled"], row["shuffled_parameters"]))

    def same_as(self, other: "Charge") -> bool:
        """Say whether two rows charge the same event to the same clients."""
        mine = (self.repetition, self.release, self.time, self.event, self.shuffled)
        return mine == (
            other.repetition,
            other.release,
            other.time,
            other.event,
            other.shuffled,
        ) and np.array_equal(self.participants, other.participants)


def _parameters(event: Any) -> str:
    return json.dumps(asdict(event), sort_keys=True)


def _event(name: str | None, parameters: str) -> Any:
    if name is None:
        return None
    given = json.loads(parameters)
    listed = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
    return getattr(events, name)(**{**given, **listed})


def canonical(participants: Ids | range) -> Ids | range:
    """Return consecutive clients as a range, so that a row does not depend on how they came."""
    if isinstance(participants, range) or len(participants) == 0:
        return participants
    first, last = int(participants[0]), int(participants[-1])
    return range(first, last + 1) if last - first + 1 == len(participants) else participants


def append(folder: Path, charge: Charge, clients: int) -> None:
    """Write one row; when this returns it is on disk."""
    table = pa.Table.from_pylist([charge.row(clients)], schema=SCHEMA)
    write_table(folder / f"r{charge.repetition:06d}-{charge.release:08d}.parquet", table)


def read(folder: Path, repetition: int | None = None) -> pa.Table:
    """Return every row, of one repetition or of all, once each, in order."""
    names = "r*.parquet" if repetition is None else f"r{repetition:06d}-*.parquet"
    paths = [*sorted(folder.glob(names)), *folder.glob("ledger.parquet")]
    if not paths:
        return SCHEMA.empty_table()
    table = pa.concat_tables([pq.read_table(path, schema=SCHEMA) for path in paths])
    if repetition is not None:
        table = table.filter(table["repetition"].to_numpy() == repetition)
    table = table.sort_by([("repetition", "ascending"), ("release", "ascending")])
    keys = list(zip(table["repetition"].to_pylist(), table["release"].to_pylist(), strict=True))
    keep = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]]
    return table.take(keep) if len(keep) < len(keys) else table


def charges(folder: Path, repetition: int | None = None) -> Iterator[Charge]:
    """Yield every row, of one repetition or of all, once each, in order; decoded one at a time."""
    last = None
    for key, row in heapq.merge(
        _single(folder, repetition), _compacted(folder, repetition), key=lambda pair: pair[0]
    ):
        if key != last:
            yield Charge.of_row(row)
        last = key


def _single(folder: Path, repetition: int | None) -> Iterator[_Row]:
    names = "r*.parquet" if repetition is None else f"r{repetition:06d}-*.parquet"
    for path in sorted(folder.glob(names)):
        yield from _keyed(pq.read_table(path, schema=SCHEMA).to_pylist())


def _compacted(folder: Path, repetition: int | None) -> Iterator[_Row]:
    path = folder / "ledger.parquet"
    if not path.exists():
        return
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_GROUP):
            mine = np.ones(batch.num_rows, np.bool_)
            if repetition is not None:
                mine = batch["repetition"].to_numpy() == repetition
            yield from _keyed(batch.filter(pa.array(mine)).to_pylist())


def _keyed(rows: list[dict[str, Any]]) -> Iterator[_Row]:
    for row in rows:
        yield (row["repetition"], row["release"]), row


def compact(folder: Path) -> None:
    """Merge the rows into one file. A crash in between leaves rows twice, which `read` drops."""
    single = sorted(folder.glob("r*.parquet"))
    if len(single) < 2:
        return
    write_table(folder / "ledger.parquet", read(folder), _GROUP)
    for path in single:
        path.unlink()


def write_table(path: Path, table: pa.Table, group: int | None = None) -> None:
    """Write a Parquet file that is whole or not there at all, and on disk when this returns.

    Args:
        path: of the file.
        table: its content.
        group: rows that a reader has to take at once; None: what the format usually has.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=group)
    write_durable(path, sink.getvalue().to_pybytes())
