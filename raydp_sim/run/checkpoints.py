"""Checkpoints: what a resumed run starts from, whole and unchanged or not used at all."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.durable import write_durable
from raydp_sim.errors import InputError
from raydp_sim.tasks.base import Arrays

_KEPT = 2  # the last one, and the one before it should the last be damaged
_NAME = re.compile(r"(\d{6,})-(\d{8,})\.npz")
_BESIDE = ("clients", "readers")
# Of the file itself; everything else in it belongs to a group and has its name, "group/name".
_NUMBER, _BESIDES, _SEAL = "number", "beside", "seal"
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

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.repetition:06d}-{self.finished:08d}"


class Damaged(Exception):
    """A checkpoint is not what was written."""


def packed(arrays: Arrays) -> bytes:
    """Return arrays as the bytes of one file."""
    buffer = BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # names are free, arrays are arrays
    return buffer.getvalue()


class Checkpoints:
    """The checkpoints of one run, of which the last two are kept.

    The file of a checkpoint holds its number, the checksums of the files beside it and one of all
    that it holds, so that a file that was cut, changed, renamed or lost is told from a whole one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, checkpoint: Checkpoint, shards: Iterable[Shard] = ()) -> None:
        """Write a checkpoint and drop all but the one before it.

        The clients' state comes first, one file per actor, and the checkpoint last: a kill in
        between leaves the checkpoint before it whole. Readers but the first have files of their
        own too, since they may hold keys that are nobody else's.
        """
        sums: dict[str, str] = {}
        for first, last, columns in shards:
            self._beside(checkpoint, f"clients/{first:010d}-{last:010d}.npz", columns, sums)
            del columns  # before the next one is fetched
        groups: dict[str, Arrays] = {"": {}}
        for group, members in (checkpoint.saved or {}).items():
            own = groups.setdefault(group.partition("-")[2], {})
            own |= {f"{group}/{key}": array for key, array in members.items()}
        whole = groups.pop("")
        for reader, held in groups.items():
            self._beside(checkpoint, f"readers/{reader}.npz", held, sums)
        whole[_NUMBER] = np.array([checkpoint.repetition, checkpoint.finished], np.int64)
        whole[_BESIDES] = np.frombuffer(json.dumps(sums).encode(), np.uint8)
        whole[_SEAL] = _seal(whole)
        write_durable(self.folder / f"{checkpoint.name}.npz", packed(whole))
        self.prune(_KEPT)

    def _beside(
        self, checkpoint: Checkpoint, part: str, arrays: Arrays, sums: dict[str, str]
    ) -> None:
        path = _place(self.folder / checkpoint.name, part)
        path.parent.mkdir(exist_ok=True)
        content = packed(arrays)
        write_durable(path, content)
        sums[part] = hashlib.blake2b(content, digest_size=16).hexdigest()

    def prune(self, kept: int) -> None:
        """Drop all but the last few."""
        found = sorted(path.stem for path in self.folder.glob("*.npz"))
        for name in found[:-kept]:
            (self.folder / f"{name}.npz").unlink()
        for kind in _BESIDE:
            for folder in self.folder.glob(f"*.{kind}"):
                if folder.stem not in found[-kept:]:
                    shutil.rmtree(folder, ignore_errors=True)

    def reached(self) -> Checkpoint:
        """Return the number of the last checkpoint, unread, or that of the beginning."""
        for name in reversed(self._names()):
            if found := _NAME.fullmatch(name):
                return Checkpoint(int(found[1]), int(found[2]))
        return Checkpoint()

    def latest(self) -> Checkpoint:
        """Return the last checkpoint, or the beginning.

        Raises:
            InputError: there is no folder of checkpoints, or one is damaged. It is set aside, so
                that the last good one is used next time.
        """
        if not self.folder.is_dir():
            raise InputError(
                f"{self.folder}: there is no such folder; restore it, or make an empty one to play "
                "the run from its beginning"
            )
        aside: list[str] = []
        good = Checkpoint()
        for name in reversed(self._names()):
            try:
                good = self._read(name)
                break
            except Damaged as damage:
                path = self.folder / name
                path.rename(path.with_name(f"{name}.damaged"))
                aside.append(f"{name} ({damage})")
        if not aside:
            return good
        raise InputError(
            f"{self.folder}: {' and '.join(aside)} is damaged and was set aside, with .damaged "
            f"added to its name; resume again to continue from release {good.finished} of "
            f"repetition {good.repetition}, or restore the file"
        )

    def _names(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*.npz"))

    def _read(self, name: str) -> Checkpoint:
        number = _NAME.fullmatch(name)
        if number is None:
            raise Damaged("its name is not that of a checkpoint")
        repetition, finished = int(number[1]), int(number[2])
        whole = _opened(self.folder / name)
        own = {key: whole.pop(key, np.empty(0, np.uint8)) for key in (_NUMBER, _BESIDES, _SEAL)}
        sealed = {**whole, _NUMBER: own[_NUMBER], _BESIDES: own[_BESIDES]}
        if not np.array_equal(own[_SEAL], _seal(sealed)):
            raise Damaged("its checksum is not that of what it holds")
        if own[_NUMBER].tolist() != [repetition, finished]:
            raise Damaged(f"it is number {own[_NUMBER].tolist()} by what it holds")
        beside = json.loads(own[_BESIDES].tobytes())
        saved: dict[str, Arrays] = {"state": {}, "public": {}}
        saved |= {"metrics": {}, "clock": {}, "schedule": {}}
        readers = list(self._checked(self.folder / name.removesuffix(".npz"), beside))
        for arrays in (whole, *readers):
            for path, array in arrays.items():
                group, member = path.split("/", 1)
                saved.setdefault(group, {})[member] = array
        return Checkpoint(repetition, finished, saved if finished else None)

    @staticmethod
    def _checked(stem: Path, beside: dict[str, str]) -> Iterator[Arrays]:
        """Check every file beside a checkpoint, one at a time; yield what readers hold."""
        for part, expected in beside.items():
            path = _place(stem, part)
            try:
                with open(path, "rb") as file:
                    found = hashlib.file_digest(file, _short_blake).hexdigest()
            except OSError as error:
                raise Damaged(f"{path.parent.name}/{path.name}: {error.strerror}") from None
            if found != expected:
                raise Damaged(f"{path.parent.name}/{path.name} is not what was written")
            if part.startswith("readers/"):
                yield _opened(path)

    def clients(self, checkpoint: Checkpoint, first: int, last: int) -> Arrays | None:
        """Return the state of some clients at a checkpoint; None if it has none.

        However clients were placed when it was made, only the files that hold some of these are
        read, one at a time.
        """
        parts: list[Arrays] = []
        for path in sorted((self.folder / f"{checkpoint.name}.clients").glob("*.npz")):
            begin, end = (int(part) for part in path.stem.split("-"))
            if end <= first or begin >= last:
                continue
            mine = slice(max(first, begin) - begin, min(last, end) - begin)
            with np.load(path) as columns:
                parts.append({key: columns[key][mine] for key in columns.files})
        if not parts:
            return None
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _place(stem: Path, part: str) -> Path:
    kind, name = part.split("/")
    return stem.with_name(f"{stem.name}.{kind}") / name


def _short_blake() -> Any:
    return hashlib.blake2b(digest_size=16)


def _seal(arrays: Arrays) -> np.ndarray:
    """Return a checksum of arrays: names, types, shapes and every byte."""
    total = _short_blake()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return np.frombuffer(total.digest(), np.uint8)


def _opened(path: Path) -> Arrays:
    try:
        # Opened here: `np.load` leaves a file open whose end is missing.
        with open(path, "rb") as file, np.load(file) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # whatever bytes there may be: zip, header and names are untrusted
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Damaged(f"{path.name} cannot be read: {why[:120]}") from None
