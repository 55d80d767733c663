"""The layouts of public recordings of when clients are there: one record per client.

Three layouts are known, each one mapping from a client to its record:

- FedScale's client behaviour trace (Lai et al. 2022), pickled or as JSON: instants `active` and
  `inactive` in pairs, and `finish_time`, after which it starts anew. There a client is still
  active at the very instant of `inactive`, here no longer.
- FLASH's cached timers (Yang et al. 2021), JSON: `ready_time` as pairs of instants, between
  `trace_start` and `trace_end`.
- FLASH's state traces, JSON: `messages`, one line per change of state with a time, a tab and the
  state. As there, a client is ready while it is locked, charging and on wifi; a stay that the end
  of the recording cuts off counts until that end.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from raydp_sim.errors import InputError, bad_field

Pairs = list[tuple[float, float]]

_NETWORKS = ("wifi", "unknown", "2g", "3g", "4g", "5g")
_EPOCH = datetime(2020, 1, 1)
_LONGEST = 1e12


@dataclass(frozen=True)
class Recorded:
    """One client's record: from when until when it was watched, and its stays.

    Attributes:
        start: first second of the recording.
        end: last second.
        stays: pairs of instants, as recorded.
    """

    start: float
    end: float
    stays: Pairs


def record_of(record: Any, where: str) -> Recorded:
    """Read one client's record, in whichever layout it is.

    Args:
        record: what the recording holds of the client.
        where: the file and the client, for messages.

    Raises:
        InputError: names them, the field and what is wrong.
    """
    for field, reader in _LAYOUTS.items():
        if isinstance(record, Mapping) and field in record:
            return reader(record, where)
    known = ", ".join(_LAYOUTS)
    raise InputError(f"{where}: its record must be a mapping with one of {known}")


def _fedscale(record: Mapping[str, Any], where: str) -> Recorded:
    on, off = (_instants(record.get(name), where, name) for name in ("active", "inactive"))
    if len(on) != len(off):
        raise InputError(
            f"{where}: active has {len(on)} instants and inactive {len(off)}; they must be pairs"
        )
    end = _instants([record.get("finish_time")], where, "finish_time")[0]
    pairs = list(zip(on, off, strict=True))
    _forward(pairs, 0.0, where)
    return Recorded(0.0, end, pairs)


def _flash_timer(record: Mapping[str, Any], where: str) -> Recorded:
    ready = record["ready_time"]
    if not isinstance(ready, list) or any(
        not isinstance(pair, list | tuple) or len(pair) != 2 for pair in ready
    ):
        raise InputError(f"{where}: ready_time must be a list of pairs of instants")
    flat = _instants([instant for pair in ready for instant in pair], where, "ready_time")
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    if record.get("trace_start") is None and not pairs:
        # FLASH leaves both out for a client whose recording failed.
        return Recorded(math.inf, -math.inf, [])
    bounds = [record.get("trace_start"), record.get("trace_end")]
    start, end = _instants(bounds, where, "trace_start and trace_end")
    _forward(pairs, start, where)
    return Recorded(start, end, pairs)


def _flash_messages(record: Mapping[str, Any], where: str) -> Recorded:
    """Follow FLASH's states: ready means locked, charging and on wifi."""
    states = {"locked": False, "charging": False, "wifi": False}
    pairs, since, moments = Pairs(), None, list[float]()
    for number, line in enumerate(str(record["messages"]).splitlines(), 1):
        if not line.strip():
            continue
        stamp, _, state = line.strip().partition("\t")
        try:
            now = (datetime.fromisoformat(stamp.strip()) - _EPOCH).total_seconds()
        except (ValueError, TypeError):
            raise InputError(
                f"{where}: line {number} of messages is {line!r}; it must be a time such as "
                "2020-01-02 03:04:05, a tab and a state"
            ) from None
        if moments and now < moments[-1]:
            raise InputError(f"{where}: line {number} of messages is earlier than the one before")
        moments.append(now)
        _change(states, state.strip().lower(), f"{where}: line {number} of messages")
        ready = all(states.values())
        if ready and since is None:
            since = now
        elif not ready and since is not None:
            pairs.append((since, now))
            since = None
    if not moments:
        return Recorded(math.inf, -math.inf, [])
    if since is not None:
        pairs.append((since, moments[-1]))
    return Recorded(moments[0], moments[-1], pairs)


def _change(states: dict[str, bool], state: str, where: str) -> None:
    if state in ("battery_charged_on", "battery_charged_off"):
        states["charging"] = state == "battery_charged_on"
    elif state in ("screen_lock", "screen_unlock"):
        states["locked"] = state == "screen_lock"
    elif state in _NETWORKS:
        states["wifi"] = state == "wifi"
    elif state not in ("screen_on", "screen_off") and not state.endswith("%"):
        raise InputError(f"{where} has the state {state!r}, which is not known; remove the line")


_LAYOUTS: dict[str, Callable[[Mapping[str, Any], str], Recorded]] = {
    "active": _fedscale,
    "ready_time": _flash_timer,
    "messages": _flash_messages,
}


def _instants(values: Any, where: str, field: str) -> list[float]:
    if not isinstance(values, list | tuple):
        raise InputError(f"{where}: {field} must be a list of numbers")
    for value in values:
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or not abs(value) < _LONGEST:
            remedy = f"it must be a number of seconds below {_LONGEST:g}"
            raise bad_field(field, value, remedy, where)
    return [float(value) for value in values]


def _forward(pairs: Pairs, start: float, where: str) -> None:
    for on, off in pairs:
        if off < on:
            raise InputError(f"{where}: a stay begins at {on:g} and ends at {off:g}; swap them")
        if on < start:
            raise InputError(f"{where}: a stay begins at {on:g}, before the recording at {start:g}")
