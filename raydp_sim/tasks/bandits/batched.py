"""What all bandits share as tasks: batches with slots, clients that serve once, one learner."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.central_laplace import CentralLaplace
from raydp_sim.mechanisms.laplace import LaplaceVector
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.mechanisms.shuffled import with_loss
from raydp_sim.model import Model
from raydp_sim.privacy.events import Release, Shuffle
from raydp_sim.random import ClientStream, Stream
from raydp_sim.tasks.bandits.batch import Batch
from raydp_sim.tasks.bandits.learner import State, next_batch, start, step
from raydp_sim.tasks.bandits.problem import Model as NoiseModel
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.rewards import RewardRange
from raydp_sim.tasks.bandits.slot_sums import empty_sums, fold_slots, sums_of_slots
from raydp_sim.tasks.bandits.streams import made_public
from raydp_sim.tasks.base import (
    Answer,
    Arrays,
    Ask,
    Estimate,
    Floats,
    Formed,
    Planned,
    Setting,
    Task,
)
from raydp_sim.tasks.base import Batch as Messages
from raydp_sim.tasks.charging import amplifies, usual_event


class Rewards(Model):
    """The range of rewards.

    Fields:
        low: the least, at least -1.
        high: the largest, at most 1.
    """

    low: Annotated[float, Field(ge=-1, le=1)] = -1.0
    high: Annotated[float, Field(ge=-1, le=1)] = 1.0


class BatchedBandit(Task):
    """Elimination in batches (Girgis 2024, Chapter 6, with its corrections).

    Every batch has a slot for each of its clients, which says what to play; whoever collects hands
    the slots out at random once there are clients for all of them, and a client serves once. From
    the sums of what they earned comes an estimate, and what is surely not the best is dropped.
    Batches grow; when no further one fits into the horizon, everyone left plays the best estimate
    and reports nothing. `trust` says who adds noise: the clients (`local`, `shuffle`) or the reader
    (`central`). Behind a shuffler the local loss of a batch's reports is the largest that keeps
    the batch, should it be the smallest that is released, within the run's epsilon.

    Fields every bandit has:
        rounds: batches asked for at most, those included that are asked again.
        horizon: rounds of the bandit, each a client of its own; all clients unless given.
        rewards: their range.
        radius: `corrected`, with which the certificate is proved, or as in the `paper`.
        design: play few actions that tell about all (`core-set`), or all alike (`uniform`).
        amplification: how the local loss behind a shuffler is found: numerically (`clones`), or by
            the `closed` form of the text.
        least: share of a shuffled batch's slots that must be filled, or the batch is withheld and
            asked again of other clients.
    """

    once = True
    sums_cut = False
    # What is protected, and in which sense.
    protects: ClassVar[str]

    rounds: Annotated[int, Field(ge=1)] = 100
    horizon: Annotated[int, Field(ge=3)] | None = None
    rewards: Rewards = Rewards()
    radius: Literal["corrected", "paper"] = "corrected"
    design: Literal["core-set", "uniform"] = "core-set"
    amplification: Literal["clones", "closed"] = "clones"
    least: Annotated[float, Field(gt=0, le=1)] = 0.8

    # What a bandit says of itself.

    @abstractmethod
    def vectors(self, state: Arrays | None = None) -> Floats:
        """Return the actions of the linear bandit, one per row, as a reader in this state has them.

        Raises:
            InputError: names the field, as one of the task's.
        """

    @abstractmethod
    def holds(self, dimension: int) -> tuple[int, str]:
        """Return the length of what a client holds, and which data have it."""

    @abstractmethod
    def broadcast(self, problem: Problem, batch: Batch) -> Arrays:
        """Return what clients are told to play, slot by slot."""

    # Before the run.

    def problem(self, setting: Setting, state: Arrays | None = None) -> Problem:
        """Return what the learner is told before the first batch.

        Args:
            setting: of the run.
            state: of a reader; None: before the run.

        Raises:
            InputError: names the field that does not fit.
        """
        if not self.rewards.low < self.rewards.high:
            remedy = f"it must be larger than task.rewards.low, which is {self.rewards.low:g}"
            raise bad_field("task.rewards.high", self.rewards.high, remedy)
        rewards = RewardRange(self.rewards.low, self.rewards.high)
        _check_mechanism(setting.mechanism, rewards)
        horizon = setting.clients if self.horizon is None else self.horizon
        if horizon > setting.clients:
            remedy = f"each round is a client of its own, and there are {setting.clients}; lower it"
            raise bad_field("task.horizon", horizon, remedy)
        model: NoiseModel = "shuffle" if setting.trust.shuffled else "local"
        if setting.trust.noise_at == "aggregator":
            model = "central"
        try:
            return Problem(
                self.vectors(state),
                horizon,
                model,
                setting.mechanism.need_epsilon(),
                setting.delta,
                rewards,
                radius=self.radius,
                design=self.design,
                amplification=self.amplification,
                least=self.least,
                honest=setting.honest_fraction,
            )
        except InputError as error:
            raise InputError(f"task.{error}") from None

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return batches of disjoint clients, none of which costs more than the first may.

        The first is too small to gain from being shuffled: its reports lose all of epsilon.
        """
        problem = self.problem(setting)
        width, data = self.holds(problem.dimension)
        if setting.shape != (width,):
            remedy = f"clients hold rows of shape {setting.shape}; {width} numbers are needed, as "
            raise InputError(f"population.data: {remedy}{data} has with as long a theta")
        first = next_batch(problem, start(problem))
        if first is None:
            remedy = "not even the first batch fits, or there is nothing to choose from; raise it"
            raise bad_field("task.horizon", problem.horizon, remedy)
        ask = Ask(setting.mechanism, slots=tuple(first.slots.tolist()), minimum=first.least)
        fixed, together = problem.model != "shuffle", problem.horizon
        return (Planned(ask, self.rounds, disjoint=True, fixed=fixed, together=together),)

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return 1: a client sends one reward."""
        return 1

    @property
    def spends(self) -> int:
        """A client is in one batch."""
        return 1

    # The protocol.

    def init(self, setting: Setting) -> Arrays:
        """Start with all actions."""
        problem = self.problem(setting)
        count = len(problem.actions)
        counts = {name: np.zeros(count, np.int64) for name in ("plays", "reported")}
        return {**start(problem).arrays(), **counts, "error": np.full(count, np.nan)}

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Ask for the next batch; None: commit."""
        problem = self.problem(setting, state)
        batch = next_batch(problem, State.of(state))
        if batch is None:
            return None
        mechanism = setting.mechanism
        if problem.model == "shuffle":
            mechanism = with_loss(mechanism, batch.epsilon0)
        broadcast = self.broadcast(problem, batch)
        return Ask(mechanism, broadcast, minimum=batch.least, slots=tuple(batch.slots.tolist()))

    def client(
        self,
        setting: Setting,
        ask: Ask,
        data: Any,
        memory: Arrays,
        slots: NDArray[np.int64] | None,
        randomizer: Randomizer,
        stream: ClientStream,
    ) -> Answer:
        """Play what the slot says and report what it earned, less the middle of the range."""
        assert slots is not None
        held = np.asarray(data)
        mean, seen = self.played(held, ask.broadcast, slots)
        low, high = self.rewards.low, self.rewards.high
        earned = np.where(held[:, 0] < (mean - low) / (high - low), 0.5, -0.5) * (high - low)
        return Answer(earned[:, None], memory=memory, seen=seen)

    @abstractmethod
    def played(
        self, held: Floats, broadcast: Arrays, slots: NDArray[np.int64]
    ) -> tuple[Floats, NDArray[np.int64] | None]:
        """Return the mean reward of what each client plays, and what the analyst counts of it.

        Args:
            held: by the clients; its first column is their luck.
            broadcast: of the ask.
            slots: of the clients.
        """

    def zero(self, setting: Setting, ask: Ask, reader: int) -> Any:
        """Return no rewards, slot by slot."""
        assert ask.slots is not None
        return empty_sums(ask.mechanism, len(ask.slots))

    def fold(
        self, setting: Setting, ask: Ask, reader: int, accumulator: Any, batch: Messages
    ) -> Any:
        """Add rewards to the sums of their slots."""
        slot: Any = batch.slot  # type: ignore[union-attr]  # an ask with slots has them
        return fold_slots(ask.mechanism, accumulator, slot, batch.payload)

    def step(
        self,
        setting: Setting,
        ask: Ask,
        reader: int,
        state: Arrays,
        accumulator: Any,
        formed: Formed,
        stream: Stream,
    ) -> tuple[Arrays, Arrays]:
        """Learn from the batch that came; where it is void, it will be asked again."""
        problem, before = self.problem(setting, state), State.of(state)
        batch = next_batch(problem, before)
        assert batch is not None and formed.slots is not None
        counts = np.array(formed.slots, np.int64)
        sums = sums_of_slots(ask.mechanism, accumulator, counts, stream)
        sums += counts * (self.rewards.low + self.rewards.high) / 2.0
        after = step(problem, before, batch, sums, counts)
        return made_public(problem, state, after, batch, counts)

    def withheld(
        self, setting: Setting, ask: Ask, state: Arrays, asked: int
    ) -> tuple[Arrays, Arrays]:
        """Count the rounds of those who were handed a slot; the batch will be asked again."""
        if not asked:
            return state, {}
        problem, before = self.problem(setting, state), State.of(state)
        batch = next_batch(problem, before)
        assert batch is not None
        nothing = np.zeros(len(batch.slots), np.int64)
        after = step(problem, before, batch, np.zeros(len(nothing)), nothing)
        return made_public(problem, state, after, batch, nothing)

    def event(self, setting: Setting, ask: Ask, formed: Formed) -> Release | None:
        """Return the shuffle of the slots that were filled; see `amplification` for why it is one.

        Nothing is gained where the reports lose no more than the run may.
        """
        if not amplifies(ask.mechanism, formed.trust):
            return usual_event(ask.mechanism, formed)
        loss = ask.mechanism.need_epsilon()
        gained = loss > setting.mechanism.need_epsilon()
        return Shuffle(loss, formed.honest if gained else 1)

    def estimate(self, setting: Setting, public: Arrays) -> Estimate | None:
        """Return the mean reward of every action, once a batch has taught something."""
        error = public["error"]
        return None if np.isnan(error).all() else Estimate(public["values"], error)


def _check_mechanism(mechanism: Mechanism, rewards: RewardRange) -> None:
    if not isinstance(mechanism, LaplaceVector | CentralLaplace):
        remedy = "bandits take laplace (trust local or shuffle) or central-laplace (central)"
        raise bad_field("mechanism.kind", mechanism.kind, remedy)
    if abs(mechanism.radius - rewards.width / 2.0) > 1e-12:
        remedy = f"rewards are in [{rewards.low:g}, {rewards.high:g}], so it must be half of "
        raise bad_field("mechanism.radius", mechanism.radius, f"{remedy}{rewards.width:g}")
