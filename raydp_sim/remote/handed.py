"""What is handed in: shell commands that play a scenario on a cluster and send its folder back."""

import secrets
import shlex
import time
from collections.abc import Sequence

_SCENARIO = "RAYDP_SIM_SUBMITTED"
FOLDER = "raydp_sim_folder"
"""Under this name a job's metadata say where its run directory is on the cluster."""
_RESUMED = 3  # times that a run which cannot go on is resumed by itself


def new_name(scenario: str) -> str:
    """Return a name for a job that nobody else has."""
    return f"{scenario}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def variables(text: str) -> dict[str, str]:
    """Return the environment that carries a scenario's text."""
    return {_SCENARIO: text, "PYTHONUNBUFFERED": "1"}


def playing(
    folder: str, assignments: Sequence[str], seed: int | None, copy_to: str | None = None
) -> str:
    """Return the command that plays a scenario in a folder, or takes up what is there.

    Its progress goes to the job's log; the summary comes back with the folder. A run that cannot go
    on (exit code 3), for a node that was lost with its shuffler, say, is resumed a few times.
    """
    options = [part for each in assignments for part in ("--set", each)]
    if seed is not None:
        options += ["--seed", str(seed)]
    copied = [] if copy_to is None else ["--copy-to", copy_to]
    words, again = shlex.join([*options, *copied]), shlex.join(copied)
    return "\n".join(
        [
            f"folder={_shell_path(folder)}",
            'mkdir -p "$(dirname "$folder")" || exit 2',
            f'printf %s "${_SCENARIO}" > "$folder.yaml" || exit 2',
            'if [ -f "$folder/scenario.yaml" ]; then code=3; else',
            f'  raydp-sim run "$folder.yaml" --address auto --out "$folder" {words} > /dev/null',
            "  code=$?",
            "fi",
            f"for again in {' '.join(map(str, range(1, _RESUMED + 1)))}; do",
            '  [ "$code" = 3 ] || break',
            f'  raydp-sim resume "$folder" --address auto {again} > /dev/null',
            "  code=$?",
            "done",
            'exit "$code"',
        ]
    )


def sending(folder: str) -> str:
    """Return the command that writes a run directory to the log of its job."""
    return f"python -m raydp_sim.remote.parcel {_shell_path(folder)}"


def _shell_path(folder: str) -> str:
    """Quote a path, but let the cluster's shell say where home is."""
    if folder.startswith("~/"):
        return f'"$HOME"/{shlex.quote(folder[2:])}'
    return shlex.quote(folder)
