"""What became of each kill: kept while a campaign goes on, and as a table when it is over."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydp_sim.chaos.plan import KINDS
from raydp_sim.durable import write_durable
from raydp_sim.errors import InputError

_NAME = "campaign.json"
SCHEMA = pa.schema(
    [
        ("killed", pa.string()),
        ("run", pa.int64()),
        ("leg", pa.int64()),
        ("resumed", pa.bool_()),
        ("seconds", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Fate:
    """What became of one kill.

    Attributes:
        killed: the kind.
        run, leg: in which it was made, counted from 0.
        resumed: whether the run had to be resumed; if not, it went on by itself.
        seconds: the longest that no row came before the next kill.
    """

    killed: str
    run: int
    leg: int
    resumed: bool
    seconds: float


@dataclass
class Record:
    """How far a campaign has come.

    Attributes:
        options: what it was started with.
        runs: that were proved.
        legs: that were played.
        fates: of the kills that were made.
    """

    options: dict[str, Any]
    runs: int = 0
    legs: int = 0
    fates: list[Fate] = field(default_factory=list)

    @classmethod
    def taken_up(cls, folder: Path, options: dict[str, Any]) -> "Record":
        """Return the record of a campaign that was interrupted, or a new one.

        Raises:
            InputError: a campaign with other options is in the folder.
        """
        if not (folder / _NAME).is_file():
            return cls(options)
        found = json.loads((folder / _NAME).read_text(encoding="utf-8"))
        known, asked = found["options"], json.loads(json.dumps(options))
        if known != asked:
            other = next(name for name in asked if known.get(name) != asked[name])
            raise InputError(
                f"--out is {str(folder)!r}; a campaign with another {other} is there: give the "
                "options that it was started with to continue it, or another folder"
            )
        fates = [Fate(**fate) for fate in found["fates"]]
        return cls(options, found["runs"], found["legs"], fates)

    def save(self, folder: Path) -> None:
        """Write it, whole or not at all."""
        write_durable(folder / _NAME, json.dumps(asdict(self)).encode())


def is_campaign(folder: Path) -> bool:
    """Say whether a folder holds a campaign."""
    return (folder / _NAME).is_file()


def table(fates: Iterable[Fate]) -> pa.Table:
    """Return one row per kill."""
    return pa.Table.from_pylist([asdict(fate) for fate in fates], schema=SCHEMA)


def fates_of(stored: pa.Table) -> list[Fate]:
    """Return what a table says."""
    return [Fate(**row) for row in stored.to_pylist()]


@dataclass(frozen=True)
class Tally:
    """What became of the kills of one kind.

    Attributes:
        kills: made.
        went_on: after which the run went on by itself.
        resumed: after which it was resumed.
        seconds: lost in all.
        median_s, longest_s: of one.
    """

    kills: int
    went_on: int
    resumed: int
    seconds: float
    median_s: float
    longest_s: float


def tallies(fates: Iterable[Fate]) -> dict[str, Tally]:
    """Return the tally of each kind that was killed.

    Example:
        >>> found = tallies([Fate("ledger", 0, 0, False, 2.0), Fate("ledger", 0, 0, True, 3.0)])
        >>> found["ledger"]
        Tally(kills=2, went_on=1, resumed=1, seconds=5.0, median_s=2.5, longest_s=3.0)
    """
    listed, found = list(fates), {}
    for kind in KINDS:
        own = [fate for fate in listed if fate.killed == kind]
        if own:
            found[kind] = _tally(own)
    return found


def _tally(own: list[Fate]) -> Tally:
    seconds, resumed = [fate.seconds for fate in own], sum(fate.resumed for fate in own)
    middle = statistics.median(seconds)
    return Tally(len(own), len(own) - resumed, resumed, sum(seconds), middle, max(seconds))
