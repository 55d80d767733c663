"""Curves by name: every bound of `privacy`, and what only the seeds' figures compare with.

The curves below are not among the accountant's bounds because one there is never worse.
"""

import difflib
import math
from typing import Any

from raydp_sim.privacy.bound import (
    RdpBound,
    Result,
    RunBound,
    find_rdp,
    rdp_bounds,
    run_bounds,
)
from raydp_sim.privacy.bounds.closed_forms import balle, efm19_general, fmt_closed
from raydp_sim.privacy.bounds.efm19 import Efm19
from raydp_sim.privacy.bounds.lower import Lower
from raydp_sim.privacy.bounds.upper1 import Upper1
from raydp_sim.privacy.bounds.upper2 import Upper2
from raydp_sim.privacy.composition.runs import ComposedRun, added, amplified
from raydp_sim.privacy.curves.clones import clones_epsilon
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import Release, Shuffle

_UPPER2 = added("rdp-upper2", Upper2(), (Shuffle,))
# Theorem 5.3.1 with the best Chernoff parameter of a grid, (5.14) and Remark 5.3.3.
_UPPER1_GRID = added(
    "rdp-upper1-grid", Upper1(chernoff=None), (Shuffle,), source="000 (5.14), best c of a grid"
)
# As `rdp-lower`, but with orders up to 83840, which a single shuffle of many needs.
_LOWER_WIDE = added(
    "rdp-lower-wide",
    Lower(),
    Lower.events,
    status="heuristic",
    note="a lower curve converted: a floor for bounds by divergences, not for epsilon",
)
_EFM19 = added("rdp-efm19", Efm19(), (Shuffle,))
_FMT = "Feldman et al. 2021, dominating pair"
_DWORK = amplified("fmt_numeric+dwork", clones_epsilon, f"{_FMT}; Dwork et al. 2010", kind="dwork")
_EXACT = amplified(
    "fmt_numeric+kov_exact",
    clones_epsilon,
    f"{_FMT}; Kairouz, Oh & Viswanath 2015, Theorem 3.3",
    kind="kov_exact",
)


class _Unshuffled(ComposedRun):
    """Each round at (epsilon0, 0), amplified by sampling only, and composed."""

    name = "unshuffled+kov"
    source = "000 Lemma 2.1.1; Kairouz, Oh & Viswanath 2015, Theorem 3.5"

    def amplify(self, epsilon0: float, messages: int, delta: float) -> float:
        """Return epsilon0: no gain from shuffling."""
        return epsilon0


class _Once(RunBound):
    """(epsilon, delta) of a single shuffle, with all of delta; `find` refuses it for more."""

    events = (Shuffle,)

    def amplify(self, epsilon0: float, n: int, delta: float) -> float:
        """Return epsilon of the shuffle."""
        raise NotImplementedError

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return epsilon of the one shuffle; epsilon0 where the bound is silent."""
        ((event, _),) = events
        try:
            value = self.amplify(event.epsilon0, event.n, delta)
        except NotApplicable as silence:
            return Result(event.epsilon0, None, f"the shuffle is taken as (epsilon0, 0): {silence}")
        return Result(value)


class _BalleOnce(_Once):
    name = "balle"
    source = "Balle et al. 2019, generic blanket"

    def amplify(self, epsilon0: float, n: int, delta: float) -> float:
        """Return epsilon of the shuffle."""
        return balle(epsilon0, n, delta)


class _FmtNumericOnce(_Once):
    name = "fmt_numeric"
    source = "Feldman et al. 2021, dominating pair"

    def amplify(self, epsilon0: float, n: int, delta: float) -> float:
        """Return epsilon of the shuffle."""
        return clones_epsilon(epsilon0, n, delta)


class _FmtClosedOnce(_Once):
    name = "fmt_closed"
    source = "Feldman et al. 2021, Theorem 3.1"

    def amplify(self, epsilon0: float, n: int, delta: float) -> float:
        """Return epsilon of the shuffle."""
        return fmt_closed(epsilon0, n, delta)


class _Efm19Once(_Once):
    name = "efm19_general"
    source = "Erlingsson et al. 2019, Remark 1, converted"

    def amplify(self, epsilon0: float, n: int, delta: float) -> float:
        """Return epsilon of the shuffle."""
        return efm19_general(epsilon0, n, delta)


_EXTRA: dict[str, RunBound] = {
    bound.name: bound
    for bound in (
        _UPPER2,
        _UPPER1_GRID,
        _EFM19,
        _LOWER_WIDE,
        _DWORK,
        _EXACT,
        _Unshuffled(),
        _BalleOnce(),
        _FmtNumericOnce(),
        _FmtClosedOnce(),
        _Efm19Once(),
    )
}


def names(quantity: str) -> list[str]:
    """Return the curves there are for `rdp` or for `epsilon`.

    Example:
        >>> "upper1" in names("rdp"), "rdp-upper1" in names("epsilon")
        (True, True)
    """
    if quantity == "rdp":
        return sorted({bound.name for bound in rdp_bounds()})
    return sorted({bound.name for bound in run_bounds()} | set(_EXTRA))


def find(quantity: str, name: str, event: Release, rounds: int = 1) -> RdpBound | RunBound:
    """Return a curve.

    Raises:
        ValueError: when there is none of this name, or it is not proved for so many such events.
    """
    if name not in (known := names(quantity)):
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"{hint}for {quantity} choose among {', '.join(known)}")
    if quantity == "rdp":
        return find_rdp(name, event)
    found = _EXTRA.get(name) or next(bound for bound in run_bounds() if bound.name == name)
    found.refuse_others(event)
    if isinstance(found, _Once) and rounds > 1:
        raise Unsupported(
            f"it is for a single shuffle, not for {rounds} rounds; take one that composes"
        )
    return found


def order_fits(bound: RdpBound, alpha: float) -> bool:
    """Say whether a bound takes this order."""
    return math.isfinite(alpha) and alpha > 1 and (bound.real_orders or alpha.is_integer())
