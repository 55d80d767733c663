"""Sinks at work: each in a thread of its own, with its own place in every stream."""

import threading
import time
from pathlib import Path
from typing import Any

from raydp_sim.metrics.live.store import Interrupted, Store
from raydp_sim.metrics.sinks import SINKS
from raydp_sim.metrics.sinks.base import Began, Outlet, Sink

_PAUSE = 0.05


class Outlets:
    """The sinks of a run."""

    def __init__(self, documents: list[dict[str, Any]], store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.began = Began(folder, store.about)
        # Here, one after the other: threads that import modules of each other may wait for ever.
        sinks = [(document.get("kind"), self._parsed(document)) for document in documents]
        self.threads = [
            threading.Thread(target=self._work, args=(kind, sink), daemon=True)
            for kind, sink in sinks
            if sink is not None
        ]
        for thread in self.threads:
            thread.start()

    def finish(self, seconds: float) -> None:
        """Let sinks take what is left, for a while."""
        deadline = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _parsed(self, document: dict[str, Any]) -> Sink | None:
        try:
            sink: Sink = SINKS.parse(document)
            return sink
        except Exception as error:  # a class of the user's own may fail in any way
            self._failed(document.get("kind"), error)
            return None

    def _work(self, kind: str | None, sink: Sink) -> None:
        # The run's folder is made when all clients are placed, and sinks write there.
        while not self.folder.is_dir():
            if self.store.ended:
                return
            time.sleep(_PAUSE)
        try:
            outlet = sink.opened(self.began)
            try:
                self._hand_over(outlet)
            finally:
                outlet.close()
        except Exception as error:  # a sink of the user's own may fail in any way
            self._failed(kind, error)

    def _failed(self, kind: str | None, error: Exception) -> None:
        self._note(f"the sink {kind} failed and gets no more rows: {error!r}")

    def _hand_over(self, outlet: Outlet) -> None:
        places: dict[str, int] = {}
        while True:
            # Before streams are looked at: when it is over, all rows are there to be taken.
            ended = self.store.ended
            with self.store.changed:
                names = list(self.store.streams)
            if not any([self._take(outlet, name, places) for name in names]):
                if ended:
                    return
                with self.store.changed:
                    self.store.changed.wait(_PAUSE)

    def _take(self, outlet: Outlet, name: str, places: dict[str, int]) -> bool:
        """Hand over what is new in a stream; say whether there was anything."""
        stream = self.store.streams[name]
        try:
            found = self.store.since(stream, places.get(name, 0), 0.0)
        except Interrupted:
            return False
        for batch in found or ():
            outlet.rows(name, batch)
            places[name] = places.get(name, 0) + batch.num_rows
        return bool(found)

    def _note(self, line: str) -> None:
        # As the run's own lines; both append.
        with open(self.folder / "log.txt", "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")
