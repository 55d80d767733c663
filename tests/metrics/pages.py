"""Runs for tests of the page, and who may see them."""

import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest

from raydp_sim.metrics.live.access import Grant, grant
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.source import OnDisk
from raydp_sim.metrics.page.turns import Turns

ALL, ANALYST, CHARGES, FIRST = (
    f"the token of {who}, long enough" for who in ("all", "analysts", "the ledger", "analyst-1")
)
GRANTS = [
    grant(ALL),
    grant(ANALYST, ["released"]),
    grant(CHARGES, ["released", "ledger"]),
    grant(FIRST, ["released"], "analyst-1"),
]
HOSTILE = "<script>alert(1)</script>"


def seen(path: Path, opened: Grant = GRANTS[0]) -> Seen:
    """A run as a token sees it."""
    return Seen(path.name, OnDisk(path), opened)


def browser(served: Any, **settings: Any) -> Any:
    """Starlette's test client, which asks the application without a network."""
    with warnings.catch_warnings():
        # It would rather have the successor of httpx, which hardly anybody has installed.
        warnings.simplefilter("ignore")
        from starlette.testclient import TestClient
    return TestClient(served, **settings)


def counted() -> Turns:
    """What was counted of a ledger before: nothing."""
    return Turns()


def certified(folder: Path) -> tuple[str, str]:
    """A certificate for this machine and its key, as PEM files."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    certificate, key = str(folder / "cert.pem"), str(folder / "key.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-out", certificate, "-keyout", key]
    subprocess.run([*command.split(), *subject, *files], check=True, capture_output=True)
    return certificate, key
