"""What commands that join finished runs read: their directories, or a table stored before."""

from pathlib import Path

import pyarrow as pa

from raydp_sim.errors import InputError, bad_field
from raydp_sim.metrics.curves import read_csv, write_csv
from raydp_sim.run.directory import RunDir


def read_stored(run: str, schema: pa.Schema, command: str) -> pa.Table:
    """Return the table that a command wrote by `--csv`.

    Raises:
        InputError: it cannot be read, or is another table.
    """
    try:
        stored = read_csv(Path(run))
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{run}: it cannot be read: {error}") from None
    if stored.column_names != schema.names:
        raise InputError(f"{run}: it was not written by `raydp-sim {command} --csv`")
    return stored.cast(schema)


def finished(run: str) -> Path:
    """Return the directory of a run.

    Raises:
        InputError: there is none, or it is not complete.
    """
    folder = RunDir.existing(run).path
    if not (folder / "summary.json").is_file():
        raise InputError(f"{run}: it is not complete; end it with `raydp-sim resume {run}`")
    return folder


def store(found: pa.Table, file: str) -> None:
    """Write a table.

    Raises:
        InputError: it cannot be written.
    """
    try:
        write_csv(found, Path(file))
    except OSError as error:
        raise bad_field("--csv", file, f"it cannot be written: {error.strerror}") from None
