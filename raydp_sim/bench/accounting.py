"""The accounting benchmark: CPU-seconds of every row a user of the calculator waits for."""

import importlib
import importlib.util
import math
import pkgutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from raydp_sim import privacy
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import Counted, find_run
from raydp_sim.privacy.curves.clones import clones_epsilon
from raydp_sim.privacy.events import LocalReport, Release, Shuffle, SubsampledShuffle
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.random import Ids

_FIGURES = Path(privacy.__file__).parents[1] / "_scenarios" / "seeds"
_FIGURES_GOAL = 120.0
DELTA = 1e-8
GOAL = 0.5
LIVE_GOAL = 0.02
# Composed rounds may take so many times as long as two of them, and this many seconds more.
_GROWTH, _SLACK = 2.0, 0.05

SAMPLED = SubsampledShuffle(2.0, 10**6, 1000)
ALL = Shuffle(0.5, 10**6)
KRR = SubsampledShuffle(2.0, 10**6, 1000, "krr", 100)
MANY_SAMPLED = SubsampledShuffle(2.0, 10**7, 10**4)
MANY = Shuffle(0.5, 10**7)
MANY_KRR = Shuffle(0.5, 10**7, "krr", 100)
TABLES: dict[str, tuple[Release, int]] = {
    "sampled, T=1": (SAMPLED, 1),
    "sampled, T=1e5": (SAMPLED, 10**5),
    "sampled, krr over 100, T=1e5": (KRR, 10**5),
    "all clients, T=1": (ALL, 1),
    "all clients, T=1e5": (ALL, 10**5),
    "1e4 of 1e7 sampled, T=1": (MANY_SAMPLED, 1),
    "1e4 of 1e7 sampled, T=1e6": (MANY_SAMPLED, 10**6),
    "all of 1e7 clients, T=1": (MANY, 1),
    "all of 1e7 clients, T=1e6": (MANY, 10**6),
    "all of 1e7 clients, krr over 100, T=1e6": (MANY_KRR, 10**6),
}
COMPOSED: dict[str, tuple[str, Release]] = {
    "RDP, sampled": ("rdp-subsampled", SAMPLED),
    "RDP, all clients": ("rdp-numeric", ALL),
    "PLD, sampled": ("pld-clones", SAMPLED),
    "PLD, all clients": ("pld-clones", ALL),
}
COUNTS = (1000, 10**6)


@dataclass(frozen=True)
class Row:
    """What one thing took.

    Attributes:
        group: the table it belongs to.
        name: of the bound, or the number of rounds.
        seconds: of processor time.
        goal: most seconds it should take; None if there is no goal.
    """

    group: str
    name: str
    seconds: float
    goal: float | None = GOAL

    @property
    def met(self) -> bool | None:
        """Whether it took less."""
        return None if self.goal is None else self.seconds < self.goal


def forget() -> None:
    """Empty every cache of the privacy package, so that nothing is measured warm."""
    for info in pkgutil.walk_packages(privacy.__path__, f"{privacy.__name__}."):
        if info.name == "raydp_sim.privacy.bound":
            continue  # its cache holds the bounds themselves, which takes imports, not work
        for value in vars(importlib.import_module(info.name)).values():
            clear = getattr(value, "cache_clear", None)
            if callable(clear):
                clear()


def rows(
    tables: dict[str, tuple[Release, int]] | None = None,
    counts: tuple[int, ...] = COUNTS,
    most: int = 10**7,
    figures: bool = True,
    late: int = 10_000,
    progress: Callable[[str], None] = lambda line: None,
) -> Iterator[Row]:
    """Measure everything; yield each row as it is there.

    Each row is measured cold, as if no other bound had been asked before.

    Args:
        tables: the default ones.
        counts: rounds composed.
        most: messages of the largest evaluation.
        figures: whether to play those of 000 as well, if they are installed.
        late: releases before the rows whose cost is measured.
        progress: called with what is being measured.
    """
    for title, (event, times) in (TABLES if tables is None else tables).items():
        progress(title)
        warm = account([(event, times)], DELTA)
        for line in warm.lines:
            if line.value is not None:
                yield Row(title, line.name, _cold(line.name, [(event, times)]))
    for title, (bound, event) in COMPOSED.items():
        progress(title)
        yield Row(f"composition, {title}", "T=1", _cold(bound, [(event, 1)]))
        base = _cold(bound, [(event, 2)])
        for count in counts:
            # Loss distributions may take longer by the logarithm of the rounds.
            growth = math.log2(count) if bound.startswith("pld") else _GROWTH
            taken = _cold(bound, [(event, count)])
            yield Row(f"composition, {title}", f"T={count:g}", taken, growth * base + _SLACK)
    progress("clones")
    forget()
    start = time.process_time()
    clones_epsilon(1.0, most, DELTA)
    yield Row("one shuffle", f"clones at n={most:g}", time.process_time() - start)
    progress("live")
    yield from live(late, max(1, late // 10))
    if figures:
        yield from _figures(progress)


def live(before: int = 10_000, more: int = 1000, clients: int = 200) -> Iterator[Row]:
    """Measure what a row's epsilon costs late in a run, on average over some more releases.

    Args:
        before: releases that were charged already.
        more: releases to average over.
        clients: of the ledger.
    """
    draw = np.random.default_rng(1)
    sizes = draw.integers(300, 600, before + more)
    joins = draw.random((before + more, clients)) < 0.9
    runs: dict[str, Callable[[int], tuple[range | Ids, Release]]] = {
        "all charged alike": lambda r: (range(clients), SAMPLED),
        "batches of many sizes": lambda r: (
            np.flatnonzero(joins[r]).astype(np.uint32),
            Shuffle(0.5, int(sizes[r]), "2rr"),
        ),
    }
    for name, at in runs.items():
        forget()
        ledger = Ledger(clients, DELTA, rule="laws")
        for release in range(before):
            who, event = at(release)
            ledger.charge(LocalReport(2.0), who, event)
        ledger.guarantee()
        taken = 0.0
        for release in range(before, before + more):
            who, event = at(release)
            ledger.charge(LocalReport(2.0), who, event)
            start = time.process_time()
            ledger.guarantee()
            taken += time.process_time() - start
        yield Row(f"a row after {before:,} releases", name, taken / more, LIVE_GOAL)


def _figures(progress: Callable[[str], None]) -> Iterator[Row]:
    """Play the figures of 000 and yield what each took, and all of them against their goal."""
    if importlib.util.find_spec("raydp_sim.figures") is None:
        return
    play = importlib.import_module("raydp_sim.figures").play
    total = 0.0
    for path in sorted(_FIGURES.glob("000-figure-*.yaml")):
        progress(path.stem)
        forget()
        with tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder:
            start = time.process_time()
            play(path, out=Path(folder) / "figure")
            taken = time.process_time() - start
        total += taken
        yield Row("figures", path.stem, taken, None)
    if total > 0.0:
        yield Row("figures", "together", total, _FIGURES_GOAL)


def _cold(bound: str, events: Counted) -> float:
    forget()
    start = time.process_time()
    find_run(bound).epsilon(events, DELTA)
    return time.process_time() - start


def document(found: list[Row], machine: dict[str, object]) -> dict[str, object]:
    """Return the whole benchmark as one document."""
    return {
        "benchmark": "accounting",
        "machine": machine,
        "rows": [asdict(row) | {"met": row.met} for row in found],
        "met": all(row.met is not False for row in found),
    }
