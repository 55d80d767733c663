"""What passes between a task and whoever plays it: settings, asks, answers, truth."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets.labelled import HeldOut
from raydp_sim.mechanisms.base import Counts, Mechanism
from raydp_sim.mechanisms.randomizer import Clipped
from raydp_sim.stream.levels import Levels
from raydp_sim.stream.trust import TRUSTS, Trust

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Setting:
    """What a task may know before the run; the same for every actor.

    Attributes:
        mechanism: the scenario's, calibrated.
        clients: size of the population.
        shape: of what one client holds; `(width,)` where it is a vector.
        delta: `privacy.delta` of the scenario.
        labels: classes that the data are labelled with; 0 if they are not.
        held_out: samples that no client holds and everyone may read, where there are any.
        levels: who reads at which level of privacy; None where all readers are alike.
        seed: of what is drawn before the first release (`init`, `memory`) and public, such as a
            model to start from; each repetition has its own, the same for readers and clients.
        trust: the trust model.
        honest_fraction: `privacy.honest_fraction` of the scenario.
    """

    mechanism: Mechanism
    clients: int
    shape: tuple[int, ...]
    delta: float
    labels: int = 0
    held_out: HeldOut | None = None
    levels: Levels | None = None
    seed: int = 0
    trust: Trust = TRUSTS["shuffle"]
    honest_fraction: float = 1.0


@dataclass(frozen=True, eq=False)
class Ask:
    """What is public about a release.

    Attributes:
        mechanism: what the answers are randomized with; whoever handles them finds it here.
            Reports that answer asks of different mechanisms are never in one batch.
        broadcast: model or query; an object of its own that clients and readers fetch and the
            driver never does.
        cohort: clients wanted in the batch; None: what the participation policy says.
        minimum: smallest batch that may be released; None: `shuffle.min_batch`, whose place it
            takes.
        slots: how many reports each slot is to have; whoever collects assigns clients to slots at
            random, and readers are told of every report which slot it is of. A shuffler does so in
            secret, and readers are handed the batch slot by slot. No slot is handed out before
            there are clients for all of them.
        accounted: whether epsilon is worked out after the release; it is charged in any case.
        held: whether nobody is asked: the release is made of what a trusted server was sent before,
            and is charged to those who sent it last.
    """

    mechanism: Mechanism
    broadcast: Arrays = field(default_factory=dict)
    cohort: int | None = None
    minimum: int | None = None
    slots: tuple[int, ...] | None = None
    accounted: bool = True
    held: bool = False

    @property
    def wanted(self) -> int | None:
        """Clients that the batch is to have; None: what the participation policy says."""
        return self.cohort if self.slots is None else sum(self.slots)


class Answer(NamedTuple):
    """What a block of clients computed.

    Attributes:
        values: one row per value, of any float type; checked against the domain of the ask's
            mechanism before anything is randomized.
        owner: which client of the block each row is of, ascending, where clients send several
            values each; None: one row per client.
        memory: client state from now on, one row per client of the block.
        seen: exact sums for the simulation's analyst (losses, hits); they add up over clients.
    """

    values: NDArray[Any]
    owner: NDArray[np.int64] | None = None
    memory: Arrays = {}  # noqa: RUF012  # never written to
    seen: Counts | None = None


class Work(NamedTuple):
    """A piece of what is computed, small enough to be timed before a run.

    Attributes:
        piece: does it.
        reports: how many reports take as long as the piece; inf: it is none of the clients'.
        rounds: how many rounds do, whoever reports; inf: that depends on the reports alone.
    """

    piece: Callable[[], object]
    reports: float = math.inf
    rounds: float = math.inf


class Planned(NamedTuple):
    """Releases of one kind that a run will make.

    Attributes:
        ask: as these releases will have it; its broadcast does not matter.
        times: how many.
        disjoint: whether no client is in more than one of them.
        fixed: whether all of them have this very mechanism; if not, only its guarantee and the
            length of its reports.
        together: clients of all of them together at most, where their sizes differ.
    """

    ask: Ask
    times: int
    disjoint: bool = False
    fixed: bool = True
    together: int | None = None

    @property
    def per_client(self) -> int:
        """In how many of them one client can be."""
        return 1 if self.disjoint else self.times


@dataclass(frozen=True, eq=False)
class Truth:
    """What only the analyst of a simulation knows of a release; see `Task.rows`.

    Attributes:
        cohort: `Task.truth` of those who took part.
        so_far: the same, added up over all releases so far.
        population: the same of everyone.
        clipped: what the domain cut off.
        seen: sum of the answers' `seen`; None where there is none.
        reports: clients whose report is in the batch.
        seen_so_far: sum of the answers' `seen` over all releases so far.
    """

    cohort: Counts
    so_far: Counts
    population: Counts
    clipped: Clipped
    seen: Counts | None
    reports: int
    seen_so_far: Counts | None = None
