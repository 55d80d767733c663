"""What the epsilon of a run that is being played holds for, in words, in a file beside its streams.

A release has the name of the bound only: the words are long, and the same for most releases.
"""

import contextlib
import json
import time
from pathlib import Path

from raydp_sim.durable import write_durable
from raydp_sim.privacy.ledger.views import Guarantee

FILE = "guarantee.json"
_PAUSE = 1.0  # seconds between two writes for words alone, which may name the size of a batch


class Told:
    """Writes the words down when they change.

    Args:
        folder: the run directory.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._last, self._at = ("", ""), 0.0

    def tell(self, guarantee: Guarantee) -> None:
        """Write down what is proved so far; on a full disk nothing, the run goes on without."""
        now, said = time.monotonic(), (guarantee.bound, guarantee.assumption)
        if said == self._last or (said[0] == self._last[0] and now - self._at < _PAUSE):
            return
        self._last, self._at = said, now
        content = json.dumps(dict(zip(("bound", "assumption"), said, strict=True)), indent=2)
        with contextlib.suppress(OSError):
            write_durable(self._path, f"{content}\n".encode())
