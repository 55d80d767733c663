"""What the papers' own accountants say of a run, beside the best bound that is known."""

from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.events import CldpRound, Release, SelfSampledShuffle, SubsampledShuffle
from raydp_sim.privacy.ledger.ledger import Ledger

# Girgis et al. 2021 (Theorem 3, and 000 Theorem 5.4.3), and what follows from it for coins.
_OWN: dict[type, str] = {
    SubsampledShuffle: "rdp-subsampled",
    CldpRound: "rdp-cldp",
    SelfSampledShuffle: "rdp-mixture",
}
# Different releases beyond which nothing is said: each takes its own time.
_KINDS = 64


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
    name = _OWN.get(next(iter(kinds))) if len(kinds) == 1 else None
    if name is None or len(happened) > _KINDS:
        return None
    return find_run(name).epsilon(list(happened.items()), ledger.delta).epsilon
