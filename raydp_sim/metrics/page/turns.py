"""What the ledger says of the clients: how often each took part and when, and what each spent."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raydp_sim.metrics.page.crowd import heat_map, span
from raydp_sim.metrics.page.lines import Panel
from raydp_sim.metrics.page.results import CLIENTS, PRIVACY
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.source import stamped
from raydp_sim.metrics.page.thin import Floats, numbers
from raydp_sim.privacy.ledger import store

_CLIENTS = 48  # rows of a heat map: clients are put together by their numbers
_BARS = 40


class Turns:
    """How often each client was charged, and when: taken from a ledger charge by charge.

    Charges that were counted are not read again while the run is played.
    """

    def __init__(self) -> None:
        self.place, self.seen = 0, set[tuple[int, int]]()
        self.compacted = stamped(None)
        self.counts = np.zeros(0, np.int64)
        self.times: list[float] = []
        self.cohorts: list[NDArray[np.float64]] = []

    def take(self, folder: Path, clients: int) -> None:
        """Count what is new, of the first repetition."""
        if len(self.counts) != clients:
            self.__init__()  # type: ignore[misc]  # another population: begin anew
            self.counts = np.zeros(clients, np.int64)
        found = store.logged_after(folder, self.place)
        if found is not None:
            rows, self.place = found
            charges = [store.Charge.of_row(row) for row in rows if row["repetition"] == 0]
        elif (stamp := stamped(folder / store.COMPACTED)) != self.compacted:
            self.compacted, charges = stamp, list(store.charges(folder, 0))
        else:
            return
        size = -(-clients // _CLIENTS)
        for charge in charges:
            if (charge.repetition, charge.release) in self.seen:
                continue
            self.seen.add((charge.repetition, charge.release))
            ids = np.asarray(charge.participants, np.int64)
            self.counts[ids] += 1
            self.times.append(charge.time)
            self.cohorts.append(np.bincount(ids // size, minlength=-(-clients // size)) / size)


def taking_part(seen: Seen, turns: Turns) -> list[Panel]:
    """Return how often clients took part, and which of them when; nothing without the ledger."""
    clients = seen.about["clients"]
    if not seen.charged or not isinstance(clients, int) or clients < 1:
        return []
    turns.take(seen.source.path / "ledger", clients)
    if not turns.times:
        return []
    found = [_often(turns)]
    if len(turns.times) > 1:
        found.append(_when(turns, clients))
    return found


def _often(turns: Turns) -> Panel:
    most = int(turns.counts.max())
    wide = max(1, -(-(most + 1) // _BARS))
    bars = np.bincount(turns.counts // wide)
    at = np.arange(len(bars)) * wide
    never, mean = float((turns.counts == 0).mean()), float(turns.counts.mean())
    return {
        "id": "often",
        "tab": CLIENTS,
        "kind": "bars",
        "title": "How often clients took part",
        "note": f"{never:.1%} never did; {mean:.4g} releases on average, {most:,} at most.",
        "marks": ["ledger"],
        "x": {"label": "releases that a client was in", "unit": "", "wide": wide},
        "y": {"label": "clients", "unit": "", "zero": True},
        "series": [{"label": "clients", "colour": 0}],
        "data": [at.tolist(), bars.tolist()],
    }


def _when(turns: Turns, clients: int) -> Panel:
    time = np.array(turns.times)
    edges, scale, unit = span(time)
    place = np.clip(np.searchsorted(edges, time, "right") - 1, 0, len(edges) - 2)
    cohorts = np.stack(turns.cohorts)
    total = np.zeros((len(edges) - 1, cohorts.shape[1]))
    np.add.at(total, place, cohorts)
    size = -(-clients // _CLIENTS)
    names = [f"{first:,}" for first in range(0, clients, size)]
    what = "client" if size == 1 else f"clients from number, {size:,} to a row"
    empty = np.bincount(place, minlength=len(edges) - 1) == 0
    total[empty] = np.nan
    return heat_map(
        "when",
        "Which clients took part when",
        f"Releases that a client was in, mean over {'each' if size == 1 else 'a row of'} clients.",
        ["ledger"],
        total.T,
        names,
        {"label": "virtual time", "unit": unit, "from": 0.0, "to": float(edges[-1] / scale)},
        "releases per client",
        what,
    )


def spread(seen: Seen) -> Panel | None:
    """Return what share of the clients has spent at most how much, of a run that is over."""
    found = seen.summary.get("privacy", {}).get("per_client")
    if not seen.charged or not isinstance(found, dict):
        return None
    names = ("min", "p5", "p25", "median", "p75", "p95", "max")
    places = list(zip(names, (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0), strict=True))
    values = [found.get(name) for name, _ in places]
    if any(not isinstance(value, (int, float)) for value in values):
        return None
    never = found.get("never", 0.0)
    return {
        "id": "spread",
        "tab": PRIVACY,
        "kind": "lines",
        "title": "Epsilon over the clients",
        "note": f"{never:.1%} of the clients were never charged." if never else "",
        "marks": ["ledger"],
        "x": {"label": "share of the clients that have spent no more", "unit": ""},
        "y": {"label": "epsilon", "unit": "", "zero": True},
        "series": [{"label": "epsilon of the run", "colour": 0, "style": "steps"}],
        "data": [[share for _, share in places], numbers(np.array(values, np.float64))],
        "bands": [],
        "withheld": [],
        "rows": len(places),
    }


def spending(epsilons: Floats) -> Panel | None:
    """Return how many clients have spent how much; None where there is no guarantee.

    Args:
        epsilons: of every client.
    """
    most = float(epsilons.max(initial=0.0))
    if not np.isfinite(most) or not len(epsilons):
        return None
    wide = most / _BARS if most > 0.0 else 1.0
    bars = np.bincount(np.minimum((epsilons / wide).astype(np.int64), _BARS - 1))
    never = float((epsilons == 0.0).mean())
    return {
        "id": "spread",
        "tab": PRIVACY,
        "kind": "bars",
        "title": "Epsilon over the clients",
        "note": f"{never:.1%} of the clients were never charged." if never else "",
        "marks": ["ledger"],
        "x": {"label": "epsilon so far", "unit": "", "wide": wide, "bins": True},
        "y": {"label": "clients", "unit": "", "zero": True},
        "series": [{"label": "clients", "colour": 0}],
        "data": [numbers((np.arange(len(bars), dtype=np.float64) + 0.5) * wide), bars.tolist()],
    }


def panels(seen: Seen, turns: Turns) -> list[Panel]:
    """Return those that there are; none without the ledger."""
    quantiles = spread(seen)
    return [*taking_part(seen, turns), *([] if quantiles is None else [quantiles])]
