"""Recordings of public benchmarks as tables of stays, in the layouts of layouts.py.

Clients are numbered from 0 in the order of their names, by number if all names are numbers.
"""

import io
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from raydp_sim.errors import InputError, bad_field
from raydp_sim.population.intervals import ENDINGS, Intervals, load
from raydp_sim.population.layouts import Pairs, Recorded, record_of


@dataclass(frozen=True)
class Recording:
    """A recording as a table.

    Attributes:
        stays: the table.
        clients: how many clients were recorded, those never there included.
        length: seconds after which it may start anew.
        notes: what was changed on the way, for a person to read.
    """

    stays: Intervals
    clients: int
    length: float
    notes: tuple[str, ...] = ()


def read(path: Path, clients: int | None = None) -> Recording:
    """Read a recording: a table of ours, or a public layout as JSON or as a pickle.

    Args:
        path: the file.
        clients: keep so many clients only, the first ones.

    Raises:
        InputError: names the file, the client and what is wrong.
    """
    if path.suffix in ENDINGS:
        stays = load(path)
        kept = stays if clients is None else stays.first(clients)
        if not len(kept):
            raise InputError(f"{path}: none of the first {clients} clients is ever there")
        return Recording(kept, kept.clients(), kept.end)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: it cannot be read ({error.strerror}); check the path") from None
    return convert(parse(content, str(path)), str(path), clients)


def parse(content: bytes, source: str = "recording") -> Any:
    """Read JSON, or a pickle of nothing but containers, text and numbers.

    Raises:
        InputError: when it is neither; a pickle that names any class or function is refused, for
            loading it could run anything.

    Example:
        >>> parse(b'{"7": {"active": [1], "inactive": [5], "finish_time": 9}}')["7"]["active"]
        [1]
    """
    if not content.strip():
        raise InputError(f"{source}: it is empty; give a recording as JSON or as a pickle")
    if content.lstrip()[:1] in (b"{", b"["):
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{source}: it is not valid JSON ({error}); mend it") from None
    try:
        return _Plain(io.BytesIO(content)).load()
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except Exception as error:  # bytes that are no pickle fail in any way
        why = str(error).partition("\n")[0] or type(error).__name__
        endings = ", ".join(ENDINGS)
        raise InputError(
            f"{source}: it is neither JSON nor a pickle ({why}); a table must end in {endings}"
        ) from None


class _Plain(pickle.Unpickler):
    """Builds containers, text and numbers, for which no class is looked up, and nothing else."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise InputError(
            f"the pickle asks for {module}.{name}; only dicts, lists, text and numbers are read, "
            "for anything else could run code: save it as JSON instead"
        )


def convert(document: Any, source: str = "recording", clients: int | None = None) -> Recording:
    """Turn a mapping of clients' records into a table.

    Example:
        >>> record = {"active": [2, 7], "inactive": [5, 9], "finish_time": 10}
        >>> made = convert({"12": record, "7": record}, clients=1)
        >>> made.clients, made.length, made.stays.on.tolist(), made.stays.off.tolist()
        (1, 10.0, [2.0, 7.0], [5.0, 9.0])
    """
    if not isinstance(document, Mapping) or not document:
        raise InputError(f"{source}: it must be a mapping from clients to their records")
    names = _in_order(document)
    if clients is not None and clients > len(names):
        raise bad_field("--clients", clients, f"{source} has only {len(names)} clients; lower it")
    names = names[:clients]
    records = [record_of(document[name], f"{source}: client {name!r}") for name in names]
    start = min(record.start for record in records)
    length = max(record.end for record in records) - start
    if not length > 0:
        raise InputError(f"{source}: the recording has no length; give one with a finish_time")
    parts, joined, cut = [], 0, 0
    for number, record in enumerate(records):
        inside = [(on, min(off, record.end)) for on, off in record.stays if on < record.end]
        kept = _union(inside)
        cut += len(record.stays) - len(inside) + sum(off > record.end for _, off in record.stays)
        joined += sum(off > on for on, off in inside) - len(kept)
        parts.append((np.full(len(kept), number), np.array(kept).reshape(-1, 2) - start))
    client = np.concatenate([numbers for numbers, _ in parts]).astype(np.int64)
    times = np.concatenate([stays for _, stays in parts])
    if not len(client):
        raise InputError(f"{source}: nobody is ever there; give a recording with stays")
    stays = Intervals(client, times[:, 0].copy(), times[:, 1].copy())
    return Recording(stays, len(names), length, _notes(records, stays, joined, cut))


def _notes(records: list[Recorded], stays: Intervals, joined: int, cut: int) -> tuple[str, ...]:
    lengths = [record.end - record.start for record in records if record.start < record.end]
    notes = []
    if joined:
        notes.append(f"{joined} overlapping or touching stays were joined")
    if cut:
        notes.append(f"{cut} stays were cut at the end of the recording")
    if never := len(records) - len(np.unique(stays.client)):
        notes.append(f"{never} of the clients are never there")
    if min(lengths) < max(lengths):
        notes.append(
            f"clients were watched for {min(lengths):g} to {max(lengths):g} seconds; outside its "
            "own recording a client is away"
        )
    return tuple(notes)


def _in_order(document: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(document, key=int)
    except (TypeError, ValueError):
        return sorted(document, key=str)


def _union(pairs: Pairs) -> Pairs:
    """Sort the stays, join those that overlap or touch, and drop those without length."""
    made = Pairs()
    for on, off in sorted(pairs):
        if off <= on:
            continue
        if made and on <= made[-1][1]:
            made[-1] = (made[-1][0], max(off, made[-1][1]))
        else:
            made.append((on, off))
    return made
