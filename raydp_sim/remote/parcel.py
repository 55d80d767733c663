"""A run directory as lines of text and back: a job's log is all that comes back from everywhere.

`python -m raydp_sim.remote.parcel FOLDER` writes one to standard output.
"""

import base64
import hashlib
import io
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from raydp_sim.errors import RunError

_MARK = "parcel "  # begins each line of one; whatever else is in a log does not
_BYTES = 48 << 10
_LEFT_OUT = frozenset({".lock"})


def files(folder: Path) -> Iterator[Path]:
    """Yield what is to be copied of a run directory."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name not in _LEFT_OUT:
            yield path


def wrapped(folder: Path) -> Iterator[str]:
    """Yield the lines of a folder, the last of which has the checksum of all."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in files(folder):
            archive.add(path, path.relative_to(folder).as_posix())
    content = zlib.compress(packed.getvalue(), 6)
    for first in range(0, len(content), _BYTES):
        yield _MARK + base64.b64encode(content[first : first + _BYTES]).decode()
    yield f"{_MARK}end {hashlib.sha256(content).hexdigest()}"


def unwrap(log: str, folder: Path) -> None:
    """Make a folder from the lines of it in a log; it is there as a whole or not at all.

    Raises:
        RunError: lines are missing, damaged, or name a file outside of the folder.
    """
    lines = [line.removeprefix(_MARK) for line in log.splitlines() if line.startswith(_MARK)]
    if not lines or not lines[-1].startswith("end "):
        raise RunError("the run directory did not come back whole; try again with --attach")
    content = b"".join(base64.b64decode(line) for line in lines[:-1])
    if hashlib.sha256(content).hexdigest() != lines[-1].removeprefix("end "):
        raise RunError("the run directory came back damaged; try again with --attach")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".parcel-", dir=folder.parent) as beside:
        place = Path(beside) / "run"
        _unpack(zlib.decompress(content), place)
        if folder.is_dir():
            folder.rmdir()  # only an empty one is ever chosen
        place.rename(folder)


def _unpack(content: bytes, place: Path) -> None:
    place.mkdir()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            file = archive.extractfile(member) if member.isfile() else None
            if file is None or name.is_absolute() or ".." in name.parts:
                raise RunError(f"what came back names {member.name!r}, which is no file of a run")
            target = place.joinpath(*name.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with file, open(target, "wb") as copy:
                shutil.copyfileobj(file, copy)


if __name__ == "__main__":
    for line in wrapped(Path(sys.argv[1])):
        print(line)
