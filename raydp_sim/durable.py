"""Files that are whole or not there at all."""

import os
from pathlib import Path


def write_durable(path: Path, content: bytes) -> None:
    """Write through a temporary file, `fsync` and a rename; survives a kill at any moment."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
