"""The streams of a run: their columns, and Parquet parts that are whole or absent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from raydp_sim.privacy.ledger.store import write_table

KEY = ["repetition", "release"]

_WHOLE = pa.int64()
_REAL = pa.float64()

# What a reader of the protocol could publish of every release.
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
    "discarded": _WHOLE,
    "bits": _WHOLE,
    "wire_bytes": _WHOLE,
    "epsilon_local": _REAL,
    "epsilon": _REAL,
    "delta": _REAL,
    "epsilon_median": _REAL,
    "epsilon_seed": _REAL,
    "bound": pa.string(),
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

# What clipping did to the values of a release: a function of raw data.
CLIPPING = {
    "repetition": _WHOLE,
    "release": _WHOLE,
    "clipped": _WHOLE,
    "outside": _WHOLE,
    "outside_share": _REAL,
}

_KEYS = pa.schema([(name, _WHOLE) for name in KEY])
_MARK = b"visibility"
_RELEASED = {_MARK: b"released"}
_SIMULATION_ONLY = {_MARK: b"simulation-only"}


def _schema(columns: dict[str, Any], mark: dict[bytes, bytes]) -> pa.Schema:
    return pa.schema(list(columns.items()), metadata=mark)


SCHEMAS = {
    "releases": _schema(RELEASES, _RELEASED),
    "withheld": _schema(WITHHELD, _RELEASED),
    "clipping": _schema(CLIPPING, _SIMULATION_ONLY),
    "timing": _schema(TIMING, _SIMULATION_ONLY),
}


def released(columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Return rows that a reader of the protocol could publish; scalars make one row.

    Example:
        >>> released({"estimate": [0.5, 0.25]}).num_rows
        2
    """
    return _batch(columns, _RELEASED)


def simulation_only(columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Return rows that only a simulation has, because they are functions of raw data.

    Example:
        >>> visibility(simulation_only({"error": 0.5}).schema)
        'simulation-only'
    """
    return _batch(columns, _SIMULATION_ONLY)


def _batch(columns: Mapping[str, Any], mark: dict[bytes, bytes]) -> pa.RecordBatch:
    arrays = {
        name: column if isinstance(column, pa.Array) else pa.array(np.atleast_1d(column))
        for name, column in columns.items()
    }
    rows = pa.record_batch(arrays)
    return rows.replace_schema_metadata(mark)


def unknown_as_null(values: NDArray[np.float64]) -> pa.Array:
    """Return a column in which what is not a number is null: nothing is known of it.

    Example:
        >>> unknown_as_null(np.array([0.5, np.nan])).null_count
        1
    """
    return pa.array(values, from_pandas=True)


def visibility(schema: pa.Schema) -> str:
    """Return the mark of a stream: released or simulation-only.

    Example:
        >>> visibility(SCHEMAS["releases"])
        'released'
    """
    found: bytes = (schema.metadata or {}).get(_MARK, b"")
    if found not in (_RELEASED[_MARK], _SIMULATION_ONLY[_MARK]):
        raise ValueError("a stream has no mark; make its rows with released or simulation_only")
    return found.decode()


def keyed(rows: pa.RecordBatch, repetition: int, release: int) -> pa.RecordBatch:
    """Return a task's rows with the key of their release in front."""
    count = rows.num_rows
    key = [pa.array([repetition] * count, _WHOLE), pa.array([release] * count, _WHOLE)]
    schema = pa.schema([*zip(KEY, (_WHOLE, _WHOLE), strict=True), *rows.schema])
    schema = schema.with_metadata(rows.schema.metadata)
    return pa.RecordBatch.from_arrays([*key, *rows.columns], schema=schema)


def table(stream: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows as a table of the stream's schema."""
    return pa.Table.from_pylist(rows, schema=SCHEMAS[stream])


def write_part(folder: Path, stream: str, rows: pa.Table) -> None:
    """Write rows as one part named after the first of them."""
    place = folder / stream
    place.mkdir(parents=True, exist_ok=True)
    repetition, release = (rows[name][0].as_py() for name in KEY)
    write_table(place / f"part-{repetition:06d}-{release:08d}.parquet", rows)


def read_part(path: Path) -> pa.Table:
    """Return the rows of one part."""
    return pq.read_table(path)


def read(folder: Path, stream: str) -> pa.Table:
    """Return a stream of a run, sorted by its key; one that nothing was written to is empty."""
    parts = sorted((folder / stream).glob("part-*.parquet"))
    if not parts:
        known = SCHEMAS.get(stream)
        return known.empty_table() if known else pa.table({name: [] for name in KEY})
    whole = pa.concat_tables([read_part(path) for path in parts])
    return whole.sort_by([(name, "ascending") for name in KEY])


def joined(folder: Path) -> pa.Table:
    """Return one row per release: what was released, and the errors that a simulation knows.

    Streams of one row per release are put side by side; those of several rows are left out.
    """
    whole = read(folder, "releases")
    for stream in ("clipping", "errors"):
        other = read(folder, stream)
        if not other.select(KEY).cast(_KEYS).equals(whole.select(KEY).cast(_KEYS)):
            continue
        for name in other.column_names:
            if name not in KEY:
                whole = whole.append_column(name, other[name])
    return whole.replace_schema_metadata(None)


def scores(row: Mapping[str, Any]) -> list[str]:
    """Return the columns of a joined row that a task scores itself by."""
    known = {*RELEASES, *CLIPPING, "participation_bias"}
    return [name for name in row if name not in known]


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
