"""The scenarios that ship, and how a name on the command line becomes a file."""

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
