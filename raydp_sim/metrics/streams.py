"""The streams of a run: their columns, and Parquet parts that are whole or absent."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from raydp_sim.privacy.store import write_table

KEY = ["repetition", "release"]

_WHOLE = pa.int64()
_REAL = pa.float64()

# Columns every task writes; a task's own scores follow them.
RELEASES = {
    "repetition": _WHOLE,
    "release": _WHOLE,
    "time": _REAL,
    "opened": _REAL,
    "participants": _WHOLE,
    "batch_size": _WHOLE,
    "messages": _WHOLE,
    "asked": _WHOLE,
    "missing": _WHOLE,
    "dropped": _WHOLE,
    "late": _WHOLE,
    "repeated": _WHOLE,
    "staleness": _REAL,
    "stalest": _WHOLE,
    "clipped": _WHOLE,
    "bits": _WHOLE,
    "wire_bytes": _WHOLE,
    "epsilon_local": _REAL,
    "epsilon": _REAL,
    "delta": _REAL,
    "epsilon_median": _REAL,
    "bound": pa.string(),
    "participation_bias": _REAL,
}
WITHHELD = {
    "repetition": _WHOLE,
    "release": _WHOLE,
    "time": _REAL,
    "opened": _REAL,
    "reports": _WHOLE,
    "asked": _WHOLE,
    "dropped": _WHOLE,
    "late": _WHOLE,
}
# The only stream that holds what depends on the machine: wall-clock values, and messages that came
# again after a fault.
TIMING = {
    "repetition": _WHOLE,
    "release": _WHOLE,
    "wall_s": _REAL,
    "reports": _WHOLE,
    "duplicates": _WHOLE,
}

SCHEMAS = {"releases": RELEASES, "withheld": WITHHELD, "timing": TIMING}


def table(stream: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows as a table of the stream's schema, extra columns as numbers at the end."""
    known = SCHEMAS[stream]
    extra = [name for name in (rows[0] if rows else {}) if name not in known]
    schema = pa.schema([*known.items(), *((name, _REAL) for name in extra)])
    return pa.Table.from_pylist(rows, schema=schema)


def write_part(folder: Path, stream: str, rows: list[dict[str, Any]]) -> None:
    """Write rows as one part named after the first of them."""
    place = folder / stream
    place.mkdir(parents=True, exist_ok=True)
    first = rows[0]
    name = f"part-{first['repetition']:06d}-{first['release']:08d}.parquet"
    write_table(place / name, table(stream, rows))


def read(folder: Path, stream: str) -> pa.Table:
    """Return a stream of a run, sorted by its key."""
    parts = sorted((folder / stream).glob("part-*.parquet"))
    if not parts:
        return table(stream, [])
    whole = pa.concat_tables([pq.read_table(path) for path in parts])
    return whole.sort_by([(name, "ascending") for name in KEY])


def trim(folder: Path, repetition: int, finished: int) -> None:
    """Drop rows from beyond a checkpoint; a resumed run writes the same rows again."""
    for path in folder.glob("*/part-*.parquet"):
        rows = pq.read_table(path)
        kept = _before(rows, repetition, finished)
        if kept.num_rows == 0:
            path.unlink()
        elif kept.num_rows < rows.num_rows:
            # A batch may be withheld while the one before it is still being folded.
            write_table(path, kept)


def _before(rows: pa.Table, repetition: int, finished: int) -> pa.Table:
    earlier = rows["repetition"].to_numpy() < repetition
    same = rows["repetition"].to_numpy() == repetition
    return rows.filter(earlier | (same & (rows["release"].to_numpy() < finished)))
