"""The tables of one run: from its folder, or also from the process that serves it."""

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from raydp_sim.durable import held
from raydp_sim.metrics import charged, columns, parts, streams
from raydp_sim.metrics.live.store import Interrupted, Store

LIVE, OVER, INTERRUPTED = "live", "over", "interrupted"
Stamp = tuple[int, int]
"""Of a file: when it was written, in nanoseconds, and its size."""


class Source(Protocol):
    """Where a run is read from."""

    path: Path

    def version(self) -> str:
        """Return a word that changes whenever there is something new."""
        ...

    def state(self) -> str:
        """Say whether the run is live, over or interrupted."""
        ...

    def schemas(self) -> dict[str, pa.Schema]:
        """Return the streams that there are."""
        ...

    def table(self, stream: str, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a stream in the order of releases, or some columns of them."""
        ...


class OnDisk:
    """A run as its folder has it; parts that were read are kept, since they never change.

    Args:
        path: the run directory.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.folder = path, path / "metrics"
        self._parts: dict[tuple[str, tuple[str, ...] | None], dict[Path, tuple[Stamp, pa.Table]]]
        self._parts, self._schemas = {}, dict[str, tuple[Path, pa.Schema]]()

    def version(self) -> str:
        """Return a word that changes whenever a part, a charge or the summary comes."""
        found = [stamped(self.folder / "waiting.npz"), stamped(self.path / "summary.json")]
        found += [
            stamped(self.path / "ledger" / name) for name in ("charges.log", "ledger.parquet")
        ]
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            # The time of a folder changes when a part is renamed into it.
            places = sorted(each.path for each in entries if each.is_dir())
            found += [stamped(Path(place)) for place in places]
        return f"{hash((tuple(found), self.state())) & (1 << 60) - 1:x}"

    def state(self) -> str:
        """Say whether a process plays the run, or did so to its end."""
        if (self.path / "summary.json").is_file():
            return OVER
        return LIVE if held(self.path / ".lock") else INTERRUPTED

    def schemas(self) -> dict[str, pa.Schema]:
        """Return the streams that have parts, or rows that wait to become one."""
        found = {}
        for name in parts.names(self.folder):
            first = min((self.folder / name).glob("part-*.parquet"), default=None)
            if first is None:
                continue
            if self._schemas.get(name, (None, None))[0] != first:
                self._schemas[name] = (first, pq.read_schema(first))
            found[name] = self._schemas[name][1]
        for name, rows in parts.waiting(self.folder).items():
            found.setdefault(name, rows.schema)
        if (self.path / "ledger").is_dir():
            found |= {name: columns.schema(name) for name in charged.STREAMS}
        return found

    def table(self, stream: str, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a stream in the order of releases, or some columns of them."""
        if stream in charged.STREAMS:
            return _chosen(charged.read(self.path / "ledger", stream), names)
        # As `parts.read`: what waits is looked at before parts are listed.
        waiting = parts.waiting(self.folder).get(stream)
        paths = sorted((self.folder / stream).glob("part-*.parquet"))
        tables = self.of_parts(stream, paths, names)
        if waiting is not None and parts.stem(waiting) not in {path.stem for path in paths}:
            tables.append(_chosen(waiting, names))
        return in_order(tables, stream)

    def of_parts(
        self, stream: str, paths: Sequence[Path], names: Sequence[str] | None
    ) -> list[pa.Table]:
        """Return the rows of some parts; those read before are not read again."""
        key = (stream, None if names is None else tuple(names))
        known, now = self._parts.get(key, {}), dict[Path, tuple[Stamp, pa.Table]]()
        for path in paths:
            # A resumed run may have cut a part: then its time is another.
            stamp = stamped(path)
            if path in known and known[path][0] == stamp:
                now[path] = known[path]
            else:
                with contextlib.suppress(FileNotFoundError):
                    now[path] = (stamp, _read(path, names))
        self._parts[key] = now
        return [rows for _, rows in now.values()]


class Stored:
    """A run that this very process serves: rows are there before any part has them.

    Args:
        store: what it has shown.
        path: the run directory.
    """

    def __init__(self, store: Store, path: Path) -> None:
        self.store, self.path = store, path
        self._disk = OnDisk(path)

    def version(self) -> str:
        """Return a word that changes with every row."""
        with self.store.lock:
            total = sum(stream.total for stream in self.store.streams.values())
        return f"{total}-{self.state()}"

    def state(self) -> str:
        """Say whether rows still come."""
        if self.store.interrupted:
            return INTERRUPTED
        return OVER if self.store.ended else LIVE

    def schemas(self) -> dict[str, pa.Schema]:
        """Return the streams that have begun."""
        with self.store.lock:
            found = {name: stream.schema for name, stream in self.store.streams.items()}
        return found | {name: columns.schema(name) for name in charged.STREAMS}

    def table(self, stream: str, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a stream in the order of releases, or some columns of them."""
        if stream in charged.STREAMS:
            return self._disk.table(stream, names)
        with self.store.lock:
            known = self.store.streams.get(stream)
            whole = [] if known is None else list(known.parts)
        tables = self._disk.of_parts(stream, [part.path for part in whole], names)
        if known is not None:
            offset = max((part.offset + part.rows for part in whole), default=0)
            with contextlib.suppress(Interrupted):
                while found := self.store.since(known, offset, 0.0):
                    offset += sum(batch.num_rows for batch in found)
                    tables.append(_chosen(pa.Table.from_batches(found), names))
        return in_order(tables, stream)


def in_order(tables: Sequence[pa.Table], stream: str) -> pa.Table:
    """Return tables as one, sorted by release; of a stream without rows an empty one."""
    if not tables:
        known = columns.known(stream)
        return (
            pa.table({name: pa.array([], pa.int64()) for name in streams.KEY})
            if (known is None)
            else columns.schema(stream).empty_table()
        )
    whole = pa.concat_tables(tables, promote_options="default")
    keys = [whole[name].to_numpy() for name in streams.KEY]
    place = (keys[0].astype("int64") << 40) + keys[1]
    if (place[1:] < place[:-1]).any():
        whole = whole.take(pa.array(place.argsort(kind="stable")))
    return whole


def scenario(path: Path) -> dict[str, Any]:
    """Return the scenario of a run as its file has it; empty if that cannot be read."""
    try:
        found = yaml.safe_load((path / "scenario.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def document(path: Path) -> dict[str, Any]:
    """Return a JSON document that a run has written; empty if it has not."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(path: Path, names: Sequence[str] | None) -> pa.Table:
    if names is None:
        return parts.open_part(path)
    schema = pq.read_schema(path)
    wanted = [name for name in (*streams.KEY, *names) if name in schema.names]
    return pq.read_table(path, columns=wanted, partitioning=None).replace_schema_metadata(None)


def _chosen(rows: pa.Table, names: Sequence[str] | None) -> pa.Table:
    if names is None:
        return rows
    wanted = [name for name in (*streams.KEY, *names) if name in rows.column_names]
    return rows.select(wanted).replace_schema_metadata(None)


def stamped(path: Path | None) -> Stamp:
    """Return when a file was written, and its size; zeros if there is none."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        found = None
    return (0, 0) if found is None else (found.st_mtime_ns, found.st_size)
