"""Finished runs are copied to wherever Arrow reaches: a shared folder, or a store of objects.

A store of objects is no run directory: it can neither append a charge durably nor lock. So a run is
played on a disk, and copied when it is complete.
"""

import re
import secrets
import shutil
from pathlib import Path

import pyarrow as pa

from raydp_sim.errors import InputError, RunError
from raydp_sim.remote.parcel import files

_LAST = "summary.json"  # a copy that has it is complete
_SECRETS = re.compile(r"(?<=://)[^@\s]*:[^@\s]*@|\?.*")  # abfs://container@account has none
_FAILURES = (OSError, ValueError, pa.ArrowException)
_BYTES = 1 << 20


class Copies:
    """A place that runs are copied to, each into a folder of its own name.

    Args:
        uri: such as file:///mnt/runs, s3://bucket/runs, gs://bucket/runs or abfs://container@account/.

    Raises:
        InputError: Arrow has no such file system, or nothing can be written there.
    """

    def __init__(self, uri: str) -> None:
        from pyarrow import fs  # here: it brings the clients of several stores

        self.shown = _SECRETS.sub("", uri)
        try:
            self._there, self._base = fs.FileSystem.from_uri(uri)
            self._probe()
        except _FAILURES as error:
            raise InputError(
                f"--copy-to is {self.shown!r}; {_why(error)}: give file:///..., s3://..., gs://... "
                "or abfs://..., where this machine may write"
            ) from None

    def _probe(self) -> None:
        """Find out before a run, not after it, whether something can be written."""
        self._there.create_dir(self._base)
        path = f"{self._base}/.raydp-sim-{secrets.token_hex(4)}"
        with self._there.open_output_stream(path) as file:
            file.write(b"")
        self._there.delete_file(path)

    def send(self, folder: Path) -> str:
        """Copy a finished run, its summary last; return where it is.

        A copy that was cut off is made again, a complete one is left as it is.

        Raises:
            RunError: it could not be copied, or another run of that name is there.
        """
        place, shown = f"{self._base}/{folder.name}", f"{self.shown.rstrip('/')}/{folder.name}"
        summary = folder / _LAST
        try:
            if (found := self._read(f"{place}/{_LAST}")) is not None:
                if found == summary.read_bytes():
                    return shown
                raise RunError(f"{shown} holds another run, and is left as it is", False)
            for path in (*(path for path in files(folder) if path != summary), summary):
                self._copy(path, f"{place}/{path.relative_to(folder).as_posix()}")
        except _FAILURES as error:
            raise RunError(
                f"the run is complete, but could not be copied to {shown} ({_why(error)}); try "
                f"again with `raydp-sim resume {folder} --copy-to ...`"
            ) from None
        return shown

    def _read(self, path: str) -> bytes | None:
        if not self._there.get_file_info(path).is_file:
            return None
        with self._there.open_input_stream(path) as file:
            return bytes(file.read())

    def _copy(self, source: Path, path: str) -> None:
        self._there.create_dir(path.rpartition("/")[0])
        with open(source, "rb") as file, self._there.open_output_stream(path) as copy:
            shutil.copyfileobj(file, copy, _BYTES)


def _why(error: Exception) -> str:
    return _SECRETS.sub("", str(error).splitlines()[0]) if str(error) else type(error).__name__
