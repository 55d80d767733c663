"""Our epsilons beside dp_accounting's, on the calculator's grid and on releases that both have."""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from raydp_sim.bench.accounting import DELTA, TABLES
from raydp_sim.errors import InputError
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.dp_events import to_dp_event
from raydp_sim.privacy.errors import Unsupported
from raydp_sim.privacy.events import (
    GaussianRelease,
    LaplaceRelease,
    Release,
    SubsampledGaussian,
    SubsampledLaplace,
)

CENTRAL: dict[str, tuple[Release, int]] = {
    "normal noise 1": (GaussianRelease(1.0), 1),
    "normal noise 20, T=100": (GaussianRelease(20.0), 100),
    "normal noise 1, rate 0.01, T=100": (SubsampledGaussian(1.0, 0.01), 100),
    "normal noise 0.8, rate 0.001, T=1e4": (SubsampledGaussian(0.8, 0.001), 10_000),
    "normal noise 2, rate 0.3, T=20": (SubsampledGaussian(2.0, 0.3), 20),
    "Laplace noise 0.1, T=1000": (LaplaceRelease(0.1), 1000),
    "Laplace noise 1, rate 0.01, T=100": (SubsampledLaplace(1.0, 0.01), 100),
}


@dataclass(frozen=True)
class Beside:
    """What both say of one run.

    Attributes:
        title: of the run.
        ours: the least proved epsilon.
        bound: that says so.
        peers: dp_accounting's, from its loss distributions; None where it has no such event.
    """

    title: str
    ours: float
    bound: str
    peers: float | None

    @property
    def smaller(self) -> str:
        """Whose epsilon is smaller by more than a thousandth of itself."""
        if self.peers is None:
            return "only ours"
        if abs(self.ours - self.peers) <= 1e-3 * self.peers:
            return "equal within 0.1 %"
        return "ours" if self.ours < self.peers else "theirs"


def beside(
    runs: dict[str, tuple[Release, int]] | None = None,
    delta: float = DELTA,
    progress: Callable[[str], None] = lambda line: None,
) -> Iterator[Beside]:
    """Yield what both say of every run.

    Args:
        runs: the calculator's tables and `CENTRAL`.
        delta: of every run.
        progress: called with which one is computed.

    Raises:
        InputError: if dp_accounting is not installed.
    """
    try:
        pld = importlib.import_module("dp_accounting.pld")
        library = importlib.import_module("dp_accounting")
    except ImportError:
        remedy = "--peers needs it: pip install dp-accounting"
        raise InputError(f"dp_accounting is not installed; {remedy}") from None
    for title, (event, times) in (TABLES | CENTRAL if runs is None else runs).items():
        progress(title)
        found = account([(event, times)], delta)
        yield Beside(
            title, found.epsilon, found.best or "", _peers(pld, library, event, times, delta)
        )


def _peers(pld: Any, library: Any, event: Release, times: int, delta: float) -> float | None:
    try:
        made, meant = to_dp_event([(event, times)])
    except Unsupported:
        return None
    kinds = library.NeighboringRelation
    relation = kinds.REPLACE_ONE if meant == "replace-one" else kinds.ADD_OR_REMOVE_ONE
    accountant = pld.PLDAccountant(relation)
    accountant.compose(made)
    return float(accountant.get_epsilon(delta))
