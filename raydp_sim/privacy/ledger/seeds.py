"""What the papers' own accountants say of a run, beside the best bound that is known."""

import math
from collections.abc import Mapping

from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.bounds.fmt23 import fmt23_limit
from raydp_sim.privacy.composition.conversion import linear_rdp_simple
from raydp_sim.privacy.events import (
    CldpRound,
    EpochRelease,
    MultiMessageShuffle,
    Release,
    SelfSampledShuffle,
    SubsampledShuffle,
)
from raydp_sim.privacy.ledger.ledger import Ledger

# Girgis et al. 2021 (Theorem 3, and 000 Theorem 5.4.3), and what follows from it for coins.
_OWN: dict[type, str] = {
    SubsampledShuffle: "rdp-subsampled",
    CldpRound: "rdp-cldp",
    SelfSampledShuffle: "rdp-mixture",
    EpochRelease: "rdp-pabi",
}
# Different releases beyond which nothing is said: each takes its own time.
_KINDS = 64
# c_F of 003 (26): D_alpha <= c_F alpha u^2/n of one message, u = 2 sinh(loss/2).
_LINEAR = 768


def seeds_epsilon(ledger: Ledger) -> float | None:
    """Return the Renyi bound of the papers for all releases so far; None where they have none.

    Proved, and no less than the ledger's own epsilon in general; it is there to be compared with
    printed figures. Where all of the plan is charged from the first release on, so it is here.

    Example:
        >>> ledger = Ledger(clients=60_000, delta=1e-5)
        >>> from raydp_sim.privacy.events import LocalReport
        >>> ledger.charge(LocalReport(1.5), range(10), SubsampledShuffle(1.5, 60_000, 10_000), 210)
        >>> round(seeds_epsilon(ledger), 4)
        1.3934
    """
    happened = {release: times for release, times in ledger.shuffled.items() if times}
    if ledger.rule == "plan" and happened:
        happened = {}
        for _, release, times in ledger.plan:
            if release is not None:
                happened[release] = happened.get(release, 0) + times
    kinds: set[type[Release]] = {type(release) for release in happened}
    if len(kinds) != 1 or len(happened) > _KINDS:
        return None
    if kinds == {MultiMessageShuffle}:
        return _linear(happened, ledger.delta)
    name = _OWN.get(kinds.pop())
    if name is None:
        return None
    return find_run(name).epsilon(list(happened.items()), ledger.delta).epsilon


def _linear(happened: Mapping[Release, int], delta: float) -> float | None:
    """Return 3 max{rho L, sqrt(rho L)} of 003 Theorem 9; None beyond the orders it holds for."""
    rho, limit = 0.0, math.inf
    for event, times in happened.items():
        assert isinstance(event, MultiMessageShuffle)
        squares = math.fsum(4.0 * math.sinh(0.5 * loss) ** 2 for loss in event.losses)
        rho += times * _LINEAR * squares / event.n
        limit = min(limit, *(fmt23_limit(loss, event.n, _LINEAR) for loss in set(event.losses)))
    if rho == 0.0 or delta > math.exp(-1.0):
        return None
    held = 1.0 + math.sqrt(-math.log(delta) / rho) <= limit
    return linear_rdp_simple(rho, delta) if held else None
