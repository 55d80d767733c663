"""A run of sampled shuffles of any randomizer by loss distributions that count on the sample."""

from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.bounds.pld_law import composed, law_round
from raydp_sim.privacy.events import SubsampledShuffle
from raydp_sim.privacy.laws import clones


class PldSubsampled(RunBound):
    """Convolve the losses of the clones of a secret batch, the batch without the victim included.

    Any epsilon0-LDP randomizer, replace-one neighbours. law_rounds.py has the theorem: what
    `pld-clones` gets by amplifying a bound on the batch, this gets from the batch itself, which
    matters most where few of a batch hide the victim.

    Example:
        >>> event = SubsampledShuffle(6.0, 10**6, 1000)
        >>> round(PldSubsampled().epsilon([(event, 2)], 1e-6).epsilon, 4)
        0.0055
    """

    name = "pld-subsampled"
    events = (SubsampledShuffle,)
    source = "Feldman et al. 2021, Theorem 3.1, and law_rounds.py; Zhu, Dong & Wang 2022"
    sharp = True

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        rounds = [law_round(clones(event.epsilon0), event, times) for event, times in events]
        return Result(composed(self.name, rounds, delta))
