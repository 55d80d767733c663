"""What each analyst, and any group of them, has learned of a client: one account for every view.

All views follow from the ledger's rows, which are durable before a release: who took part when.
A reader sees a release at its level. Where it is promoted later, it sees the reports of clients
that were in the promotion's batch at the new level from then on. A group sees of every report what
its least private member does: the other members' keys are noise on top of that.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.mechanisms.recoverable import Recoverable
from raydp_sim.privacy.events import Event, Release, Shuffle
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.ledger.sizes import rounded
from raydp_sim.privacy.ledger.store import Charge
from raydp_sim.random import Ids
from raydp_sim.scenario.accounting import (
    formed_batch,
    planned_batch,
    planned_releases,
    rule,
)
from raydp_sim.scenario.file import Scenario
from raydp_sim.stream.levels import Levels, Promoting
from raydp_sim.tasks.analysts import level_event

_TOLD_APART = (
    "in part: keys of a promotion tell reports of clients that came again from all others, so each "
    "hides only among its own kind"
)


# Sizes an octave of batches that a promotion has split.
_SIZES = 16


class View(NamedTuple):
    """Who looks at the stream together.

    Attributes:
        name: in words.
        readers: numbers of the readers.
    """

    name: str
    readers: tuple[int, ...]


def views(levels: Levels) -> list[View]:
    """Return the public, each analyst, and all together whose level hides anything.

    Example:
        >>> [view.name for view in views(Levels((float("inf"), 2.0, 1.0)))]
        ['public', 'analyst-1', 'analyst-2', 'all but analyst-1']
    """
    found = [View(name, (reader,)) for reader, name in enumerate(levels.names)]
    if len(found) <= 2 and not levels.promotions:
        return found
    hiding = tuple(reader for reader in range(len(found)) if not levels.tells_all(reader))
    others = [name for reader, name in enumerate(levels.names) if reader not in hiding]
    return [*found, View(f"all but {' and '.join(others)}" if others else "all together", hiding)]


class Account(NamedTuple):
    """What a view has cost, or why nothing is proved for it.

    Attributes:
        view: whose.
        ledger: of all clients; None where the view shows values as they are.
        amplified: whether shuffling was counted, `yes`, or why not, or how far.
    """

    view: View
    ledger: Ledger | None
    amplified: str


def account(
    scenario: Scenario, mechanism: Leveled, view: View, charges: Sequence[Charge]
) -> Account:
    """Charge an empty ledger with what a view has seen of every client.

    Args:
        scenario: that was played.
        mechanism: the scenario's, calibrated.
        view: whose.
        charges: rows of one repetition, in order.
    """
    levels = scenario.privacy.readers(scenario.trust_model.shuffled)
    assert levels is not None
    mine = tuple(each for each in levels.promotions if each.analyst in view.readers)
    # No row is written of reports that are late or withheld, but their keys are at the analyst.
    unrecorded = levels.direct and not scenario.trust_model.pays_unused
    seen = _seen(scenario.population.clients, levels, view.readers, mine, charges, unrecorded)
    parts = list(seen)
    if any(levels.epsilons[level] == float("inf") for _, level, _, _ in parts):
        whole = isinstance(mechanism, Recoverable)
        bare = "every record is recovered" if whole else "bits are seen as they are, without noise"
        return Account(view, None, f"no: {bare}")
    why = _unamplified(scenario, levels, view)
    ledger = _opened(scenario, mechanism, levels, view, bool(mine), why)
    for ids, level, batch, _ in parts:
        release: Release | None = None
        if why is None:
            formed = formed_batch(scenario, mechanism, batch)
            if mine:
                # Whoever does not hide others may all be on one side.
                hiding = max(1, len(ids) - (batch - formed.honest))
                law = (mechanism.randomizer(), mechanism.alphabet())
                # Of few different sizes, none larger than it is.
                release = rounded(Shuffle(mechanism.event_at(level).epsilon, hiding, *law), _SIZES)
            else:
                release = level_event(mechanism, level, replace(formed, values=batch))
        ledger.charge(mechanism.event_at(level), ids, release)
    if why is None and not ledger.guarantee().amplified:
        why = "no: the sum of the local losses is not larger"
    return Account(view, ledger, why or (_TOLD_APART if mine else "yes"))


def _seen(
    clients: int,
    levels: Levels,
    readers: Iterable[int],
    promotions: tuple[Promoting, ...],
    charges: Sequence[Charge],
    unrecorded: bool = False,
) -> Iterator[tuple[Ids, int, int, int]]:
    """Yield who was seen at which level, of a batch of how many, in which release.

    Clients of a batch are told apart by the promotions that they were there for. Where keys may
    have been sent with reports of which there is no row, `unrecorded`, everyone has sent them.
    """
    present = {charge.release: charge.participants for charge in charges}
    there: dict[int, NDArray[np.bool_]] = {}
    for each in promotions:
        mask = there[each.analyst] = np.full(clients, unrecorded, np.bool_)
        mask[np.asarray(present.get(each.release, ()), np.int64)] = True
    for charge in charges:
        ids = np.asarray(charge.participants, dtype=np.uint32)
        later = [each for each in promotions if each.release > charge.release]
        kinds = np.zeros(len(ids), np.int64)
        for bit, each in enumerate(later):
            kinds += there[each.analyst][ids].astype(np.int64) << bit
        for kind in np.unique(kinds):
            shown = [levels.level(reader, charge.release) for reader in readers]
            shown += [each.to - 1 for bit, each in enumerate(later) if kind >> bit & 1]
            yield ids[kinds == kind], min(shown), len(ids), charge.release


def _unamplified(scenario: Scenario, levels: Levels, view: View) -> str | None:
    """Return why shuffling counts for nothing in a view; None if it counts."""
    if not scenario.trust_model.shuffled:
        return f"no: nothing is shuffled, trust is {scenario.trust}"
    if levels.direct and view.readers != (0,):
        return "no: keys come straight from clients, which shows who sent what"
    return None


def _opened(
    scenario: Scenario,
    mechanism: Leveled,
    levels: Levels,
    view: View,
    promoted: bool,
    why: str | None,
) -> Ledger:
    """Return the empty ledger of a view."""
    level = min(levels.level(reader, 0) for reader in view.readers)
    event = mechanism.event_at(level)
    plan: tuple[tuple[Event, Release | None, int], ...] = ()
    if not promoted:
        (part,) = planned_releases(scenario, mechanism)
        least = None
        if why is None:
            batch = planned_batch(scenario, mechanism, part.ask)
            least = level_event(mechanism, level, formed_batch(scenario, mechanism, batch))
        plan = ((event, least, part.per_client),)
    ledger = Ledger(
        scenario.population.clients,
        scenario.privacy.delta,
        collector=scenario.trust_model.collector,
        rule="divergences" if promoted else rule(scenario),
        plan=plan,
    )
    ledger.open_view(event)
    return ledger
