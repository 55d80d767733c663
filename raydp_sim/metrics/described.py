"""What is said of a stream and of a column."""

from typing import Any, NamedTuple

import pyarrow as pa

VERSION = 1
RELEASED, SIMULATION_ONLY, LEDGER = "released", "simulation-only", "ledger"
VISIBILITIES = (RELEASED, SIMULATION_ONLY, LEDGER)


class Column(NamedTuple):
    """A column: its Arrow type, what it is measured in ("" where that is nothing), what it says."""

    type: Any
    unit: str
    meaning: str


class Described(NamedTuple):
    """A stream: who may see it, what one row of it is, and its columns after the key."""

    visibility: str
    row: str
    columns: dict[str, Column]
    version: int = VERSION


def whole(unit: str, meaning: str) -> Column:
    """Return a column of whole numbers."""
    return Column(pa.int64(), unit, meaning)


def real(unit: str, meaning: str) -> Column:
    """Return a column of real numbers."""
    return Column(pa.float64(), unit, meaning)


def text(meaning: str) -> Column:
    """Return a column of words."""
    return Column(pa.string(), "", meaning)


def yes_or_no(meaning: str) -> Column:
    """Return a column of answers."""
    return Column(pa.bool_(), "", meaning)
