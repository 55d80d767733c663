"""The aggregator actor: folds what it is given and makes the release."""

from typing import Any

import numpy as np

from raydp_sim.actors.inbox import Inbox, batch_counts
from raydp_sim.actors.scheduling import Scheduling
from raydp_sim.batches import Reports, Shuffled
from raydp_sim.errors import RunError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.random import Ids
from raydp_sim.scenario import Scenario
from raydp_sim.shuffle import Gathered, interleave
from raydp_sim.tasks.base import Arrays, Ask


class AggregatorActor:
    """Consumes the shuffled stream chunk by chunk and holds the task's state.

    It is handed `Shuffled` chunks and nothing else, and holds no handle to any other actor.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.scenario = Scenario.model_validate(document)
        self.mechanism = self.scenario.bound_mechanism
        self.begin(0, None)

    def begin(self, repetition: int, saved: dict[str, Arrays] | None) -> None:
        """Start a repetition, from a checkpoint if there is one."""
        self.repetition = repetition
        fresh = {"state": self.scenario.task.init(self.mechanism), "public": {}}
        start = fresh if saved is None else saved
        self.task_state, self.public = start["state"], start["public"]
        self.ask()

    def ask(self) -> Ask:
        """Return what the clients are told next, and expect their answers to it."""
        task = self.scenario.task
        ask = task.ask(self.task_state)
        self.answered_with = task.mechanism_for(self.mechanism, ask)
        self.counts: Counts = self.answered_with.zero()
        return ask

    def fold(self, *parts: Shuffled) -> None:
        """Fold one chunk, given as the shufflers' shares of it."""
        for part in parts:
            if not isinstance(part, Shuffled):
                raise RunError(f"the aggregator was handed {type(part).__name__}, not Shuffled")
        self.counts = self.scenario.task.fold(self.answered_with, self.counts, interleave(parts))

    def step(self, release: int, weight: float) -> Arrays:
        """Make the release from what was folded; return what it makes public.

        Args:
            release: its number.
            weight: mean weight of the reports in it.
        """
        stream = self.scenario.stream(self.repetition).at("aggregator", release)
        task, counts = self.scenario.task, self.counts
        mechanism = self.answered_with
        self.counts = mechanism.zero()
        self.task_state, self.public = task.step(mechanism, self.task_state, counts, stream, weight)
        return self.public

    def checkpoint(self) -> dict[str, Arrays]:
        """Return the task's state and the last release."""
        return {"state": self.task_state, "public": self.public}


class ServerActor(Scheduling, AggregatorActor):
    """The aggregator without a shuffler: it collects the reports and knows who sent them."""

    def begin(self, repetition: int, saved: dict[str, Arrays] | None) -> None:
        """Start a repetition with an empty inbox."""
        super().begin(repetition, saved)
        self.inbox = Inbox()
        self.closed: dict[int, Gathered] = {}

    def admit(self, source: int, epoch: int) -> None:
        """See `Inbox.admit`."""
        self.inbox.admit(source, epoch)

    def collect(self, batch: Reports) -> bool:
        """See `Inbox.collect`."""
        return self.inbox.collect(batch)

    def close(self, release: int, ask: Ask) -> tuple[dict[str, int], Ids | range]:
        """Close a batch; see `ShufflerActor.close`. It is folded in one piece.

        Nobody drops a report unseen here: if the server is not trusted, those that are not used
        are paid for as well.
        """
        self.closed[release] = batch = self.inbox.close(release)
        senders = batch.senders.participants()
        if self.scenario.trust == "local" and self.scenario.scheduled:
            senders = np.union1d(senders, self.unused.pop(release)).astype(np.uint32)
        return batch_counts(batch), senders

    def fold_reports(self, release: int) -> None:
        """Fold a closed batch; called only once the release is paid for."""
        batch = self.closed.pop(release)
        reports = Reports(release, 0, 0, batch.senders, batch.bucket, batch.payload)
        self.counts = self.scenario.task.fold(self.answered_with, self.counts, reports)

    def discard(self, release: int) -> None:
        """Drop a batch that is too small to be used."""
        self.closed.pop(release, None)
