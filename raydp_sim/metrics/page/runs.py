"""The runs of a folder, by name; what was read of each is kept while it is looked at."""

import os
import threading
from collections import OrderedDict
from pathlib import Path

from raydp_sim.metrics.live.access import Grant
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.source import OnDisk, Source
from raydp_sim.metrics.page.turns import Turns

_DEEP = 4  # folders below the one that is served: sweeps have runs in folders of their own
_KEPT = 8  # runs whose tables are kept


def is_run(path: Path) -> bool:
    """Say whether a folder is a run directory; figures are none."""
    return (path / "scenario.yaml").is_file() and (path / "metrics").is_dir()


class Runs:
    """The runs below a folder, or the one in it.

    A name that is not in the list of those found is nobody's: no path is ever made of it.

    Args:
        folder: a run directory, or a folder of them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._sources: OrderedDict[str, tuple[Source, Turns]] = OrderedDict()
        self._lock = threading.Lock()

    def found(self) -> dict[str, Path]:
        """Return the runs that there are now, by name; links are not followed."""
        if is_run(self.folder):
            return {self.folder.name: self.folder}
        found: dict[str, Path] = {}
        base = len(self.folder.parts)
        for place, folders, _ in os.walk(self.folder):
            path = Path(place)
            if path != self.folder and is_run(path):
                found[str(path.relative_to(self.folder))] = path
                folders.clear()
            elif len(path.parts) - base >= _DEEP:
                folders.clear()
            else:
                folders[:] = sorted(each for each in folders if not each.startswith("."))
        return dict(sorted(found.items()))

    def source(self, name: str) -> tuple[Source, Turns] | None:
        """Return where a run is read from, and what was counted of its ledger; None if no run."""
        path = self.found().get(name)
        if path is None:
            return None
        with self._lock:
            if name not in self._sources:
                self._sources[name] = OnDisk(path), Turns()
            self._sources.move_to_end(name)
            while len(self._sources) > _KEPT:
                self._sources.popitem(last=False)
            return self._sources[name]

    def names(self) -> list[str]:
        """Return the names of the runs."""
        return list(self.found())

    def seen(self, name: str, grant: Grant) -> tuple[Seen, Turns] | None:
        """Return a run as a token sees it; None if there is no such run."""
        if (found := self.source(name)) is None:
            return None
        return Seen(name, found[0], grant), found[1]

    def version(self) -> str:
        """Return a word that changes when a run comes, goes or gets on."""
        found = []
        for name, path in self.found().items():
            times = []
            for part in ("metrics/releases", "metrics/waiting.npz", "summary.json"):
                try:
                    times.append((path / part).stat().st_mtime_ns)
                except OSError:
                    times.append(0)
            found.append((name, *times, OnDisk(path).state()))
        return f"{hash(tuple(found)) & (1 << 60) - 1:x}"


class One(Runs):
    """The one run that this process serves.

    Args:
        name: of the run.
        source: where it is read from.
    """

    def __init__(self, name: str, source: Source) -> None:
        self.name, self._source, self._turns = name, source, Turns()

    def found(self) -> dict[str, Path]:
        """Return the run."""
        return {self.name: self._source.path}

    def source(self, name: str) -> tuple[Source, Turns] | None:
        """Return where it is read from."""
        return (self._source, self._turns) if name == self.name else None

    def version(self) -> str:
        """Return a word that changes with every row."""
        return self._source.version()
