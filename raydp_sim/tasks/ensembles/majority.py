"""The private majority of voters, query by query."""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.ballot import Ballot
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.darrm import Darrm
from raydp_sim.mechanisms.ensembles.gnmax import data_dependent_rdp
from raydp_sim.mechanisms.gnmax import GNMax
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.metrics.streams import released, simulation_only
from raydp_sim.privacy.events import Release
from raydp_sim.random import ClientStream, Stream
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
    Truth,
)

_UNASKED = -1


class Majority(Task):
    """Voters answer one question after the other; of each, a private majority is released.

    Jiang 2025 (004), chapter 3: with 'darrm', each vote is private for the data behind it; with
    'gnmax', the baseline, votes need not be. A round is a question, the first of the data first.
    A vote is drawn from the probability that the voter holds, or is what it holds if that is 0 or
    1. The tally is seen by the trusted aggregator alone. The majority without noise, and what it
    costs to add it, are the simulation's.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> darrm = make("darrm", clients=3, vote_epsilon=0.5, epsilon=1.0)
        >>> task, setting = Majority(rounds=2), Setting(darrm, 3, (2, 2), 1e-6)
        >>> int(task.ask(setting, task.init(setting)).broadcast["query"])
        0
    """

    kind: ClassVar[str] = "majority"
    open_ended: ClassVar[bool] = False
    sums_cut: ClassVar[bool] = False
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 4},
            "trust": "central",
            "population": {
                "clients": 41,
                "data": {"kind": "ballots", "questions": 4, "accuracy": 0.7, "agreement": 4.0},
            },
            "mechanism": {"kind": "darrm", "vote_epsilon": 0.1, "epsilon": 0.5},
        },
        {
            "task": {"rounds": 3},
            "trust": "central",
            "population": {
                "clients": 41,
                "data": {"kind": "ballots", "questions": 5, "accuracy": 0.9},
            },
            "mechanism": {
                "kind": "darrm",
                "vote_epsilon": 0.1,
                "vote_delta": 1e-9,
                "epsilon": 0.5,
                "delta": 1e-8,
                "votes": "fixed",
            },
        },
        {
            "task": {"rounds": 3},
            "trust": "central",
            "population": {
                "clients": 41,
                "data": {"kind": "ballots", "questions": 3, "accuracy": 0.9},
            },
            "mechanism": {"kind": "gnmax", "epsilon": 0.5, "delta": 1e-8},
        },
    )

    # Before the run.

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return 1, of a vote."""
        return 1

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return the queries; fixed votes are charged with the first."""
        mechanism = setting.mechanism
        if not isinstance(mechanism, Ballot):
            remedy = f"task '{self.kind}' releases a majority of votes; use darrm or gnmax"
            raise bad_field("mechanism.kind", mechanism.kind, remedy)
        if not isinstance(mechanism, Darrm) or mechanism.votes == "fresh" or self.rounds == 1:
            return (Planned(Ask(mechanism), self.rounds),)
        rest = Planned(Ask(mechanism.answered()), self.rounds - 1)
        return Planned(Ask(mechanism), 1), rest

    def named(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Number the queries."""
        return tuple(f"query {query}" for query in range(self.rounds))

    def questions(self, setting: Setting) -> int:
        """Return how many questions there are."""
        if len(setting.shape) != 2 or setting.shape[0] != 2:
            raise InputError(f"population.data: task '{self.kind}' needs votes; use kind: ballots")
        return setting.shape[1]

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse too few questions, and what is no probability of a vote."""
        questions = self.questions(setting)
        if self.rounds > questions:
            raise bad_field("task.rounds", self.rounds, f"there are {questions} questions")
        chance = np.asarray(data)[:, 0]
        bad = ~((chance >= 0.0) & (chance <= 1.0))
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise InputError(
                f"voter {ids[row]} holds {chance[row, column]:g} at question {column}; a vote is 0 "
                "or 1, or the probability of a 1"
            )

    # The protocol.

    def init(self, setting: Setting) -> Arrays:
        """Start with no labels."""
        return {"labels": np.full(self.rounds, _UNASKED, np.int64)}

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Ask the next question."""
        query = int((state["labels"] != _UNASKED).sum())
        if query >= self.rounds:
            return None
        plan = self.plan(setting)
        return Ask(plan[min(query, len(plan) - 1)].ask.mechanism, {"query": np.asarray(query)})

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
        """Cast the votes."""
        query = int(ask.broadcast["query"])
        cast = self.cast(data, memory, query, stream)
        return Answer(cast[:, None], memory=memory, seen=self._seen(cast, query))

    def cast(self, data: Any, memory: Arrays, query: int, stream: ClientStream) -> Floats:
        """Return the votes on a question: draws of what the voters hold."""
        chance = np.asarray(data)[:, 0, query]
        return (stream.uniform("vote")[:, 0] < chance).astype(np.float64)

    def _seen(self, cast: Floats, query: int) -> Counts:
        seen = np.zeros((2, self.rounds), np.int64)
        seen[:, query] = int(cast.sum()), len(cast)
        return seen

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
        """Release the label."""
        labels = state["labels"].copy()
        query = int(ask.broadcast["query"])
        labels[query] = int(ask.mechanism.decode(accumulator, stream)[0])
        return {"labels": labels}, {"labels": labels, "query": np.asarray(query)}

    def withheld(
        self, setting: Setting, ask: Ask, state: Arrays, asked: int
    ) -> tuple[Arrays, Arrays]:
        """Ask the same question again."""
        return state, {}

    def event(self, setting: Setting, ask: Ask, formed: Formed) -> Release | None:
        """Return what the label costs, given that all voters are asked: nothing is sampled."""
        return ask.mechanism.release()

    def estimate(self, setting: Setting, public: Arrays) -> Estimate | None:
        """Return the labels so far; 0.5 stands for questions not yet asked."""
        labels = np.where(public["labels"] == _UNASKED, 0.5, public["labels"])
        return Estimate(labels, np.full(len(labels), np.nan))

    # For the analyst.

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return how many voters know of a 1, by question, of how many that know the answer."""
        right = self.right(setting, data)
        known = ~np.isnan(right)
        return np.concatenate([(right == 1.0).sum(axis=0), known.sum(axis=0)]).astype(np.int64)

    def right(self, setting: Setting, data: Any) -> Floats:
        """Return the true answers, one row per voter; not a number where they are unknown."""
        return np.asarray(data)[:, 1, : self.rounds]

    def estimand(self, setting: Setting, truth: Counts) -> Floats | None:
        """Return the true answers; None where they are not known."""
        ones, known = truth.reshape(2, -1)
        return None if not known.all() else ones / known

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return the label, and how it compares with the majority and with the truth."""
        labels, query = public[0]["labels"], int(public[0]["query"])
        assert truth.seen_so_far is not None and isinstance(ask.mechanism, Ballot)
        done = labels != _UNASKED
        ones, votes = truth.seen_so_far[:, done]
        majority = (2 * ones > votes).astype(np.int64)
        right = self.estimand(setting, truth.population)
        law = ask.mechanism.law()
        scores = {
            "disagreement": float((labels[done] != majority).mean()),
            "expected_disagreement": float(_flips(law, ones, votes).mean()),
            **_data_dependent(ask.mechanism, ones[-1], votes[-1]),
        }
        if right is not None:
            scores["accuracy"] = float((labels[done] == right[done]).mean())
            scores["majority_accuracy"] = float((majority == right[done]).mean())
        said = {"query": query, "label": int(labels[query])}
        counted = {"query": query, "tally": int(ones[-1]), "votes": int(votes[-1])}
        return {
            "labels": released(said),
            "votes": simulation_only(counted),
            "errors": simulation_only(scores),
        }


def _flips(law: Floats, ones: NDArray[np.int64], votes: NDArray[np.int64]) -> Floats:
    """Return how likely each label was to differ from the majority, of those that all voted on."""
    # With votes missing coins stand in; the tally with half of them is what is expected.
    tally = np.minimum(ones + (len(law) - 1 - votes) // 2, len(law) - 1)
    return np.asarray(np.where(2 * ones > votes, 1.0 - law[tally], law[tally]))


def _data_dependent(mechanism: Ballot, ones: int, votes: int) -> dict[str, float]:
    """Return GNMax's divergence given the votes, at the order of its sigma, beside the usual one.

    It depends on the votes, so only a simulation may look at it.
    """
    if not isinstance(mechanism, GNMax):
        return {}
    order, sigma = mechanism.order, mechanism.sigma
    return {
        "divergence": order / sigma**2,
        "data_dependent_divergence": data_dependent_rdp([ones, votes - ones], sigma, order),
    }
