"""The files of a stream: Parquet parts that never change, and what waits to become the next one.

A part is whole or absent, is named after its first row, and knows how many rows of its stream come
before it. Once it can be seen it stays as it is, so any tool may read the folder of a run that is
being played. What a checkpoint covers and no part has yet is in one file beside the streams,
`waiting.npz`, which is replaced as a whole: parts roll by size and time, not by checkpoints.
"""

import contextlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from raydp_sim.durable import write_durable
from raydp_sim.privacy.ledger.store import write_table

_WAITING = "waiting.npz"
_OFFSET = b"offset"


class Part(NamedTuple):
    """A file of a stream, with the rows it has and how many of the stream come before them."""

    offset: int
    rows: int
    path: Path


def stem(rows: pa.Table | pa.RecordBatch) -> str:
    """Return the name of the part that begins with the first of these rows."""
    repetition, release = (rows[name][0].as_py() for name in ("repetition", "release"))
    return f"part-{repetition:06d}-{release:08d}"


def write(folder: Path, stream: str, rows: pa.Table, offset: int) -> Part:
    """Write rows as one part.

    Args:
        folder: of the run's streams.
        stream: its name.
        rows: at least one.
        offset: rows of the stream before these.
    """
    path = folder / stream / f"{stem(rows)}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    marks = {**(rows.schema.metadata or {}), _OFFSET: str(offset).encode()}
    write_table(path, rows.replace_schema_metadata(marks))
    return Part(offset, rows.num_rows, path)


def names(folder: Path) -> list[str]:
    """Return the streams that have parts."""
    return sorted({path.parent.name for path in folder.glob("*/part-*.parquet")})


def listed(folder: Path, stream: str) -> list[Part]:
    """Return the parts of a stream in the order in which they were written.

    Their offsets are counted anew: rows that a resumed run has dropped leave no gap.
    """
    found = []
    for path in sorted((folder / stream).glob("part-*.parquet")):
        about = pq.read_metadata(path)
        marks = about.schema.to_arrow_schema().metadata or {}
        found.append((int(marks.get(_OFFSET, b"0")), path, about.num_rows))
    # Earlier versions wrote no offsets; their parts are in the order of their names.
    found.sort(key=lambda each: each[0])
    parts, before = [], 0
    for _, path, rows in found:
        parts.append(Part(before, rows, path))
        before += rows
    return parts


def open_part(path: Path) -> pa.Table:
    """Return the rows of one part, without what only the file has to know."""
    rows = pq.read_table(path, partitioning=None)
    marks = {key: value for key, value in (rows.schema.metadata or {}).items() if key != _OFFSET}
    return rows.replace_schema_metadata(marks or None)


def read(folder: Path, stream: str) -> list[pa.Table]:
    """Return the rows of a stream, part by part, and those that wait to become one."""
    # Before parts are listed: what waited and has become a part meanwhile is then in the list.
    held_back = waiting(folder).get(stream)
    paths = sorted((folder / stream).glob("part-*.parquet"))
    tables = [open_part(path) for path in paths]
    if held_back is not None and stem(held_back) not in {path.stem for path in paths}:
        tables.append(held_back)
    return tables


def keep(folder: Path, kept: dict[str, pa.Table]) -> None:
    """Make rows durable that no part has yet, in place of those that were kept before."""
    arrays = {}
    for stream, rows in kept.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        arrays[stream] = np.frombuffer(sink.getvalue(), np.uint8)
    if not arrays and not (folder / _WAITING).exists():
        return
    buffer = BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # names are free, arrays are arrays
    folder.mkdir(parents=True, exist_ok=True)
    write_durable(folder / _WAITING, buffer.getvalue())


def forget(folder: Path) -> None:
    """Drop what was kept; every row is in a part."""
    (folder / _WAITING).unlink(missing_ok=True)


def waiting(folder: Path) -> dict[str, pa.Table]:
    """Return rows that wait to become parts, by stream, as of the last checkpoint."""
    return dict(_waiting(folder))


def _waiting(folder: Path) -> Iterator[tuple[str, pa.Table]]:
    with contextlib.suppress(FileNotFoundError), np.load(folder / _WAITING) as arrays:
        for stream in arrays.files:
            with pa.ipc.open_stream(pa.py_buffer(arrays[stream].tobytes())) as reader:
                yield stream, reader.read_all()


def trim(folder: Path, repetition: int, finished: int) -> None:
    """Drop rows from beyond a checkpoint; a resumed run writes the same rows again."""
    for stream, rows in _waiting(folder):
        kept, known = _before(rows, repetition, finished), listed(folder, stream)
        if kept.num_rows and stem(rows) not in {part.path.stem for part in known}:
            write(folder, stream, kept, sum(part.rows for part in known))
    for path in folder.glob("*/part-*.parquet"):
        rows = pq.read_table(path, partitioning=None)
        kept = _before(rows, repetition, finished)
        if kept.num_rows == 0:
            path.unlink()
        elif kept.num_rows < rows.num_rows:
            # A batch may be withheld while the one before it is still being folded.
            write_table(path, kept)
    forget(folder)


def _before(rows: pa.Table, repetition: int, finished: int) -> pa.Table:
    earlier = rows["repetition"].to_numpy() < repetition
    same = rows["repetition"].to_numpy() == repetition
    return rows.filter(earlier | (same & (rows["release"].to_numpy() < finished)))
