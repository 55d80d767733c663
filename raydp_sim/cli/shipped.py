"""The scenarios that ship, and how a name on the command line becomes a file."""

import sys
from pathlib import Path

import raydp_sim

# In a checkout a link to the top-level folder; in an installed package the files themselves.
FOLDER = Path(raydp_sim.__file__).parent / "_scenarios"


def shipped() -> dict[str, Path]:
    """Return the scenarios that ship, by the name that `run` takes.

    Example:
        >>> shipped()["quickstart"].name
        'quickstart.yaml'
    """
    folder = FOLDER.resolve()
    paths = sorted(folder.rglob("*.yaml"))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def find(scenario: str) -> Path:
    """Return the file of a scenario given as a path or, if there is no such file, by name."""
    path = Path(scenario)
    if path.is_file():
        return path
    found = shipped().get(scenario)
    return path if found is None else shown(found)


def shown(path: Path) -> Path:
    """Return a path as short as it can be given here: relative if it lies below this folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def make_importable(folder: Path) -> None:
    """Let classes by import path be found in this folder and the working directory.

    They come last, so that a file of the user's cannot hide a module of someone else. Ray hands the
    driver's `sys.path` on to its workers.
    """
    for place in (str(Path.cwd()), str(folder.resolve())):
        if place not in sys.path:
            sys.path.append(place)
