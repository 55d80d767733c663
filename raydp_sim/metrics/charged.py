"""The ledger as streams: what was charged to whom, and who took part."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.metrics import columns
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.store import Charge

Rows = list[dict[str, Any]]
"""As the ledger stores them."""


def ledger(rows: Rows) -> pa.RecordBatch:
    """Return charges, one row each."""
    return pa.RecordBatch.from_pylist(rows, schema=columns.schema("ledger"))


def participation(rows: Rows) -> pa.RecordBatch:
    """Return the clients of charges, one row each."""
    schema = columns.schema("participation")
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=schema)
    charges = [Charge.of_row(row) for row in rows]
    ids = [np.asarray(charge.participants, np.uint32) for charge in charges]
    sizes = [len(each) for each in ids]
    keys = [[getattr(charge, name) for charge in charges] for name in ("repetition", "release")]
    places = [np.repeat(np.array(key, np.int64), sizes) for key in keys]
    return pa.RecordBatch.from_arrays(
        [*map(pa.array, places), pa.array(np.concatenate(ids))], schema=schema
    )


STREAMS: dict[str, Callable[[Rows], pa.RecordBatch]] = {
    "ledger": ledger,
    "participation": participation,
}


def read(folder: Path, stream: str) -> pa.Table:
    """Return a stream of a run's ledger, in the order of releases.

    Args:
        folder: of the ledger.
        stream: `ledger` or `participation`.
    """
    return pa.Table.from_batches([STREAMS[stream](store.read(folder).to_pylist())])
