"""With what the numbers were made."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from raydp_sim.version import __version__


def provenance() -> dict[str, str]:
    """Say with what the numbers were made; results are bit-identical only where these agree."""
    return {
        "version": __version__,
        "git": _git(),
        "python": platform.python_version(),
        "ray": version("ray"),
        "numpy": version("numpy"),
        "cpu": _cpu(),
    }


def _git() -> str:
    folder = Path(__file__).resolve().parents[1]
    if not (folder / ".git").exists():
        return ""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    return f"{names[0] if names else platform.processor()} x{os.cpu_count()}"
