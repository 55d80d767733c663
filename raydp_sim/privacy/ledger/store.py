"""The ledger on disk: one row per release, durable before the release is made."""

import contextlib
import heapq
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from raydp_sim.durable import write_durable
from raydp_sim.privacy import events
from raydp_sim.privacy.ledger.log import Log, records
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

LOG = "charges.log"  # while a run is being played
COMPACTED = "ledger.parquet"  # when it is over
_SINGLE = "r*.parquet"
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
    # `asdict` of the whole copies every field; nearly all of them are numbers.
    given = {each.name: getattr(event, each.name) for each in fields(event)}
    return json.dumps(given, sort_keys=True, default=asdict)


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


class Writer:
    """The ledger of a run that is being played; a run has one.

    Rows are appended to a log, one write to the disk each or for some together, and become one
    Parquet file when the run is over.
    """

    def __init__(self, folder: Path, clients: int) -> None:
        self.folder, self.clients = folder, clients
        self.log = Log(folder / LOG)
        self._written: set[int] | None = None  # repetitions that have rows, once that is known

    def charges(self, repetition: int) -> Iterator[Charge]:
        """Yield the rows of a repetition; they stay whatever happens from now on."""
        if self._written is None:
            if self.log.path.exists():
                self.log.open()
            begun = self.folder.is_dir() and any(self.folder.iterdir())
            self._written = set(read(self.folder)["repetition"].to_pylist()) if begun else set()
        return charges(self.folder, repetition) if repetition in self._written else iter(())

    def append(self, *charges: Charge) -> None:
        """Write rows as one record: all are on disk when this returns, or none is there."""
        if charges:
            self.log.append(_content([charge.row(self.clients) for charge in charges]))
        if self._written is not None:
            self._written |= {charge.repetition for charge in charges}

    def compact(self) -> None:
        """Make one Parquet file of the rows.

        The log goes when the new file is on disk, not before. In between, and after a crash in
        between, rows are there twice, and readers drop one of the two.
        """
        self.log.close()
        before = [self.log.path, *self.folder.glob(_SINGLE)]
        if any(path.exists() for path in before):
            write_table(self.folder / COMPACTED, read(self.folder), _GROUP)
            for path in before:
                path.unlink(missing_ok=True)


# Whoever reads a run that is being played opens what is going to be removed first, and the file
# that takes its place last: a row that is no longer in the one is in the other by then.


def read(folder: Path, repetition: int | None = None) -> pa.Table:
    """Return every row, of one repetition or of all, once each, in order."""
    with contextlib.ExitStack() as stack:
        rows = [row for _, row in _single(folder, repetition)]
        rows += [row for _, row in _logged(_opened(folder / LOG, stack), repetition)]
        tables = [pa.Table.from_pylist(rows, schema=SCHEMA)]
        if (file := _opened(folder / COMPACTED, stack)) is not None:
            tables.append(pq.read_table(file, schema=SCHEMA))
    table = pa.concat_tables(tables)
    if repetition is not None:
        table = table.filter(table["repetition"].to_numpy() == repetition)
    table = table.sort_by([("repetition", "ascending"), ("release", "ascending")])
    keys = list(zip(table["repetition"].to_pylist(), table["release"].to_pylist(), strict=True))
    keep = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]]
    return table.take(keep) if len(keep) < len(keys) else table


def charges(folder: Path, repetition: int | None = None) -> Iterator[Charge]:
    """Yield every row, of one repetition or of all, once each, in order; decoded one at a time."""
    with contextlib.ExitStack() as stack:
        single = list(_single(folder, repetition))
        logged = _logged(_opened(folder / LOG, stack), repetition)
        compacted = _compacted(_opened(folder / COMPACTED, stack), repetition)
        last = None
        for key, row in heapq.merge(single, logged, compacted, key=lambda pair: pair[0]):
            if key != last:
                yield Charge.of_row(row)
            last = key


def logged_after(folder: Path, end: int) -> tuple[list[dict[str, Any]], int] | None:
    """Return rows that were logged after a place, in the order of charging, and the next place.

    None where there is no log: none yet, or the run is over and `read` has all rows.

    Args:
        folder: of the ledger.
        end: the place; 0 at first.
    """
    with contextlib.ExitStack() as stack:
        if (file := _opened(folder / LOG, stack)) is None:
            return None
        rows = []
        for record in records(file, file.name, end):
            rows += _rows(record.content)
            end = record.end
        return rows, end


def _opened(path: Path, stack: contextlib.ExitStack) -> BinaryIO | None:
    try:
        return stack.enter_context(open(path, "rb"))
    except FileNotFoundError:
        return None


def _content(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as a record of the log: their columns as a line of JSON, and the clients."""
    columns = [{**row, "participants": len(row["participants"])} for row in rows]
    packed: list[bytes] = [row["participants"] for row in rows]
    return json.dumps(columns).encode() + b"\n" + b"".join(packed)


def _rows(content: bytes) -> list[dict[str, Any]]:
    line, _, packed = content.partition(b"\n")
    columns = json.loads(line)
    if isinstance(columns, dict):  # an earlier version wrote one row without its length
        return [{**columns, "participants": packed}]
    rows, start = [], 0
    for row in columns:
        end = start + row["participants"]
        rows.append({**row, "participants": packed[start:end]})
        start = end
    return rows


def _logged(file: BinaryIO | None, repetition: int | None) -> Iterator[_Row]:
    """Yield the rows of the log in the order of their keys, one record in memory at a time."""
    if file is None:
        return
    places = []
    for record in records(file, file.name):
        start, length = record.end - len(record.content), len(record.content)
        for number, row in enumerate(_rows(record.content)):
            if repetition is None or row["repetition"] == repetition:
                places.append((_key(row), start, length, number))
    read, rows = -1, list[dict[str, Any]]()
    for key, start, length, number in sorted(places):
        if start != read:
            file.seek(start)
            read, rows = start, _rows(file.read(length))
        yield key, rows[number]


def _compacted(file: BinaryIO | None, repetition: int | None) -> Iterator[_Row]:
    if file is None:
        return
    with pq.ParquetFile(file) as table:
        for batch in table.iter_batches(batch_size=_GROUP):
            mine = np.ones(batch.num_rows, np.bool_)
            if repetition is not None:
                mine = batch["repetition"].to_numpy() == repetition
            for row in batch.filter(pa.array(mine)).to_pylist():
                yield _key(row), row


def _single(folder: Path, repetition: int | None) -> Iterator[_Row]:
    """Yield the rows of a run that an earlier version began: it wrote a file for each."""
    for path in sorted(folder.glob(_SINGLE)):
        with contextlib.suppress(FileNotFoundError):  # compacted meanwhile
            for row in pq.read_table(path, schema=SCHEMA).to_pylist():
                if repetition is None or row["repetition"] == repetition:
                    yield _key(row), row


def _key(row: dict[str, Any]) -> tuple[int, int]:
    return row["repetition"], row["release"]


def write_table(path: Path, table: pa.Table, group: int | None = None) -> None:
    """Write a Parquet file that is whole or not there at all, and on disk when this returns.

    Args:
        path: of the file.
        table: its content.
        group: rows that a reader has to take at once; None: what the format usually has.
    """
    sink = pa.BufferOutputStream()
    # To look whether real numbers come again takes longer than to write them, and most do not.
    repeated = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
    pq.write_table(table, sink, compression="zstd", row_group_size=group, use_dictionary=repeated)
    write_durable(path, sink.getvalue().to_pybytes())
