"""The streams `estimates` (released) and `truth` (simulation-only): the answer of a run.

Each has one row per coordinate or category of a release. `estimates` has the task's best estimate
after that release with the standard error of its noise; `truth` has what was to be estimated, of
the whole population and of all who have taken part so far, and the error against the population.

Every release is written in full while rounds times coordinates are at most `EVERY`; beyond that
releases 1, 2, 4, 8 and so on are, counted from 1, and always the last one of a repetition.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raydp_sim.metrics import parts, streams

EVERY = 100_000
ESTIMATES, TRUTH = "estimates", "truth"
Floats = NDArray[np.float64]


def written(release: int, rounds: int, width: int) -> bool:
    """Say whether a release is written in full wherever it stands; the last one always is.

    Args:
        release: its number, from 0.
        rounds: how many there may be.
        width: coordinates of an estimate.

    Example:
        >>> [r + 1 for r in range(20) if written(r, rounds=20, width=10_000)]
        [1, 2, 4, 8, 16]
    """
    return rounds * width <= EVERY or (release + 1) & release == 0


def estimate_rows(names: Sequence[str], values: Floats, error: Floats) -> pa.RecordBatch:
    """Return an estimate as rows that a reader of the protocol could publish."""
    columns = {"estimate": values, "standard_error": streams.unknown_as_null(error)}
    return streams.released({**_coordinates(tuple(names), len(values)), **columns})


def truth_rows(
    names: Sequence[str], values: Floats, population: Floats, participants: Floats
) -> pa.RecordBatch:
    """Return what was to be estimated, and how far off the estimate is."""
    columns = {"population": population, "participants": participants, "error": values - population}
    return streams.simulation_only({**_coordinates(tuple(names), len(values)), **columns})


@lru_cache(maxsize=8)
def _coordinates(names: tuple[str, ...], width: int) -> dict[str, pa.Array]:
    # A mechanism may have room for more categories than have names; never for fewer. They are the
    # same after every release.
    known = np.array([*names, *map(str, range(len(names), width))])
    return {"coordinate": pa.array(np.arange(width)), "name": pa.array(known)}


@dataclass(frozen=True, eq=False)
class Named:
    """Numbers with the names of what they are of.

    Attributes:
        names: of the categories or coordinates.
        values: one each.
        standard_error: of the noise in each, given who took part; None of a truth.
        release: after which it was so, from 0.
    """

    names: tuple[str, ...]
    values: Floats
    standard_error: Floats | None = None
    release: int = 0

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[np.generic]:
        return np.array(self.values, dtype=dtype)  # type: ignore[call-overload, no-any-return]


def last_estimate(folder: Path, repetition: int = 0) -> Named | None:
    """Return the last estimate of a repetition; None where there is none.

    Args:
        folder: of the streams.
        repetition: which one.
    """
    rows = _last(folder, ESTIMATES, repetition)
    if rows is None:
        return None
    names, release = tuple(rows["name"].to_pylist()), rows["release"][0].as_py()
    return Named(names, rows["estimate"].to_numpy(), rows["standard_error"].to_numpy(), release)


def last_truth(folder: Path, repetition: int = 0, of: str = "population") -> Named | None:
    """Return what the last estimate of a repetition is of; None where that is not known.

    Args:
        folder: of the streams.
        repetition: which one.
        of: the `population`, or the `participants` so far, each as often as it took part.
    """
    rows = _last(folder, TRUTH, repetition)
    if rows is None:
        return None
    names, release = tuple(rows["name"].to_pylist()), rows["release"][0].as_py()
    return Named(names, rows[of].to_numpy(), release=release)


def _last(folder: Path, stream: str, repetition: int) -> pa.Table | None:
    own = sorted((folder / stream).glob(f"part-{repetition:06d}-*.parquet"))
    # A part is named after its first row, so one from the repetition before may hold ours.
    earlier = sorted((folder / stream).glob("part-*.parquet"))
    before = [path for path in earlier if path.name < f"part-{repetition:06d}-"][-1:]
    for path in reversed([*before, *own]):
        rows = parts.open_part(path)
        rows = rows.filter(pc.equal(rows["repetition"], repetition))
        if rows.num_rows:
            return rows.filter(pc.equal(rows["release"], pc.max(rows["release"])))
    return None
