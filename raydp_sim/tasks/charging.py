"""What a batch that formed is as a privacy event."""

from dataclasses import dataclass, replace
from typing import Literal

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.shuffled import shuffled_event, unamplified
from raydp_sim.privacy.events import (
    Event,
    GaussianReport,
    LocalReport,
    MultiMessageShuffle,
    Release,
    SelfSampledShuffle,
    Shuffle,
    SubsampledGaussianShuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.stream.trust import Trust

Sampling = Literal["uniform", "coins"]


@dataclass(frozen=True)
class Formed:
    """What the engine knows of a batch; readers know its reports, their mean weight and slots.

    Attributes:
        reports: clients whose report is in the batch.
        trust: the trust model.
        clients: who was eligible.
        honest: of the reports, how many may be counted on.
        sampling: how the batch was drawn from all clients, where that was secret, uniform and
            independent of the data: `uniform`, without replacement, or by each client's `coins`;
            None: nothing can be gained from sampling.
        probability: of such a coin.
        values: that were randomized in all; more than reports where clients send several.
        fewest: values of the client that sent fewest.
        most: values of the client that sent most.
        items: that each client holds.
        weight: mean weight of the reports.
        slots: reports per slot.
    """

    reports: int
    trust: Trust
    clients: int = 0
    honest: int = 0
    sampling: Sampling | None = None
    probability: float = 1.0
    values: int = 0
    fewest: int = 1
    most: int = 1
    items: int = 1
    weight: float = 1.0
    slots: tuple[int, ...] | None = None

    @property
    def hiding(self) -> int:
        """Values that hide one another: all, or as many as honest clients surely sent."""
        all_honest = self.honest == self.reports and self.values > 0
        return self.values if all_honest else self.honest * self.fewest


def amplifies(mechanism: Mechanism, trust: Trust) -> bool:
    """Say whether shuffling may be counted: it takes a shuffler, and reports that it amplifies."""
    return trust.shuffled and unamplified(mechanism) is None


def usual_event(mechanism: Mechanism, formed: Formed) -> Release | None:
    """Return the event of one report per client, all randomized with the mechanism.

    A sampled event is charged to everyone eligible, others to those who took part.

    Where clients have slots, message i is that of slot i's randomizer on a client that was drawn
    for it uniformly and in secret: what Feldman et al. 2021, Theorem 3.1, is proved for. Bounds
    that know one law of all messages are not, so the randomizer goes unnamed.
    """
    if not amplifies(mechanism, formed.trust):
        # What an aggregator adds counts if it is trusted; what clients add always does.
        noise = mechanism.release()
        counts = isinstance(noise, GaussianReport) or formed.trust.noise_at == "aggregator"
        return noise if counts else None
    if mechanism.normal:
        return _noisy_event(mechanism, formed)
    losses = mechanism.losses() or ()
    named = formed.slots is None
    randomizer = mechanism.randomizer() if named else None
    known = (randomizer, mechanism.alphabet() if named else None)
    if formed.sampling == "uniform":
        if len(losses) == 1:
            return SubsampledShuffle(losses[0], formed.clients, formed.reports, *known)
        return SubsampledMultiMessage(losses, formed.clients, formed.reports, randomizer)
    if formed.sampling == "coins" and len(losses) == 1:
        return SelfSampledShuffle(losses[0], formed.clients, formed.probability, *known)
    if named:
        return shuffled_event(mechanism, formed.honest)
    if len(losses) == 1:
        return Shuffle(losses[0], formed.honest)
    return MultiMessageShuffle(losses, formed.honest)


def _noisy_event(mechanism: Mechanism, formed: Formed) -> Release | None:
    """Return the event of reports with normal noise: nothing is known of them by slots."""
    if formed.slots is not None:
        return None
    if formed.sampling == "uniform":
        noise, dimension = mechanism.noise_multiplier(), mechanism.need_dimension()
        return SubsampledGaussianShuffle(noise, formed.clients, formed.reports, dimension)
    return shuffled_event(mechanism, formed.honest)


def charges(mechanism: Mechanism, found: Release | None) -> tuple[Event, Release | None]:
    """Return what a participant is charged for its report, and what the release is as a whole.

    Args:
        mechanism: that the reports were randomized with.
        found: of `Task.event`.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> rr = make("2rr", epsilon_local=1.0)
        >>> charged, release = charges(rr, LocalReport(2.0, unit="item"))
        >>> charged, charged.unit, release
        (LocalReport(epsilon=2.0, delta=0.0), 'item', None)
    """
    if isinstance(found, LocalReport):
        return found, None
    event = mechanism.event()
    return (event, None) if found is None else (replace(event, unit=found.unit), found)
