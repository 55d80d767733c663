"""Ray's job API over HTTP, with nothing but the standard library.

The head of the cluster needs `ray[default]`, which serves it; whoever submits needs no Ray at all.
"""

import http.client
import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raydp_sim.errors import InputError, RunError, bad_field

_SECONDS = 60.0
OVER = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})


@dataclass(frozen=True)
class Job:
    """What a cluster says of a job.

    Attributes:
        status: PENDING, RUNNING, SUCCEEDED, FAILED or STOPPED.
        message: in Ray's words.
        code: with which its command ended; None while it has not.
        metadata: that it was handed in with.
    """

    status: str
    message: str
    code: int | None
    metadata: dict[str, str]

    @property
    def over(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in OVER


class Jobs:
    """The jobs of the cluster whose dashboard is at an address, such as http://head:8265."""

    def __init__(self, address: str) -> None:
        self.address = address if "://" in address else f"http://{address}"
        if not self.address.startswith(("http://", "https://")):
            raise bad_field(
                "--address", address, "write http://HOST:8265, where Ray's dashboard is served"
            )

    def submit(
        self, name: str, command: str, variables: dict[str, str], metadata: dict[str, str]
    ) -> None:
        """Hand in a shell command.

        Args:
            name: of the job, not yet used.
            command: what the head's shell runs.
            variables: its environment.
            metadata: kept with the job.
        """
        body = {
            "submission_id": name,
            "entrypoint": command,
            "runtime_env": {"env_vars": variables},
            "metadata": metadata,
        }
        self._asked("POST", "/api/jobs/", body)

    def about(self, name: str) -> Job:
        """Return where a job stands."""
        found = self._asked("GET", f"/api/jobs/{name}")
        return Job(
            str(found["status"]),
            str(found.get("message") or ""),
            found.get("driver_exit_code"),
            dict(found.get("metadata") or {}),
        )

    def log(self, name: str) -> str:
        """Return all that a job has written so far."""
        return str(self._asked("GET", f"/api/jobs/{name}/logs").get("logs") or "")

    def stop(self, name: str) -> None:
        """End a job."""
        self._asked("POST", f"/api/jobs/{name}/stop")

    def _asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address.rstrip("/") + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        if (token := _token()) is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            raise self._refused(error, path) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise Unreachable(
                f"--address is {self.address!r}; no Ray job server answers there ({reason}); the "
                "head needs ray[default] and an open dashboard port, or a tunnel to it"
            ) from None

    def _refused(self, error: urllib.error.HTTPError, path: str) -> Exception:
        with error:
            said = error.read().decode(errors="replace").strip().splitlines()
        last = said[-1] if said else error.reason
        if error.code == 404:
            name = path.split("/")[3]
            return InputError(f"there is no job {name!r} at {self.address} ({last})")
        if error.code in (401, 403):
            return InputError(
                f"{self.address} wants a token ({last}); set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
            )
        return RunError(f"{self.address} answered {error.code}: {last}", resumable=False)


class Unreachable(InputError):
    """Nobody answers at the address, or not just now."""


def _token() -> str | None:
    """Return Ray's token as its own tools find it, if this user has one."""
    if given := os.environ.get("RAY_AUTH_TOKEN"):
        return given
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token")).expanduser()
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None
