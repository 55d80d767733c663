"""Nothing of a private Ray outlives its driver: a folder with a lock, and a guard beside it.

Ray ends most of its processes when a driver is killed, but not its agents, nor does it remove its
folder. So a small process of its own waits for the driver's end and clears up; should it be killed
too, the next start does. Folders of other users and of drivers that live are never touched.

This file is also that process, so it imports nothing of ours and not Ray.
"""

import contextlib
import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

_SOCKET_ROOM = 40  # Ray's socket paths may have 107 bytes and add about 65 to their folder
_NAME = re.compile(r"rs-(\d+)-\w+")
_ALIVE = "alive"
_UNLOCKED_SECONDS = 3600.0  # after which a folder without a lock may be somebody's leftover
_CLEARING_SECONDS = 12.0


@contextlib.contextmanager
def private_folder() -> Iterator[str]:
    """Make a folder for a Ray of this process; whatever happens, it goes when the process does."""
    parent = tempfile.gettempdir()
    if len(parent) > _SOCKET_ROOM and os.path.isdir("/tmp"):
        parent = "/tmp"
    sweep(parent)
    folder = tempfile.mkdtemp(prefix=f"rs-{os.getpid()}-", dir=parent)
    with open(os.path.join(folder, _ALIVE), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        guard = subprocess.Popen(
            [sys.executable, "-P", __file__, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # so that Ctrl-C is not its end
        )
        try:
            yield folder
        finally:
            clear(folder)
            assert guard.stdin is not None
            guard.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.wait(_CLEARING_SECONDS)


def sweep(parent: str) -> None:
    """Clear up what killed drivers of this user left behind."""
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        if _NAME.fullmatch(name) and _abandoned(folder):
            clear(folder)


def _abandoned(folder: str) -> bool:
    """Say whether a folder is this user's and nobody's who lives."""
    try:
        about = os.lstat(folder)
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
            return False
        with open(os.path.join(folder, _ALIVE), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        # Being made just now, or of an earlier version: its name says by which process.
        owner = _NAME.fullmatch(os.path.basename(folder))
        old = time.time() - about.st_mtime > _UNLOCKED_SECONDS
        return old and owner is not None and not psutil.pid_exists(int(owner[1]))
    except OSError:
        return False
    return True


def clear(folder: str) -> None:
    """End every process that has files in a folder, and remove it."""
    deadline = time.monotonic() + _CLEARING_SECONDS
    while (found := _using(folder)) and time.monotonic() < deadline:
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=1.0)
    shutil.rmtree(folder, ignore_errors=True)


def _using(folder: str) -> list[psutil.Process]:
    """Return this user's processes that write their logs to the folder, or were given its name.

    Ray's processes hide their arguments; their open files tell whose they are.
    """
    inside, mine = folder + os.sep, os.geteuid()
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or process.uids().effective != mine:
                continue
            opened = any(file.path.startswith(inside) for file in process.open_files())
            if opened or any(inside in word for word in process.cmdline()):
                found.append(process)
    return found


if __name__ == "__main__":
    sys.stdin.buffer.read()  # until the driver closes it, or is no more
    if Path(sys.argv[1]).is_dir():
        clear(sys.argv[1])
