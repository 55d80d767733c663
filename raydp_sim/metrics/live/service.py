"""The Flight service: lists a run's streams, and lets any number of followers read them."""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from raydp_sim.metrics import charged, columns
from raydp_sim.metrics.described import LEDGER
from raydp_sim.metrics.live import ledger
from raydp_sim.metrics.live.access import Grant, admitted
from raydp_sim.metrics.live.store import Interrupted, Store, Stream, empty

_WAIT = 0.25  # seconds after which a follower that has gone is noticed
_SLOTS = 100  # batches of rows that travel alone are put together

Yielded = tuple[pa.RecordBatch, bytes]


class _Admitted(flight.ServerMiddleware):  # type: ignore[misc]  # pyarrow has no types
    """Carries what the caller's token opens."""

    def __init__(self, grant: Grant) -> None:
        super().__init__()
        self.grant = grant


class _Door(flight.ServerMiddlewareFactory):  # type: ignore[misc]  # pyarrow has no types
    """Refuses every call without a token that is known, before anything else is looked at."""

    def __init__(self, grants: list[Grant]) -> None:
        super().__init__()
        self.grants = grants

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> _Admitted:
        given = headers.get("authorization", [])
        grant = admitted(self.grants, given[0] if len(given) == 1 else None)
        if grant is None:
            raise flight.FlightUnauthenticatedError("a valid bearer token is needed")
        return _Admitted(grant)


class Service(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Serves one run."""

    def __init__(
        self,
        location: str,
        store: Store,
        folder: Path,
        grants: list[Grant],
        certificates: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        self.store, self._ledger = store, folder.parent / "ledger"
        door = {"door": _Door(grants)}
        super().__init__(location, tls_certificates=certificates, middleware=door)

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Answer `runs`: what runs there are and how far they have come, as JSON."""
        if action.type != "runs":
            raise flight.FlightServerError("there is one action: runs")
        state = "interrupted" if self.store.interrupted else "over" if self.store.ended else "live"
        return iter([json.dumps([{**self.store.about, "state": state}]).encode()])

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Say what may be asked for."""
        return [("runs", "the runs that are served, as JSON")]

    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        """Yield the streams that the caller's token opens."""
        grant = _grant(context)
        with self.store.changed:
            known = dict(self.store.streams)
        if grant.opens(LEDGER, None):
            known |= {name: self._charged(name) for name in charged.STREAMS}
        for name, stream in sorted(known.items()):
            if grant.opens(stream.visibility, stream.reader):
                yield self._info(name, stream)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Return what is known of the stream with the path (run, stream)."""
        name = _decoded(descriptor.path)
        return self._info(name, self._opened(context, name, wait=False))

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Send rows from an offset on: all that there are, or until the run is over."""
        try:
            wanted = json.loads(ticket.ticket)
            name, start, follow = wanted["stream"], wanted["start"], bool(wanted["follow"])
        except (ValueError, KeyError, TypeError):
            raise flight.FlightServerError("a ticket is JSON with stream, start, follow") from None
        stream = self._opened(context, name, wait=follow)
        rows = partial(self._charges, name) if name in charged.STREAMS else self._rows
        until = None if follow else stream.total
        return flight.GeneratorStream(
            stream.schema, self._counted(rows, context, stream, int(start), until)
        )

    def _opened(self, context: Any, name: str, wait: bool) -> Stream:
        """Return a stream if the caller's token opens it; one that it does not is not there."""
        grant, shipped = _grant(context), columns.known(name)
        whose = name if name.startswith("analyst-") else grant.reader
        if shipped is not None and not grant.opens(shipped.visibility, whose):
            raise _unknown(name)
        known = self.store.streams.get(name)
        stream = self._charged(name) if name in charged.STREAMS else known
        # A stream that ships may still be to come; nobody knows of others before they are here.
        while stream is None and wait and shipped is not None and not self.store.ended:
            if context.is_cancelled():
                break
            stream = self.store.wait_for(name, _WAIT)
        stream = stream or empty(name)
        if stream is None or not grant.opens(stream.visibility, stream.reader):
            raise _unknown(name)
        return stream

    def _charged(self, name: str) -> Stream:
        stream = Stream(columns.schema(name))
        stream.total = ledger.count(self._ledger, name)
        return stream

    def _info(self, name: str, stream: Stream) -> Any:
        run = str(self.store.about.get("run", ""))
        descriptor = flight.FlightDescriptor.for_path(run, name)
        ticket = json.dumps({"stream": name, "start": 0, "follow": False}).encode()
        endpoint = flight.FlightEndpoint(ticket, [])
        return flight.FlightInfo(stream.schema, descriptor, [endpoint], stream.total, -1)

    def _counted(
        self, rows: Callable[..., Iterator[Yielded]], context: Any, *args: Any
    ) -> Iterator[Yielded]:
        """Yield rows, and let the process know that somebody still gets them."""
        store = self.store
        with store.changed:
            store.followers += 1
        try:
            for found in rows(context, *args):
                store.moved = time.monotonic()
                yield found
        except Interrupted:
            raise flight.FlightUnavailableError("the run was interrupted") from None
        finally:
            with store.changed:
                store.followers -= 1
                store.changed.notify_all()

    def _rows(
        self, context: Any, stream: Stream, offset: int, until: int | None
    ) -> Iterator[Yielded]:
        while not context.is_cancelled():
            if until is not None and offset >= until:
                return
            found = self.store.since(stream, offset, _WAIT if until is None else 0.0)
            if found is None:
                return
            if len(found) > 1 and found[-1].num_rows < _SLOTS:
                found = pa.Table.from_batches(found).combine_chunks().to_batches()
            for batch in found:
                kept = batch if until is None else batch.slice(0, until - offset)
                if kept.num_rows:
                    yield kept, str(offset).encode()
                offset += batch.num_rows

    def _charges(
        self, name: str, context: Any, stream: Stream, offset: int, until: int | None
    ) -> Iterator[Yielded]:
        place = 0
        for batch in ledger.charges(self.store, self._ledger, name):
            if context.is_cancelled():
                return
            kept = batch.slice(min(batch.num_rows, max(0, offset - place)))
            if kept.num_rows:
                yield kept, str(place + batch.num_rows - kept.num_rows).encode()
            place += batch.num_rows
            if until is not None and not batch.num_rows:
                return


def _grant(context: Any) -> Grant:
    found: Grant = context.get_middleware("door").grant
    return found


def _decoded(path: list[bytes]) -> str:
    return path[-1].decode() if path else ""


def _unknown(name: str) -> Exception:
    error: Exception = flight.FlightServerError(f"there is no stream {name!r} for this token")
    return error
