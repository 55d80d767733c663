"""The ledger actor: makes every event durable before its release."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.errors import RunError
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.privacy.events import Event, Release
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.filter import Mask
from raydp_sim.privacy.ledger.handed import Handed
from raydp_sim.privacy.ledger.seeds import seeds_epsilon
from raydp_sim.privacy.ledger.sizes import covers
from raydp_sim.privacy.ledger.views import Guarantee, charged_to_all
from raydp_sim.random import Ids
from raydp_sim.scenario import Scenario, setting_of
from raydp_sim.scenario.accounting import (
    budgeted,
    formed_batch,
    opened,
    planned_releases,
    release_event,
)
from raydp_sim.scenario.budgets import filter_of
from raydp_sim.schedule.batch import Cohort
from raydp_sim.tasks.base import Ask
from raydp_sim.tasks.charging import charges
from raydp_sim.tasks.claims import check_event

Taken = Ids | range | dict[int, Ids | range]


class LedgerActor:
    """Knows who was charged. Runs on the driver's node; aggregators and analysts hold no handle."""

    def __init__(self, document: dict[str, Any], folder: str) -> None:
        self.scenario = Scenario.model_validate(document)
        self.setting = setting_of(self.scenario)
        self.mechanism = self.setting.mechanism
        self.store = store.Writer(Path(folder), self.scenario.population.clients)
        self.budget = filter_of(self.scenario, self.mechanism)
        self.handed: Handed | None = None
        if self.scenario.task.once:
            self.handed = Handed(Path(folder), self.scenario.population.clients)
        self.begin(0, 0)

    def begin(self, repetition: int, finished: int) -> None:
        """Start or resume a repetition whose first `finished` releases are done.

        Rows beyond those were paid for before an interruption. Their releases are played again,
        draw for draw, and find themselves paid already.
        """
        self.repetition = repetition
        self.ledger = opened(self.scenario, self.mechanism)
        self.paid: dict[int, store.Charge] = {}
        if self.handed is not None:
            self.handed.begin(repetition)
        for charge in self.store.charges(repetition):
            if charge.release < finished:
                self.ledger.charge(charge.event, charge.participants, charge.shuffled)
            else:
                self.paid[charge.release] = charge

    def hand(self, release: int, cohort: Cohort) -> None:
        """Note whom a release is asked of, where clients serve once; durable when this returns.

        Raises:
            RunError: one of them has been asked before; nothing was written down.
        """
        assert self.handed is not None
        self.handed.hand(release, cohort.asked)

    def charge(
        self,
        release: int,
        time: float,
        head: Ask,
        batch: dict[str, Any],
        *participants: Taken,
    ) -> int:
        """Charge a release to everyone who took part; durable when this returns.

        The task says what the batch that formed was; it is checked against what is known of it.

        Args:
            release: its number.
            time: when its batch closed.
            head: what is public of its ask.
            batch: what else is known of its batch, see `charging.Formed`.
            participants: as each collector knows them; also of other releases, by their numbers.

        Returns:
            How many clients this release was charged to.

        Raises:
            RunError: when the task claims what is not so; nothing was written down.
        """
        charged, rows = self._charge(release, time, head, batch, *participants)
        self.store.append(*rows)
        return charged

    def _charge(
        self,
        release: int,
        time: float,
        head: Ask,
        batch: dict[str, Any],
        *participants: Taken,
    ) -> tuple[int, list[store.Charge]]:
        """Charge a release as `charge` does; return what is still to be written down."""
        known = [who[release] if isinstance(who, dict) else who for who in participants]
        ids = store.canonical(known[0] if len(known) == 1 else self._union(known))
        if len(ids) and self.handed is not None:
            self.handed.check(release, ids)
        formed = replace(formed_batch(self.scenario, self.mechanism, len(ids)), **batch)
        if len(ids):
            found = self.scenario.task.event(self.setting, head, formed)
            check_event(found, head.mechanism, formed)
        else:
            # Of a batch that nobody is in nothing is known but how it came about.
            found = None
            if formed.sampling == "coins":
                found = release_event(self.scenario, self.mechanism, 0, head)
            if not charged_to_all(found):
                return 0, []
        alone = self.scenario.task.report(self.setting, head)
        event, shuffled = charges(head.mechanism, found, alone)
        self._check(release, head.mechanism, event, shuffled)
        charge = store.Charge(self.repetition, release, time, event, ids, shuffled)
        before = self.paid.pop(release, None)
        if before is not None and not before.same_as(charge):
            raise RunError(
                f"release {release} was paid for before the interruption with other participants; "
                "the run directory does not belong to this scenario or machine",
                resumable=False,
            )
        self.ledger.charge(charge.event, charge.participants, charge.shuffled)
        return len(ids), [] if before is not None else [charge]

    def pay(
        self,
        releases: Sequence[tuple[int, float, dict[str, Any], int]],
        head: Ask,
        participants: dict[int, Ids | range],
    ) -> tuple[list[int], list[int], list[tuple[Guarantee, float | None] | None]]:
        """Charge releases as `charge` does, for steps that wait for it; all are durable, or none.

        Args:
            releases: of each its number, when its batch closed, what is known of that, and its
                reports.
            head: what is public of their ask.
            participants: by release.

        Returns:
            How many clients each was charged to; the reports of each, which the steps cannot do
            without, so that nothing is released before this has returned; and what is proved
            after each but the last, as by `spent`.
        """
        counts: list[int] = []
        rows: list[store.Charge] = []
        proved: list[tuple[Guarantee, float | None] | None] = []
        for release, time, batch, _ in releases:
            if counts:
                proved.append(self.spent() if head.accounted else None)
            charged, due = self._charge(release, time, head, batch, participants)
            counts.append(charged)
            rows += due
        self.store.append(*rows)
        return counts, [reports for *_, reports in releases], proved

    def spent(self) -> tuple[Guarantee, float | None]:
        """Return what is proved so far, and what the papers' own bound says, where they have one.

        It may take longer than a round, and nobody who makes releases waits for it.
        """
        return self.ledger.guarantee(), seeds_epsilon(self.ledger)

    def _check(
        self, release: int, mechanism: Mechanism, event: Event, shuffled: Release | None
    ) -> None:
        """Refuse what does not go with the rest of the account, before anything is written."""
        wrong = self.ledger.refuses(event, shuffled)
        bare = math.isinf(event.epsilon) and shuffled is None
        if bare != (self.scenario.privacy.guarantee == "none"):
            wrong = "releases with and without a guarantee are never in one run"
        if self.budget is not None and self.handed is None:
            # Whoever came could afford what was planned, and nothing else.
            planned = planned_releases(self.scenario, self.mechanism)[0].ask.mechanism
            worst = budgeted(self.scenario, self.mechanism)[1]
            if (mechanism.event(), mechanism.losses()) != (planned.event(), planned.losses()):
                wrong = "its mechanism is not the planned one, which clients' budgets were made for"
            elif worst is not None and (shuffled is None or not covers(worst, shuffled)):
                wrong = "it may cost more than the release that clients' budgets were made for"
        if wrong is not None:
            message = f"release {release} cannot be charged: {wrong}; nothing was released"
            raise RunError(message, resumable=False)

    def unspent(self, release: int) -> Mask:
        """Say who was not handed a slot before a release, where clients serve once."""
        assert self.handed is not None
        return self.handed.able(release)

    def able(self) -> Mask | None:
        """Say which clients can afford to take part once more; None without a budget.

        It follows from the releases charged so far. Whoever is asked next must be asked after this
        and charged before anyone is asked again, or be left out of the cohorts meanwhile.
        """
        if self.budget is None:
            return None
        return self.ledger.able(*budgeted(self.scenario, self.mechanism), self.budget)

    def _union(self, parts: Sequence[Ids | range]) -> Ids:
        present = np.zeros(self.scenario.population.clients, np.bool_)
        for part in parts:
            present[part] = True
        return np.flatnonzero(present).astype(np.uint32)

    def compact(self) -> None:
        """Merge the rows into one file at the end of a run."""
        self.store.compact()
