"""Rounds in which every client sends several messages, each to a shuffler of its own.

Setting. A report is s messages that are independent given the client's data. Message j of all
clients goes to shuffler j, so the view of a batch is s multisets, one per index. Neighbours replace
one client's data.

Per index. Given the data of the batch, the s multisets are independent, and the j-th is a shuffle
of one message each. If (P_j, Q_j) dominates the j-th shuffle, the product of all (P_j, Q_j)
dominates the view (Zhu, Dong & Wang 2022, composition theorem). Each pair is symmetric, hence so
is the product. This needs the independence: of messages that are correlated given the data, as in
split-and-mix, the view is not such a composition, and no event of several messages is one of them.

Sampled. One cohort of k of N clients serves all indices, so it is the view of the whole batch that
is sampled, not each shuffle by itself: H(log(1 + g (e^e - 1))) <= g H_batch(e), g = k/N, by
advanced joint convexity as in pld.py, whose argument asks of a batch only that it is one mechanism
with a symmetric bound on replacing one of its members. So the order is: product over the indices,
then sampling, then composition over rounds. Sampling each index first and multiplying then would
be wrong: it charges as if the cohorts were drawn independently.

Whole reports. The s multisets are a function of the multiset of whole reports, so every bound on
shuffling whole reports holds too (data processing). A report's loss is at most the sum of its
messages' losses. `whole` says which event that is.

Products of laws and the sampled law are put on knots by `losses.connect`, which errs upwards.
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from raydp_sim.privacy.composition.direct import compose, spaced
from raydp_sim.privacy.composition.losses import LossLaw, connect
from raydp_sim.privacy.composition.pld import Round, shuffle_round
from raydp_sim.privacy.curves.binomials import Floats
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import (
    MultiMessageShuffle,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)

# Knots of the product of the messages' laws, and of the sampled law.
_KNOTS = 300
# Largest sum of losses: its exponential must be a number.
_LARGEST = 300.0

Several = MultiMessageShuffle | SubsampledMultiMessage


def whole(event: Several) -> Shuffle | SubsampledShuffle:
    """Return the event of shuffling whole reports, of which the event is a function.

    Any randomizer of that loss: the law of a report is not that of its messages.

    Example:
        >>> round(whole(MultiMessageShuffle((0.5, 0.25), n=100)).epsilon0, 9)
        0.75
    """
    loss = math.fsum(event.losses)
    if len(event.losses) > 1:
        loss = math.nextafter(loss, math.inf)  # the exact sum may have been rounded down
    if isinstance(event, MultiMessageShuffle):
        return Shuffle(loss, event.n, unit=event.unit)
    return SubsampledShuffle(loss, event.clients, event.sampled, unit=event.unit)


@dataclass(frozen=True)
class ReportRound(Round):
    """Rounds of several independent messages per client, one cohort for all of them.

    Attributes:
        pair: of the message that loses most.
        losses: of all messages.
        n: clients whose messages are shuffled.
        randomizer: of every message, see `report_round`.
    """

    losses: tuple[float, ...] = ()
    n: int = 1
    randomizer: str | None = None

    @property
    def most(self) -> float:
        """Largest loss of one round, rounded up."""
        total = math.fsum(self.losses)
        if self.rate == 1.0:
            return total * (1.0 + 1e-14)
        return math.log1p(self.rate * math.expm1(total)) * (1.0 + 1e-13)

    def law(self, floor: float) -> LossLaw:
        """Return a law of losses whose profile is at least the round's; below `floor` infinite.

        Example:
            >>> report_round((1.0, 1.0), 10).law(1e-9).infinite < 1e-9
            True
        """
        # In steps of 2^-8, so that rounds of all numbers share the law of a batch.
        least = 2.0 ** (8.0 * math.floor(math.log2(0.1 * floor / self.rate) / 8.0))
        batch = _batch(self.losses, self.n, self.randomizer, least)
        if self.rate == 1.0:
            return batch

        def profile(epsilons: Floats) -> Floats:
            # Rounded down, as the divergence falls; what the batch counts as infinite stays so.
            base = np.log1p(np.expm1(epsilons) / self.rate) * (1.0 - 1e-13)
            found = np.where(epsilons < self.most, batch.profile(base), batch.infinite)
            return self.rate * (1.0 + 1e-11) * np.asarray(found)

        knots = spaced(profile, self.most, floor, _KNOTS)
        return connect(knots, profile(np.append(0.0, knots)))


@lru_cache(maxsize=64)
def _batch(losses: tuple[float, ...], n: int, randomizer: str | None, least: float) -> LossLaw:
    """Return a law whose profile is at least that of the product over the messages."""
    kinds = sorted(Counter(loss for loss in losses if loss > 0.0).items(), reverse=True)
    each = least / len(losses)
    laws = [(shuffle_round(e, n, randomizer=randomizer).law(each), many) for e, many in kinds]
    return compose(laws, each, _KNOTS)


def report_round(
    losses: tuple[float, ...],
    n: int,
    times: int = 1,
    randomizer: str | None = None,
    clients: int | None = None,
) -> Round:
    """Return rounds in which n clients send one message of each loss, each to its own shuffler.

    Args:
        losses: of a client's messages, which are independent given its data.
        n: clients per round, >= 1.
        times: rounds.
        randomizer: of every message, a name known to variation.py; None: any of these losses.
        clients: N >= n if the n are a secret uniform sample of N, without replacement.

    Raises:
        NotApplicable: the losses add up to more than can be computed with.

    Example:
        >>> from raydp_sim.privacy.composition.pld import compose_epsilon
        >>> two = report_round((1.0, 1.0), 1000, times=20, clients=10_000)
        >>> round(compose_epsilon([two], 1e-6), 3)
        0.116
    """
    if math.fsum(losses) > _LARGEST:
        raise NotApplicable(f"the losses of a report's messages add up to more than {_LARGEST:g}")
    one = shuffle_round(max(losses), n, times, randomizer, None, clients)
    return ReportRound(one.pair, times, one.rate, losses, n, randomizer)
