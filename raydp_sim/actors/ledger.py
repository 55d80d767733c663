"""The ledger actor: makes every event durable before its release."""

from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.accounting import release_event, worst_release
from raydp_sim.errors import RunError
from raydp_sim.privacy import store
from raydp_sim.privacy.filter import Filter, Mask
from raydp_sim.privacy.ledger import Guarantee, Ledger
from raydp_sim.random import Ids
from raydp_sim.scenario import Scenario
from raydp_sim.tasks.base import Ask


class LedgerActor:
    """Knows who was charged. Runs on the driver's node; aggregators and analysts hold no handle."""

    def __init__(self, document: dict[str, Any], folder: str) -> None:
        self.scenario = Scenario.model_validate(document)
        self.mechanism = self.scenario.bound_mechanism
        self.folder = Path(folder)
        given = self.scenario.privacy.budget
        self.budget = None if given is None else Filter(given.epsilon, given.delta)
        self.begin(0, 0)

    def begin(self, repetition: int, finished: int) -> None:
        """Start or resume a repetition whose first `finished` releases are done.

        Rows beyond those were paid for before an interruption. Their releases are played again,
        draw for draw, and find themselves paid already.
        """
        self.repetition = repetition
        self.ledger = Ledger(self.scenario.population.clients, self.scenario.privacy.delta)
        self.paid: dict[int, store.Charge] = {}
        for charge in store.charges(self.folder, repetition):
            if charge.release < finished:
                self.ledger.charge(charge.event, charge.participants, charge.shuffled)
            else:
                self.paid[charge.release] = charge

    def charge(
        self, release: int, time: float, ask: Ask, *participants: Ids | range
    ) -> tuple[Guarantee, int]:
        """Charge a release to everyone who took part; durable when this returns.

        Returns:
            What is proved so far, and how many clients this release was charged to.
        """
        ids = store.canonical(
            participants[0] if len(participants) == 1 else self._union(participants)
        )
        if len(ids) == 0:
            return self.ledger.guarantee(), 0
        mechanism = self.scenario.task.mechanism_for(self.mechanism, ask)
        shuffled = release_event(self.scenario, mechanism, len(ids))
        charge = store.Charge(self.repetition, release, time, mechanism.event(), ids, shuffled)
        before = self.paid.pop(release, None)
        if before is None:
            store.append(self.folder, charge, self.scenario.population.clients)
        elif not before.same_as(charge):
            raise RunError(
                f"release {release} was paid for before the interruption with other participants; "
                "the run directory does not belong to this scenario or machine",
                resumable=False,
            )
        self.ledger.charge(charge.event, charge.participants, charge.shuffled)
        return self.ledger.guarantee(), len(ids)

    def able(self) -> Mask | None:
        """Say which clients can afford to take part once more; None without a budget.

        It follows from the releases charged so far. Whoever is asked next must be asked after this
        and charged before anyone is asked again, or be let out of the cohorts meanwhile.
        """
        if self.budget is None:
            return None
        worst = worst_release(self.scenario, self.mechanism)
        return self.ledger.able(self.mechanism.event(), worst, self.budget)

    def _union(self, parts: tuple[Ids | range, ...]) -> Ids:
        present = np.zeros(self.scenario.population.clients, np.bool_)
        for part in parts:
            present[part] = True
        return np.flatnonzero(present).astype(np.uint32)

    def compact(self) -> None:
        """Merge the rows into one file at the end of a run."""
        store.compact(self.folder)
