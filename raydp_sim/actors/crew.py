"""The crew of a run: which actors there are, where they are placed, and respawning clients."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.actors.aggregator import AggregatorActor, FollowerActor, ServerActor, state_of
from raydp_sim.actors.analyst import AnalystActor, BoardActor
from raydp_sim.actors.backend import Actor, Backend, Lost, Ref
from raydp_sim.actors.client import ClientActor
from raydp_sim.actors.ledger import LedgerActor
from raydp_sim.actors.metrics import MetricsActor
from raydp_sim.actors.scoring import Grouped
from raydp_sim.actors.seeds import readers_seed
from raydp_sim.actors.shuffler import ShufflerActor
from raydp_sim.datasets import DATASETS
from raydp_sim.datasets.base import Hidden
from raydp_sim.errors import Died, RunError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.random import Stream
from raydp_sim.scenario import Scenario, setting_of, settled
from raydp_sim.scenario.accounting import sampled
from raydp_sim.stream.levels import Levels
from raydp_sim.stream.sealed import secret_of
from raydp_sim.tasks.base import Arrays, Task

_MAX_DEATHS = 5

Shards = Callable[[int, int], Arrays | None]
"""(first, last) -> the state of these clients at the last checkpoint; None if there is none."""


def _no_state(first: int, last: int) -> None:
    """Start afresh."""


def ranges(scenario: Scenario, cpus: int) -> list[tuple[int, int]]:
    """Split the clients into contiguous ranges, one per client actor.

    Example:
        >>> from raydp_sim.scenario import parse
        >>> data = {"kind": "bernoulli", "probability": 0.5}
        >>> tiny = {"name": "a", "population": {"clients": 5, "data": data},
        ...         "mechanism": {"kind": "2rr", "epsilon_local": 1.0}}
        >>> ranges(parse(tiny), cpus=2)
        [(0, 3), (3, 5)]
    """
    clients, wanted = scenario.population.clients, scenario.placement.clients_per_actor
    share = -(-clients // cpus) if wanted == "auto" else min(clients, wanted)
    return [(first, min(first + share, clients)) for first in range(0, clients, share)]


def _without_data(scenario: Scenario) -> dict[str, Any]:
    """Return the document for actors that have no business with the clients' data."""
    document, data = scenario.document(), scenario.population.data
    stand_in = Hidden(
        of=data.shape(), called=data.names(), classes=data.labels(), public=data.held_out()
    )
    hidden = {"data": DATASETS.dump(stand_in), "group_data": {}}
    return {**document, "population": {**document["population"], **hidden}}


class Crew:
    """Spawns the actors that the scenario's trust calls for and keeps their handles.

    Only the driver holds a crew. Readers, in particular, are given no handle by anyone.
    """

    def __init__(
        self,
        scenario: Scenario,
        backend: Backend,
        folder: Path,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        # Calibrating may take seconds; the actors get its result.
        scenario = settled(scenario)
        self.scenario, self.backend, self.folder = scenario, backend, folder
        self.document = scenario.document()
        others = _without_data(scenario)
        self.ranges = ranges(scenario, backend.cpus())
        self.share = self.ranges[0][1] - self.ranges[0][0]  # of all placements but the last
        self.epochs = [0] * len(self.ranges)
        self.deaths = [0] * len(self.ranges)
        self.repetition = 0
        setting, task = setting_of(scenario), scenario.task
        self.coins = sampled(scenario, setting.mechanism)[0] == "coins"
        self.checkpoint: Shards = _no_state  # of clients at the last checkpoint
        self.progress = progress
        self.clients = [self._client(source) for source in range(len(self.ranges))]
        self.collectors: list[Actor]
        names = task.readers(setting)
        self.levels = setting.levels
        if self.levels is not None:
            self.readers, self.collectors = self._analysts(others, self.levels)
        elif scenario.trust_model.shuffled:
            blind = {**others, "seed": readers_seed(scenario)}
            self.readers = [
                backend.spawn(AggregatorActor, blind, reader) for reader in range(len(names))
            ]
            number = scenario.shuffle.shufflers
            spread = number > 1
            self.collectors = [
                backend.spawn(ShufflerActor, others, anywhere=spread) for _ in range(number)
            ]
        else:
            lead = backend.spawn(ServerActor, others)
            more = [backend.spawn(FollowerActor, others, reader) for reader in range(1, len(names))]
            self.readers, self.collectors = [lead, *more], [lead]
        self.lead = self.readers[0]
        # Beside a trusted server, for tasks that take what it holds in an order it does not choose.
        self.orderer: Actor | None = None
        if not scenario.trust_model.shuffled and task.drawn_order(0) is not None:
            self.orderer = backend.spawn(ShufflerActor, others)
        direct = self.levels is not None and self.levels.direct
        # Whom clients send to: collectors, and analysts whose keys take no other way.
        self.receivers = [*self.collectors, *(self.readers[1:] if direct else ())]
        self.ledger = backend.spawn(LedgerActor, others, str(folder / "ledger"))
        self.metrics = backend.spawn(MetricsActor, others, str(folder / "metrics"))

    def _analysts(
        self, document: dict[str, Any], levels: Levels
    ) -> tuple[list[Actor], list[Actor]]:
        """Spawn readers of several levels, each with the secret of its own keys, and collectors.

        No reader collects, whatever the trust: a collector plans cohorts with the run's seed, from
        which all keys follow.
        """
        scenario, backend, number = self.scenario, self.backend, self.scenario.shuffle.shufflers
        blind, root = {**document, "seed": readers_seed(scenario)}, Stream(scenario.seed)
        readers = [backend.spawn(AggregatorActor, blind, 0)]
        for reader in range(1, len(levels.names)):
            secret = secret_of(root, reader)
            readers.append(backend.spawn(AnalystActor, blind, reader, secret))
        if not scenario.trust_model.shuffled:
            return readers, [backend.spawn(BoardActor, document)]
        spread = number > 1
        made = (backend.spawn(ShufflerActor, document, anywhere=spread) for _ in range(number))
        return readers, list(made)

    @property
    def apart(self) -> bool:
        """Whether collectors are actors of their own, and no reader is one of them."""
        return self.collectors[0] is not self.lead

    @property
    def one_to_each(self) -> bool:
        """Whether reports all go to one collector and on to one reader, and no keys with them."""
        single = len(self.receivers) == len(self.readers) == 1
        task = self.scenario.task
        return single and self.levels is None and not task.once and not task.keeps_records

    @property
    def keeps_state(self) -> bool:
        """Whether clients keep state from one release to the next."""
        promotes = self.levels is not None and bool(self.levels.promotions)
        return promotes or type(self.scenario.task).memory is not Task.memory

    def begin(
        self,
        repetition: int,
        finished: int,
        saved: dict[str, Arrays] | None,
        checkpoint: Shards | None = None,
    ) -> None:
        """Start or resume a repetition on every actor and wait until all are ready.

        Args:
            repetition: which one.
            finished: releases that are done.
            saved: what actors start from, but for clients.
            checkpoint: reads the state of some clients from the last checkpoint; None: they start
                afresh.

        Raises:
            InputError: when a client's data do not fit the mechanism.
        """
        self.repetition = repetition
        self.checkpoint = checkpoint or _no_state
        loads = [self._load(source) for source in range(len(self.clients))]
        truths: dict[int, Counts] = {}
        waiting = {ref: source for source, ref in enumerate(loads)}
        while waiting:
            for ref in self.backend.wait(list(waiting)):
                source = waiting.pop(ref)
                try:
                    truths[source] = self.backend.get(ref)
                except Lost:
                    waiting[self.respawn(source)] = source
                self.progress(len(truths), len(loads))
        for source in range(len(self.clients)):
            self._restore(source)
        population = np.sum([truths[source] for source in sorted(truths)], axis=0)
        calls = [
            *(
                self.backend.call(reader, "begin", repetition, state_of(number, saved))
                for number, reader in enumerate(self.readers)
            ),
            self.backend.call(self.ledger, "begin", repetition, finished),
            self.backend.call(
                self.metrics,
                "begin",
                repetition,
                population,
                (saved or {}).get("metrics"),
                self._groups(),
            ),
        ]
        if self.apart:
            calls += [self.backend.call(c, "begin", repetition) for c in self.collectors]
        if self.orderer is not None:
            calls.append(self.backend.call(self.orderer, "begin", repetition))
        # Also where clients decide for themselves: a task may ask for a size or for slots.
        schedule, absent = (saved or {}).get("schedule") or None, self._absent(population)
        calls.append(self.backend.call(self.collectors[0], "plan", schedule, absent))
        for (ref,) in calls:
            self._get(ref, "an actor")
        for source, epoch in enumerate(self.epochs):
            self.announce(source, epoch)

    def _absent(self, population: Counts) -> Any:
        """Let an adversary who sees all data keep clients away; nobody else learns why."""
        people = self.scenario.population
        if not people.needs_influence:
            return None
        return people.absent(np.concatenate(self._from_all("influence", population)))

    def _groups(self) -> Grouped | None:
        """Return the truth about the population's groups, for the analyst."""
        names = self.scenario.population.groups
        if not names:
            return None
        clients, truths = zip(*self._from_all("groups"), strict=True)
        return Grouped(names, np.sum(clients, axis=0), np.sum(truths, axis=0))

    def _from_all(self, method: str, *args: Any) -> list[Any]:
        """Ask all clients for what only a simulation may know, in their order."""
        parts: list[Any] = []
        for source in range(len(self.clients)):
            while len(parts) == source:
                (ref,) = self.backend.call(self.clients[source], method, *args)
                try:
                    parts.append(self.backend.get(ref))
                except Lost:
                    self.respawn(source)
        return parts

    def respawn(self, source: int) -> Ref:
        """Replace a dead client actor; from now on batches of its earlier epochs are refused.

        Returns:
            The reference of the new actor's `load`.
        """
        self.deaths[source] += 1
        if self.deaths[source] > _MAX_DEATHS:
            first, last = self.ranges[source]
            raise RunError(
                f"the actor of clients {first} to {last - 1} died {self.deaths[source]} times with "
                "no checkpoint in between; it may lack memory: lower placement.clients_per_actor "
                "or population.clients"
            )
        self.backend.kill(self.clients[source])
        self.epochs[source] += 1
        self.clients[source] = self._client(source)
        self.announce(source, self.epochs[source])
        loaded = self._load(source)
        self._give_state(source)  # an actor's calls run in the order they were made
        return loaded

    def came_further(self) -> None:
        """Forget deaths: a run that makes checkpoints meanwhile is never given up for them."""
        self.deaths = [0] * len(self.ranges)

    def announce(self, source: int, epoch: int) -> None:
        """Tell everyone whom clients send to which epoch of a placement is the living one."""
        if epoch:
            for receiver in self.receivers:
                self.backend.call(receiver, "admit", source, epoch)

    def ask(self, actor: Actor, method: str, *args: Any) -> Any:
        """Call and wait for the answer of an actor that a run cannot do without."""
        return self._get(self.backend.call(actor, method, *args)[0], "an actor")

    def actors(self) -> list[Actor]:
        """Return every actor once."""
        shufflers = self.collectors if self.apart else []
        if self.orderer is not None:
            shufflers = [*shufflers, self.orderer]
        return [*self.clients, *shufflers, *self.readers, self.ledger, self.metrics]

    def stop(self) -> None:
        """End every actor."""
        for actor in self.actors():
            self.backend.kill(actor)

    def retire(self) -> None:
        """Let everyone go, so that another crew can take the run up from its last checkpoint."""
        self.backend.retire(self.actors())

    def _load(self, source: int) -> Ref:
        return self.backend.call(self.clients[source], "load", self.repetition)[0]

    def _give_state(self, source: int) -> Ref:
        """Send clients their state of the last checkpoint, if there is one."""
        memory = self.checkpoint(*self.ranges[source]) if self.keeps_state else None
        if memory is None:
            return None
        return self.backend.call(self.clients[source], "restore", memory)[0]

    def _restore(self, source: int) -> None:
        """Give clients their state and wait, so that one shard is here at a time."""
        while (ref := self._give_state(source)) is not None:
            try:
                return self.backend.get(ref)  # type: ignore[no-any-return]
            except Lost:
                self.respawn(source)

    def _client(self, source: int) -> Actor:
        place = (source, self.epochs[source], *self.ranges[source])
        return self.backend.spawn(ClientActor, self.document, *place, anywhere=True)

    def _get(self, ref: Ref, who: str) -> Any:
        try:
            return self.backend.get(ref)
        except Lost as error:
            raise Died(f"{who} died: {error}", who=error.who) from None
