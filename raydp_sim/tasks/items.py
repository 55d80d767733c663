"""What a batch is as a privacy event if one item of a client's data is what is protected."""

from dataclasses import replace

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.shuffled import shuffled_event
from raydp_sim.privacy.events import CldpRound, LocalReport, Release
from raydp_sim.tasks.charging import Formed, amplifies, central_event, usual_event


def item_event(mechanism: Mechanism, formed: Formed, held: int, sampled: int) -> Release | None:
    """Return the event of a batch in which clients report items of theirs, each by itself.

    With one item per client it is the client's event, of unit item. With several, a uniform cohort
    is a round of Girgis et al. 2021 (CLDP-SGD, Theorem 3). Where clients join by their own coins
    and report one of several items, that the item is drawn at random is not counted: given which
    ones are drawn, it is the event of one item per client, and divergences are jointly convex.

    Args:
        mechanism: of the reports.
        formed: the batch.
        held: items of the client that holds fewest; then every item's chance is at most 1/held.
        sampled: items that each client of the batch reports, drawn uniformly and in secret.
    """
    if not amplifies(mechanism, formed.trust):
        return _alone(mechanism, formed, held, sampled)
    losses = mechanism.losses() or ()
    if sampled == 1 and (held == 1 or formed.sampling == "coins"):
        found = usual_event(mechanism, formed)
        return None if found is None else replace(found, unit="item")
    if formed.sampling == "uniform" and len(losses) == 1:
        known = (mechanism.randomizer(), mechanism.alphabet())
        return CldpRound(losses[0], formed.clients, held, formed.reports, sampled, *known)
    return replace(shuffled_event(mechanism, formed.honest * sampled), unit="item")


def _alone(mechanism: Mechanism, formed: Formed, held: int, sampled: int) -> Release | None:
    """Return what items cost that no shuffler hides: each is in a release at most once."""
    event = mechanism.event()
    if formed.trust.noise_at == "aggregator":
        known = central_event(mechanism, formed, held, sampled)
        return None if known is None else replace(known, unit="item")
    return LocalReport(event.epsilon, event.delta, unit="item")
