"""What an analyst keeps of reports for a promotion to come, and what it makes of one."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import RunError
from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.stream.batches import Opened, Promoted

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Folded:
    """What a reader has folded of a release.

    Attributes:
        counts: of reports, opened at the reader's level.
        release: number of the release; None before the first chunk.
        fingerprint: of recovered values.
        kept: chunks that a later promotion may open further.
        promoted: further keys for what was kept before.
    """

    counts: Counts
    release: int | None = None
    fingerprint: int = 0
    kept: tuple[Opened, ...] = field(default=())
    promoted: tuple[Promoted, ...] = field(default=())


def kept(state: Arrays, folded: Folded, sample: int) -> Arrays:
    """Return what is kept after a release: what there was, and its reports with their keys.

    Beside the reports, `samples` says which sample of its clients each release was of.
    """
    release = 0 if folded.release is None else folded.release
    chunks = folded.kept
    more = {
        "of": np.full(sum(len(chunk.rid) for chunk in chunks), release, np.int32),
        "rid": np.concatenate([chunk.rid for chunk in chunks]),
        "payload": np.concatenate([chunk.payload.reshape(-1) for chunk in chunks]).astype(
            np.uint32
        ),
        "key": np.concatenate([chunk.key for chunk in chunks]).astype(np.uint32),
    }
    more["samples"] = np.array([[release, sample]])
    if "samples" not in state:
        return more
    return {name: np.concatenate([state[name], more[name]]) for name in more}


class Refined(NamedTuple):
    """What a promotion makes of one earlier release.

    Attributes:
        of: number of the release.
        sample: of its clients that it was of.
        promoted: reports that are seen at the new level now.
        missing: reports whose clients were absent when the keys were asked for.
        before: estimate from all reports at the old level.
        after: estimate from each report at the level that it is seen at now.
    """

    of: int
    sample: int
    promoted: int
    missing: int
    before: Floats
    after: Floats


def refined(
    mechanism: Leveled, state: Arrays, parts: tuple[Promoted, ...], held: int, to: int
) -> list[Refined]:
    """Open what was kept as far as the promotion's keys go, release by release.

    Estimates are sums over reports, each decoded at its own level: unbiased for any data, whoever
    was absent.

    Args:
        mechanism: of all releases.
        state: with what was kept.
        parts: the promotion's keys; those of releases that were withheld open nothing.
        held: the level before.
        to: the level afterwards.

    Raises:
        RunError: a key is for no report, or a report has two.
    """
    key, has = state["key"].copy(), np.zeros(len(state["rid"]), np.bool_)
    order = np.argsort(state["rid"])
    ids = state["rid"][order]
    for part in parts:
        released = np.isin(part.of, state["samples"][:, 0])
        rid = part.rid[released]
        place = np.minimum(np.searchsorted(ids, rid), max(0, len(ids) - 1))
        if len(rid) and (not len(ids) or (ids[place] != rid).any() or has[order[place]].any()):
            raise RunError(
                "a promotion has keys for reports that were never made, or two for one report",
                resumable=False,
            )
        rows = order[place]
        key[rows] ^= part.key[released].astype(np.uint32)
        has[rows] = True
    found = []
    for release, sample in state["samples"].tolist():
        own = state["of"] == release
        now, still = own & has, own & ~has
        before = _sum(mechanism, state["payload"][own], state["key"][own], held)
        after = _sum(mechanism, state["payload"][now], key[now], to)
        after = after + _sum(mechanism, state["payload"][still], key[still], held)
        total = max(1, int(own.sum()))
        sizes = (int(now.sum()), int(still.sum()))
        found.append(Refined(release, sample, *sizes, before / total, after / total))
    return found


def _sum(mechanism: Leveled, payload: NDArray[Any], key: NDArray[Any], level: int) -> Any:
    """Return the sum of reports decoded at a level."""
    opened = mechanism.opened(payload, key.astype(payload.dtype), level)
    index = np.broadcast_to(np.int64(0), len(opened))
    counts = mechanism.fold(mechanism.zero(), index, opened)
    return mechanism.view(level).decode(counts) * len(opened)
