"""Files that are whole or not there at all, in folders that nothing else is in."""

import fcntl
import os
import time
from pathlib import Path

from raydp_sim.errors import InputError


def fresh_folder(name: str, out: str | Path | None) -> Path:
    """Choose a folder that does not exist yet or is empty; nothing is created.

    Raises:
        InputError: when `out` already holds something.
    """
    if out is not None:
        path = Path(out)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(f"--out is {str(out)!r}; it already exists: choose another directory")
        return path.resolve()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for suffix in ("", *(f"-{i}" for i in range(2, 1000))):
        path = Path("runs") / f"{name}-{stamp}{suffix}"
        if not path.exists():
            return path.resolve()
    raise InputError("runs/ is full of runs of this second; give --out")


def write_durable(path: Path, content: bytes) -> None:
    """Write through a temporary file, `fsync` and a rename; survives a kill at any moment.

    Where it fails, as on a full disk, the temporary file does not take up what room there is.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def drop_unfinished(folder: Path) -> None:
    """Remove what writers left in a folder, at any depth, that were killed before their rename."""
    for path in folder.rglob(".*.tmp"):
        path.unlink(missing_ok=True)


def held(lock: Path) -> bool:
    """Say whether a process holds a lock file."""
    try:
        with open(lock, encoding="utf-8") as file:
            # Shared, so that two who ask at once do not take each other for the holder.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, IsADirectoryError):
        return False
    except OSError:
        return True
    return False


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
