"""A run of rounds that clients join by coins, as the source composes it."""

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.composition.rounds import self_sampled_round, self_sampled_tail
from raydp_sim.privacy.composition.theorems import compose_unequal
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import SelfSampledShuffle


class SelfSamplingDwork(RunBound):
    """Compose Theorem 4.4.1's rounds by Dwork et al.; half of delta goes to the composition.

    Example:
        >>> event = SelfSampledShuffle(1.0, 60_000, 1 / 6)
        >>> round(SelfSamplingDwork().epsilon([(event, 100)], 1e-5).epsilon, 4)
        1.1062
    """

    name = "self-sampling+dwork"
    events = (SelfSampledShuffle,)
    source = "000 Theorem 4.4.1 and Lemma 2.1.2"

    def compute(self, events: list[tuple[SelfSampledShuffle, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        from raydp_sim.privacy.curves.clones import clones_epsilon

        rounds = sum(times for _, times in events)
        uses = []
        for event, times in events:
            share = 0.5 * delta / rounds
            tail = self_sampled_tail(event)
            if tail >= share:
                raise NotApplicable(f"too few clients join: {tail:g} of delta is lost per round")
            inner = min(0.5, (share - tail) / event.probability)
            uses.append((self_sampled_round(event, inner, clones_epsilon)[0], times))
        return Result(compose_unequal(uses, 0.5 * delta, "dwork"))
