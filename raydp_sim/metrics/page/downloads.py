"""Streams to take away: as CSV or Parquet, piece by piece, so that no stream is too large."""

import tempfile
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_ROWS = 65_536
_PIECE = 1 << 18


def as_csv(rows: pa.Table) -> Iterator[bytes]:
    r"""Yield a table as CSV; who took part, packed into bytes, is written as hexadecimal digits.

    Example:
        >>> b"".join(as_csv(pa.table({"release": [0, 1], "ids": [b"\x0f", None]})))
        b'"release","ids"\n0,"0f"\n1,\n'
    """
    rows = pa.table({name: _text(rows[name]) for name in rows.column_names})
    options = csv.WriteOptions(include_header=True)
    empty = pa.RecordBatch.from_pylist([], rows.schema)
    for batch in rows.to_batches(max_chunksize=_ROWS) or [empty]:
        sink = pa.BufferOutputStream()
        csv.write_csv(batch, sink, options)
        options = csv.WriteOptions(include_header=False)
        yield sink.getvalue().to_pybytes()


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_binary(column.type):
        values = [None if value is None else value.hex() for value in column.to_pylist()]
        return pa.chunked_array([pa.array(values, pa.string())])
    named = pa.types.is_dictionary(column.type)
    return pc.cast(column, column.type.value_type) if named else column


def as_parquet(rows: pa.Table) -> Iterator[bytes]:
    """Yield a table as one Parquet file, with what its schema says of it."""
    with tempfile.TemporaryFile() as file:
        pq.write_table(rows, file, compression="zstd")
        file.seek(0)
        yield from _pieces(file)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
