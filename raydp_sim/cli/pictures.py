"""Where a picture may go: found out before anything is computed for it."""

import os
from pathlib import Path

from raydp_sim.errors import bad_field


def picture_file(plot: str | None) -> Path | None:
    """Return the path of `--plot`, or None if it was not given.

    Raises:
        InputError: it is no PNG, or lies where nothing can be written.
    """
    if plot is None:
        return None
    path = Path(plot)
    if path.suffix != ".png":
        raise bad_field("--plot", plot, "its name must end in .png")
    folder = path.resolve().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise bad_field("--plot", plot, "it must be a file in a writable directory that exists")
    return path
