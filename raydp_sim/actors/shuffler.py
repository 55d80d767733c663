"""The shuffler actor: collects, deduplicates, permutes, strips identity."""

from typing import Any

import numpy as np

from raydp_sim.actors.inbox import Inbox, batch_counts
from raydp_sim.batches import Reports, Shuffled
from raydp_sim.random import Ids
from raydp_sim.scenario import Scenario
from raydp_sim.shuffle import Permuted, permute


def choose_cohort(
    scenario: Scenario, repetition: int, release: int, time: float, share: int
) -> tuple[Ids, list[int]]:
    """Choose who is asked, as the scenario's policy says, without looking at anyone's data."""
    root = scenario.stream(repetition)
    population = scenario.population
    cohort = scenario.participation.choose(
        population.clients,
        lambda ids: population.available(ids, time, root),
        population.rate(),
        root.at("participation", release),
    )
    return cohort, np.unique(cohort // np.uint32(share)).tolist()


class ShufflerActor:
    """Serves every k-th bucket if there are k shufflers; the first one also chooses cohorts."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.scenario = Scenario.model_validate(document)
        self.mechanism = self.scenario.bound_mechanism
        self.begin(0)

    def begin(self, repetition: int) -> None:
        """Forget everything and start a repetition."""
        self.repetition = repetition
        self.inbox = Inbox()
        self.closed: dict[int, Permuted] = {}

    def choose(self, release: int, time: float, share: int) -> tuple[Ids, list[int]]:
        """Choose the cohort of a release; the aggregator never learns it.

        Returns:
            The cohort, and which placements of `share` clients each hold somebody of it.
        """
        return choose_cohort(self.scenario, self.repetition, release, time, share)

    def admit(self, source: int, epoch: int) -> None:
        """See `Inbox.admit`."""
        self.inbox.admit(source, epoch)

    def collect(self, batch: Reports) -> bool:
        """See `Inbox.collect`."""
        return self.inbox.collect(batch)

    def close(self, release: int) -> tuple[dict[str, int], Ids | range]:
        """Close and permute a batch.

        Returns:
            The number of reports (counted by their first message), of messages, of duplicates
            dropped and of bytes to come; and, for the ledger alone, who took part.
        """
        batch = self.inbox.close(release)
        mechanism = self.mechanism
        stream = self.scenario.stream(self.repetition).at("permute", release)
        permuted = permute(release, batch, mechanism.messages_per_report, mechanism.routing, stream)
        self.closed[release] = permuted
        return batch_counts(batch), batch.senders.participants()

    def chunk(self, release: int, first: int, last: int, final: bool) -> Shuffled:
        """Let some groups of a closed batch out; called only once the release is paid for."""
        chunk = self.closed[release].chunk(first, last)
        if final:
            del self.closed[release]
        return chunk

    def discard(self, release: int) -> None:
        """Drop a batch that is too small to be let out."""
        self.closed.pop(release, None)
