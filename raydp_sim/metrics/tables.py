"""Streams of several runs as one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydp_sim.errors import InputError
from raydp_sim.metrics import charged, parts, streams

Runs = Any
"""A run directory or what `raydp_sim.run` returned, or several of them."""


def read(runs: Runs, stream: str) -> pa.Table:
    """Return a stream of one run or of several, with the run's name in front of every row.

    Runs may be played meanwhile. Where one has columns that another has not, these are null there.

    Args:
        runs: run directories, or what `raydp_sim.run` returned; one or several.
        stream: such as `releases`; `ledger` and `participation` are of the run's ledger.

    Raises:
        InputError: names what is no run directory, or that no run has the stream.
    """
    folders = [_folder(run) for run in _several(runs)]
    tables = []
    for folder, name in zip(
        folders, labels([str(each.resolve()) for each in folders]), strict=True
    ):
        if stream in charged.STREAMS:
            rows = charged.read(folder / "ledger", stream)
        else:
            rows = streams.read(folder / "metrics", stream)
        if rows.num_rows or stream in streams.SCHEMAS:
            # The same few words over and over: as a dictionary they take no room.
            called = pa.DictionaryArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows), pa.array([name])
            )
            tables.append(rows.add_column(0, "run", called))
    if not tables:
        known = sorted({name for folder in folders for name in parts.names(folder / "metrics")})
        raise InputError(
            f"no run has the stream {stream!r}; there are {', '.join(known) or 'none'}"
        )
    whole = pa.concat_tables(tables, promote_options="default").unify_dictionaries()
    return whole.combine_chunks()


def _several(runs: Runs) -> list[Any]:
    one = isinstance(runs, (str, Path)) or hasattr(runs, "run_dir")
    return [runs] if one else list(runs)


def _folder(run: Any) -> Path:
    folder = Path(getattr(run, "run_dir", run))
    if not (folder / "metrics").is_dir():
        raise InputError(f"{folder}: there is no metrics/ in it; give a run directory")
    return folder


def labels(paths: Sequence[str]) -> list[str]:
    """Return short names of run directories: their last parts, as many as tell them apart.

    Example:
        >>> labels(["/runs/a/one", "/runs/b/one"]), labels(["/runs/a", "/runs/b"])
        (['a/one', 'b/one'], ['a', 'b'])
    """
    split = [path.rstrip("/").split("/") for path in paths]
    for length in range(1, max(map(len, split)) + 1):
        short = ["/".join(parts[-length:]) for parts in split]
        if len(set(short)) == len(short):
            return short
    return list(paths)
