"""What a batch that formed is as a privacy event."""

from dataclasses import dataclass, replace
from typing import Literal

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.shuffled import shuffled_event, unamplified
from raydp_sim.privacy.events import (
    Event,
    GaussianRelease,
    GaussianReport,
    LocalReport,
    MultiMessageShuffle,
    Release,
    SelfSampledGaussianRelease,
    SelfSampledShuffle,
    Shuffle,
    SubsampledGaussianRelease,
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
        if formed.trust.noise_at == "aggregator":
            return central_event(mechanism, formed)
        noise = mechanism.release()
        return noise if isinstance(noise, GaussianReport) else None
    if mechanism.normal:
        return _noisy_event(mechanism, formed)
    return event_of_losses(
        mechanism.losses() or (), mechanism.randomizer(), mechanism.alphabet(), formed
    )


def event_of_losses(
    losses: tuple[float, ...], randomizer: str | None, alphabet: int | None, formed: Formed
) -> Release:
    """Return the event of shuffled messages that lose so much each; see `usual_event`.

    Args:
        losses: of each message of a report.
        randomizer: name of their law, if it has one.
        alphabet: number of its symbols, where it matters.
        formed: the batch.
    """
    named = formed.slots is None
    known = (randomizer, alphabet) if named else (None, None)
    if formed.sampling == "uniform":
        if len(losses) == 1:
            return SubsampledShuffle(losses[0], formed.clients, formed.reports, *known)
        return SubsampledMultiMessage(losses, formed.clients, formed.reports, known[0])
    if formed.sampling == "coins" and len(losses) == 1:
        return SelfSampledShuffle(losses[0], formed.clients, formed.probability, *known)
    if len(losses) == 1:
        return Shuffle(losses[0], formed.honest, *known)
    return MultiMessageShuffle(losses, formed.honest, known[0])


def central_event(
    mechanism: Mechanism, formed: Formed, points: int = 1, sampled_points: int = 1
) -> Release | None:
    """Return the event of a batch that a trusted aggregator adds noise to.

    Where the batch is a secret sample of all clients, normal noise is amplified by that; of slots
    and of other noise nothing is worked out here.

    Args:
        mechanism: of the release.
        formed: the batch.
        points: that every client holds at least, if one of them is what is protected.
        sampled_points: of these, how many each client of the batch sends, drawn in secret.
    """
    noise = mechanism.release()
    if not isinstance(noise, GaussianRelease) or formed.slots is not None:
        return noise
    known = (noise.noise_multiplier, formed.clients)
    if formed.sampling == "uniform":
        return SubsampledGaussianRelease(*known, formed.reports, points, sampled_points)
    if formed.sampling == "coins":
        return SelfSampledGaussianRelease(*known, formed.probability, points, sampled_points)
    return noise


def _noisy_event(mechanism: Mechanism, formed: Formed) -> Release | None:
    """Return the event of reports with normal noise: nothing is known of them by slots."""
    if formed.slots is not None:
        return None
    if formed.sampling == "uniform":
        noise, dimension = mechanism.noise_multiplier(), mechanism.need_dimension()
        return SubsampledGaussianShuffle(noise, formed.clients, formed.reports, dimension)
    return shuffled_event(mechanism, formed.honest)


def charges(
    mechanism: Mechanism, found: Release | None, alone: Event | None = None
) -> tuple[Event, Release | None]:
    """Return what a participant is charged for its report, and what the release is as a whole.

    Args:
        mechanism: that the reports were randomized with.
        found: of `Task.event`.
        alone: what a report by itself costs, of `Task.report`; by default the mechanism's event.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> rr = make("2rr", epsilon_local=1.0)
        >>> charged, release = charges(rr, LocalReport(2.0, unit="item"))
        >>> charged, charged.unit, release
        (LocalReport(epsilon=2.0, delta=0.0), 'item', None)
    """
    if isinstance(found, LocalReport):
        return found, None
    alone = mechanism.event() if alone is None else alone
    return (alone, None) if found is None else (replace(alone, unit=found.unit), found)
