"""The run directory: everything a run leaves behind, and all that `resume` needs."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import yaml

from raydp_sim.durable import fresh_folder, held, write_durable
from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics import parts, streams
from raydp_sim.privacy.ledger import store
from raydp_sim.registry import search_also
from raydp_sim.run.documents import dumped, read_back
from raydp_sim.scenario import Scenario, load
from raydp_sim.tasks.base import Arrays

_ORIGIN = "origin.txt"
Shard = tuple[int, int, Arrays]
"""First and last client (exclusive), and their state."""


@dataclass(frozen=True)
class Checkpoint:
    """How far a run has come.

    Attributes:
        repetition: the one under way.
        finished: its releases that are done.
        saved: the readers' states, their last releases, the clock and the schedule, by name; None
            before the first release. The clients' state is beside it, in files of its own.
    """

    repetition: int = 0
    finished: int = 0
    saved: dict[str, Arrays] | None = None


def _packed(arrays: Arrays) -> bytes:
    buffer = BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # names are free, arrays are arrays
    return buffer.getvalue()


class RunDir:
    """Paths and files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / "metrics"
        self.ledger = path / "ledger"
        self.checkpoints = path / "checkpoints"
        self.summary_file = path / "summary.json"

    @classmethod
    def fresh(cls, name: str, out: str | Path | None) -> "RunDir":
        """Choose a directory that does not exist yet; nothing is created before the run begins.

        Raises:
            InputError: when `out` already holds something.
        """
        return cls(fresh_folder(name, out))

    @classmethod
    def existing(cls, path: str | Path) -> "RunDir":
        """Open the directory of an earlier run.

        Raises:
            InputError: when it is not one.
        """
        run = cls(Path(path).resolve())
        if not run.begun():
            raise InputError(f"{path}: there is no scenario.yaml in it; give a run directory")
        return run

    def begun(self) -> bool:
        """Say whether a run has been written down here."""
        return (self.path / "scenario.yaml").is_file()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Turn whatever reading a damaged directory raises into one message.

        Raises:
            InputError: names the directory.
        """
        try:
            yield
        except (OSError, ValueError, KeyError, BadZipFile, pa.ArrowException) as error:
            if isinstance(error, InputError):
                raise
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"{self.path}: the run directory is damaged ({why}); restore it, or run the "
                "scenario anew"
            ) from None

    def create(self, scenario: Scenario, origin: Path | None = None) -> None:
        """Make the directory and write down what is being run, and where its file was.

        Raises:
            InputError: when the directory cannot be made.
        """
        try:
            for folder in (self.metrics, self.ledger, self.checkpoints):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"--out is {str(self.path)!r}; {error.strerror}: give another"
            ) from None
        if origin is not None:
            write_durable(self.path / _ORIGIN, f"{origin.resolve()}\n".encode())
        text = yaml.safe_dump(scenario.document(), sort_keys=False, allow_unicode=True)
        write_durable(self.path / "scenario.yaml", text.encode())
        self.log("created")

    def scenario(self) -> Scenario:
        """Read back what is being run; classes by import path are looked for where its file was."""
        origin = self.path / _ORIGIN
        if origin.is_file():
            search_also(Path(origin.read_text(encoding="utf-8").strip()).parent)
        return load(self.path / "scenario.yaml")

    def played(self) -> bool:
        """Say whether a process is playing the run now."""
        return held(self.path / ".lock")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process from playing the same run meanwhile.

        Raises:
            InputError: names the process that is playing it.
        """
        with open(self.path / ".lock", "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                raise InputError(
                    f"{self.path}: it is still being played by process {file.read().strip()}; wait "
                    "for it, or stop it with Ctrl-C first"
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def check_paid(self) -> None:
        """Make sure that every release on record is in the ledger: a lost row would hide a cost.

        Raises:
            RunError: names the releases that are missing.
        """
        keys = [(row["repetition"], row["release"]) for row in self._keys(self.metrics)]
        if len(keys) > len(set(keys)):
            raise RunError(f"{self.metrics}: a release is recorded twice", resumable=False)
        charged = store.read(self.ledger).select(streams.KEY).to_pylist()
        paid = {(row["repetition"], row["release"]) for row in charged}
        missing = sorted(set(keys) - paid)
        if missing:
            raise RunError(
                f"{self.ledger}: {len(missing)} releases were made but are not in the ledger, the "
                f"first being release {missing[0][1]} of repetition {missing[0][0]}; restore the "
                "ledger, or run the scenario anew",
                resumable=False,
            )

    @staticmethod
    def _keys(metrics: Path) -> list[dict[str, int]]:
        rows: list[dict[str, int]] = (
            streams.read(metrics, "releases").select(streams.KEY).to_pylist()
        )
        return rows

    def save(self, checkpoint: Checkpoint, shards: Iterable[Shard] = ()) -> None:
        """Write a checkpoint and drop those before it.

        The clients' state comes first, one file per actor, and the checkpoint last: a kill in
        between leaves the checkpoint before it whole. Readers but the first have files of their
        own too, since they may hold keys that are nobody else's.
        """
        name = f"{checkpoint.repetition:06d}-{checkpoint.finished:08d}"
        for first, last, columns in shards:
            folder = self.checkpoints / f"{name}.clients"
            folder.mkdir(exist_ok=True)
            write_durable(folder / f"{first:010d}-{last:010d}.npz", _packed(columns))
            del columns  # before the next one is fetched
        arrays: dict[str, Arrays] = {"": {}}
        for group, members in (checkpoint.saved or {}).items():
            own = arrays.setdefault(group.partition("-")[2], {})
            own |= {f"{group}/{key}": array for key, array in members.items()}
        whole = arrays.pop("")
        for reader, own in arrays.items():
            folder = self.checkpoints / f"{name}.readers"
            folder.mkdir(exist_ok=True)
            write_durable(folder / f"{reader}.npz", _packed(own))
        write_durable(self.checkpoints / f"{name}.npz", _packed(whole))
        for older in sorted(self.checkpoints.glob("*.npz"))[:-1]:
            older.unlink()
        for kind in ("clients", "readers"):
            for older in self.checkpoints.glob(f"*.{kind}"):
                if older.stem != name:
                    shutil.rmtree(older, ignore_errors=True)

    def latest(self) -> Checkpoint:
        """Return the last checkpoint, or the beginning."""
        found = sorted(self.checkpoints.glob("*.npz"))
        if not found:
            return Checkpoint()
        repetition, finished = (int(part) for part in found[-1].stem.split("-"))
        saved: dict[str, Arrays] = {"state": {}, "public": {}}
        saved |= {"metrics": {}, "clock": {}, "schedule": {}}
        for part in (found[-1], *found[-1].with_suffix(".readers").glob("*.npz")):
            with np.load(part) as arrays:
                for path in arrays.files:
                    group, name = path.split("/", 1)
                    saved.setdefault(group, {})[name] = arrays[path]
        return Checkpoint(repetition, finished, saved if finished else None)

    def clients(self, checkpoint: Checkpoint, first: int, last: int) -> Arrays | None:
        """Return the state of some clients at a checkpoint; None if it has none.

        However clients were placed when it was made, only the files that hold some of these are
        read, one at a time.
        """
        name = f"{checkpoint.repetition:06d}-{checkpoint.finished:08d}.clients"
        parts: list[Arrays] = []
        for path in sorted((self.checkpoints / name).glob("*.npz")):
            begin, end = (int(part) for part in path.stem.split("-"))
            if end <= first or begin >= last:
                continue
            mine = slice(max(first, begin) - begin, min(last, end) - begin)
            with np.load(path) as columns:
                parts.append({key: columns[key][mine] for key in columns.files})
        if not parts:
            return None
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def rewind(self, checkpoint: Checkpoint) -> None:
        """Drop metric rows from beyond the checkpoint; the ledger keeps every row it has."""
        parts.trim(self.metrics, checkpoint.repetition, checkpoint.finished)

    def write_arrays(self, name: str, arrays: Arrays) -> None:
        """Write arrays to a file of their own, whole or not at all."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durable(path, _packed(arrays))

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write the summary document; a run that has one is complete."""
        write_durable(self.summary_file, (dumped(summary) + "\n").encode())

    def read_summary(self) -> dict[str, Any] | None:
        """Return the summary if the run is complete."""
        if not self.summary_file.is_file():
            return None
        return read_back(self.summary_file.read_text())

    def log(self, line: str) -> None:
        """Add a line to the log, with the time of day."""
        with open(self.path / "log.txt", "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")
