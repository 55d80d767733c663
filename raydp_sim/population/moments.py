"""Draws that belong to a client and a moment: uniforms keyed by (client, number), many at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels.plain.threefry import threefry2x32
from raydp_sim.random import Floats, Ids, Stream

Times = float | NDArray[np.float64]
Numbers = NDArray[np.int64]


def numbers(ids: NDArray[Any], time: Times, period: float) -> Numbers:
    """Return the number of the period that each client's moment lies in.

    Example:
        >>> numbers(np.arange(2), 7.0, 2.0), numbers(np.arange(2), np.array([0.0, 4.5]), 2.0)
        (array([3, 3]), array([0, 2]))
    """
    wide = np.broadcast_to(np.asarray(time, dtype=np.float64), (len(ids),))
    return np.floor(wide / period).astype(np.int64)


def uniforms(stream: Stream, ids: NDArray[Any], places: Numbers, purpose: str) -> Floats:
    """Draw one uniform on [0, 1) for every (client, place), independent of who else is asked.

    Both are counters of one block cipher, so that a million clients at a million moments need one
    key. What of a place does not fit 32 bits goes into the key: few different ones at a time.

    Example:
        >>> ids, stream = np.arange(3), Stream(1)
        >>> many = uniforms(stream, ids, np.array([4, 9, 4]), "coin")
        >>> bool(many[1] == uniforms(stream, ids[1:2], np.array([9]), "coin")[0])
        True
    """
    out = np.empty(len(ids))
    above = places >> 32
    for high in np.unique(above):
        mine = slice(None) if (above == high).all() else above == high
        words = stream.at(purpose, int(high)).pairs(ids[mine], places[mine])
        out[mine] = _unit(*words)
    return out


def keyed_uniforms(
    stream: Stream, ids: NDArray[Any], places: Numbers, purpose: tuple[str, str]
) -> Floats:
    """Draw what `stream.at(first, place).clients(ids).uniform(second)` draws, place by place.

    There every place has a key of its own, which costs a hash for each different one.
    """
    first, second = purpose
    different, which = np.unique(places, return_inverse=True)
    made = [stream.at(first, int(place)).at(second).key() for place in different]
    keys = np.array(made, dtype=np.uint32).reshape(-1, 2)
    x0, x1 = ids.astype(np.uint32), np.zeros(len(ids), np.uint32)
    block = 1 << 15
    for start in range(0, len(ids), block):
        rows = slice(start, start + block)
        # The cipher takes a key per row as well as one for all.
        key: Any = (keys[which[rows], 0], keys[which[rows], 1])
        threefry2x32(x0[rows], x1[rows], key, np.empty_like(x0[rows]))
    return _unit(x0, x1)


def _unit(high: Ids, low: Ids) -> Floats:
    """Make 53-bit uniforms of 64 random bits, as `ClientStream.uniform` does."""
    return np.asarray((high * 2.0**21 + (low >> np.uint32(11))) * 2.0**-53)
