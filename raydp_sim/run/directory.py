"""The run directory: everything a run leaves behind, and all that `resume` needs."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pyarrow as pa
import yaml

from raydp_sim.durable import drop_unfinished, fresh_folder, held, write_durable
from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics import parts, streams
from raydp_sim.privacy.ledger import store
from raydp_sim.registry import search_also
from raydp_sim.run.checkpoints import Checkpoint as Checkpoint
from raydp_sim.run.checkpoints import Checkpoints, Shard, packed
from raydp_sim.run.documents import dumped, read_back
from raydp_sim.scenario import Scenario, load
from raydp_sim.tasks.base import Arrays

_ORIGIN, _LOCK = "origin.txt", ".lock"
# What may be there before the scenario is, which is written last.
_MAKING = frozenset({"metrics", "ledger", "checkpoints", _ORIGIN, _LOCK})


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class RunDir:
    """Paths and files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / "metrics"
        self.ledger = path / "ledger"
        self.checkpoints = Checkpoints(path / "checkpoints")
        self.summary_file = path / "summary.json"

    @classmethod
    def fresh(cls, name: str, out: str | Path | None) -> "RunDir":
        """Choose a directory that does not exist yet; nothing is created before the run begins.

        One whose run was killed while it was being made, before anything was played, is taken up.

        Raises:
            InputError: when `out` already holds something.
        """
        if out is not None and cls(Path(out)).unbegun():
            return cls(Path(out).resolve())
        return cls(fresh_folder(name, out))

    @classmethod
    def existing(cls, path: str | Path) -> "RunDir":
        """Open the directory of an earlier run.

        Raises:
            InputError: when it is not one.
        """
        run = cls(Path(path).resolve())
        if run.unbegun():
            raise InputError(
                f"{path}: its run was killed before it began, and nothing was played; start it "
                f"again with `raydp-sim run SCENARIO --out {path}`"
            )
        if not run.begun():
            raise InputError(f"{path}: there is no scenario.yaml in it; give a run directory")
        return run

    def begun(self) -> bool:
        """Say whether a run has been written down here."""
        return (self.path / "scenario.yaml").is_file()

    def unbegun(self) -> bool:
        """Say whether there is nothing here but what a killed `create` leaves."""
        if not self.path.is_dir():
            return False
        found = {entry.name for entry in self.path.iterdir()}
        known = all(
            name in _MAKING or (name.startswith(".") and name.endswith(".tmp")) for name in found
        )
        folders = [self.path / name for name in found & {"metrics", "ledger", "checkpoints"}]
        return bool(folders) and known and not any(any(each.glob("*")) for each in folders)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Turn whatever reading a damaged directory raises into one message.

        Raises:
            InputError: names the directory.
            OSError: there is no room for what is written anew.
        """
        try:
            yield
        except (OSError, ValueError, KeyError, BadZipFile, pa.ArrowException) as error:
            if isinstance(error, InputError) or getattr(error, "errno", None) in _NO_ROOM:
                raise
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"{self.path}: the run directory is damaged ({why}); restore it, or run the "
                "scenario anew"
            ) from None

    def make(self) -> None:
        """Make the directory, empty but for its folders.

        Raises:
            InputError: when it cannot be made.
        """
        try:
            for folder in (self.metrics, self.ledger, self.checkpoints.folder):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"--out is {str(self.path)!r}; {error.strerror}: give another"
            ) from None

    def create(self, scenario: Scenario, origin: Path | None = None) -> None:
        """Make the directory and write down what is being run, and where its file was.

        Raises:
            InputError: when it cannot be made, or another run has begun in it.
        """
        self.make()
        if self.begun():
            raise InputError(
                f"--out is {str(self.path)!r}; another run has begun there meanwhile: give another"
            )
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
        return held(self.path / _LOCK)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process from playing the same run meanwhile.

        Raises:
            InputError: names the process that is playing it.
        """
        try:
            file = open(self.path / _LOCK, "a+", encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"{self.path / _LOCK}: {error.strerror}; it has to be a file that can be written: "
                "remove it"
            ) from None
        with file:
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
        """Write a checkpoint; see `Checkpoints`, where all of these are."""
        self.checkpoints.save(checkpoint, shards)

    def latest(self) -> Checkpoint:
        """Return the last checkpoint, or the beginning; see `Checkpoints.latest`."""
        return self.checkpoints.latest()

    def clients(self, checkpoint: Checkpoint, first: int, last: int) -> Arrays | None:
        """Return the state of some clients at a checkpoint; None if it has none."""
        return self.checkpoints.clients(checkpoint, first, last)

    def rewind(self, checkpoint: Checkpoint) -> None:
        """Drop metric rows from beyond the checkpoint; the ledger keeps every row it has."""
        drop_unfinished(self.path)
        parts.trim(self.metrics, checkpoint.repetition, checkpoint.finished)

    def write_arrays(self, name: str, arrays: Arrays) -> None:
        """Write arrays to a file of their own, whole or not at all."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durable(path, packed(arrays))

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
