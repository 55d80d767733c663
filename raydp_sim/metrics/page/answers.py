"""The answers of the page, as JSON; for several who look at the same, made once."""

import contextlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pyarrow as pa

from raydp_sim.errors import InputError
from raydp_sim.metrics.live.access import Grant
from raydp_sim.metrics.page import crowd, documents, turns
from raydp_sim.metrics.page.runs import Runs
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.turns import Turns

DAMAGED = (OSError, ValueError, KeyError, TypeError, BadZipFile, pa.ArrowException)
"""What reading a damaged run directory raises."""
_KEPT = 64

Watched = Callable[[int], None]
"""Is told of one more, of one less, or with 0 that there still are as many."""
Epsilons = Callable[[Path], Any]
"""Returns the epsilon of every client of a run directory; what a scenario says is needed for it."""
Presence = Callable[[Path, Any], Any]
"""Returns who is there at moments of virtual time, group by group; None if everyone always is."""


class Page:
    """The page of some runs.

    Args:
        runs: to be shown.
        watched: is told who looks, so that a process does not end before they have seen the end.
        answering: is told of answers that are being made, likewise.
        epsilons: works out what every client of a run directory has spent; None: nobody does.
        presence: works out which clients were there when, likewise.
    """

    def __init__(
        self,
        runs: Runs,
        watched: Watched | None = None,
        answering: Watched | None = None,
        epsilons: Epsilons | None = None,
        presence: Presence | None = None,
    ) -> None:
        self.runs, self.epsilons, self.presence = runs, epsilons, presence
        self.watched = watched or (lambda change: None)
        self.answering = answering or (lambda change: None)
        self._answers: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._lock = threading.Lock()  # documents are made one at a time: they share tables
        self._ledgers = threading.Lock()  # replaying one may take long; others do not wait for it
        self._keeping = threading.Lock()
        self._lines: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}

    # What is answered, made in a thread of its own.

    def listed(self, grant: Grant) -> bytes:
        """Return the list of runs; of those that did not change, as it was made before."""
        rows = []
        for name in self.runs.names():
            if (found := self.runs.seen(name, grant)) is None:
                continue
            seen, _ = found
            version, key = seen.source.version(), (grant.digest, name)
            if self._lines.get(key, ("", {}))[0] != version:
                updated = _updated(seen.source.path)
                try:
                    line = documents.listed(seen, updated)
                except DAMAGED:
                    line = {**seen.about, "state": "damaged", "updated": round(updated, 3)}
                self._lines[key] = (version, line)
            rows.append(self._lines[key][1])
        return dumped({"runs": rows, "scopes": list(grant.scopes), "reader": grant.reader})

    def run(self, seen: Seen, counted: Turns) -> bytes:
        """Return everything that the page of a run shows."""

        def made() -> dict[str, Any]:
            whole = seen.charged and self.epsilons is not None
            model = self.models(seen)
            return {**documents.run(seen, counted), "ledger": whole, "availability": model}

        return self._kept(seen, "run", made)

    def shown(self, seen: Seen, version: str) -> bool:
        """Say whether somebody with this token was shown a run as of a version."""
        return ("run", seen.name, seen.grant.digest, version) in self._answers

    def ledger(self, seen: Seen) -> bytes:
        """Return what the clients have spent, as a panel; worked out anew when that has changed."""

        def made() -> dict[str, Any]:
            assert self.epsilons is not None
            try:
                return {"panel": turns.spending(self.epsilons(seen.source.path))}
            except InputError:
                return {"panel": None}

        return self._kept(seen, "ledger", made, self._ledgers)

    def models(self, seen: Seen) -> bool:
        """Say whether this token may know who was there, which only a simulation knows."""
        return seen.simulated and seen.released and self.presence is not None

    def availability(self, seen: Seen) -> bytes:
        """Return who was there when, as a panel; the scenario says so."""

        def made() -> dict[str, Any]:
            assert self.presence is not None
            if (times := crowd.moments(seen)) is None:
                return {"panel": None}
            try:
                found = self.presence(seen.source.path, times)
            except InputError:
                found = None
            return {"panel": None if found is None else crowd.there(times, *found)}

        return self._kept(seen, "availability", made, self._ledgers)

    def stream(self, seen: Seen, name: str) -> bytes:
        """Return a stream: its last rows, and lines."""
        return self._kept(seen, f"stream {name}", lambda: documents.stream(seen, name))

    def _kept(
        self, seen: Seen, what: str, make: Callable[[], dict[str, Any]], lock: Any = None
    ) -> bytes:
        key = (what, seen.name, seen.grant.digest, seen.source.version())
        with lock or self._lock:
            if (found := self._answers.get(key)) is None:
                found = dumped(make())
                with self._keeping:
                    self._answers[key] = found
                    while len(self._answers) > _KEPT:
                        self._answers.popitem(last=False)
            return found


def dumped(document: dict[str, Any]) -> bytes:
    """Return a document as JSON."""
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _updated(path: Path) -> float:
    times = []
    for part in ("metrics/releases", "summary.json", "scenario.yaml"):
        with contextlib.suppress(OSError):
            times.append((path / part).stat().st_mtime)
    return max(times, default=0.0)
