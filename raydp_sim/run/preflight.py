"""Before a run: what it will need, what it plans to end with, and what cannot fit."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import psutil

from raydp_sim.errors import bad_field
from raydp_sim.population.participation.base import Rounds
from raydp_sim.run.prediction import Prediction, predict
from raydp_sim.scenario import Scenario, bound_mechanism, setting_of
from raydp_sim.scenario.accounting import charged_alike, planned, planned_releases

_ACTOR_BYTES = 100 << 20  # resident, private memory of one actor process with our imports
_RAY_BYTES = 400 << 20
# What the ledger and the schedule hold of a client where each has a history of its own: a double
# for each of 44 orders, and a few more.
_ACCOUNT_BYTES = 400
_RESERVE = 0.9
# How often a piece of work is timed at most, and after how many seconds it has been enough.
_TRIALS, _ENOUGH = 5, 0.25


@dataclass(frozen=True)
class Plan:
    """What a run will need and what it plans to end with.

    Attributes:
        actors: operating-system processes, 0 for the inline backend.
        memory: bytes, roughly.
        seconds: wall-clock, roughly, what `loading` took included.
        reports: clients' reports over all releases, as expected.
        epsilon: of a client that takes part in every release.
        bits: of one report.
        loading: seconds that reading the scenario and calibrating its mechanism took.
        prediction: errors that may be expected; None where no formula is known.
        least: the smallest batch that is released.
        data: what was found out about the data, in words.
        batches: bytes of the memory that reports take which are under way.
    """

    actors: int
    memory: int
    seconds: float
    reports: float
    epsilon: float
    bits: int
    loading: float = 0.0
    prediction: Prediction | None = None
    least: int = 1
    data: str = ""
    batches: int = 0


class Room(NamedTuple):
    """What a run may use: processors, and bytes of memory."""

    cpus: int
    memory: int

    @classmethod
    def here(cls) -> "Room":
        """Return what this machine has."""
        available = int(psutil.virtual_memory().available * _RESERVE)
        return cls(psutil.cpu_count() or 1, available)


def plan(scenario: Scenario, client_actors: int, loading: float = 0.0, cpus: int = 1) -> Plan:
    """Estimate a run from measured rates, and from the time that a task's work takes here.

    It is rough, but of the right order.

    Args:
        scenario: what is to be played.
        client_actors: how many processes the clients are in.
        loading: seconds that reading and calibrating it took.
        cpus: that these processes share.
    """
    mechanism, population = bound_mechanism(scenario), scenario.population
    ray = scenario.placement.backend == "ray"
    shufflers = scenario.shuffle.shufflers if scenario.trust_model.shuffled else 0
    readers = len(scenario.task.readers(setting_of(scenario)))
    if scenario.privacy.levels is not None and not shufflers:
        shufflers = 1  # a board, since no reader collects
    servers = shufflers + readers + 2
    if scenario.placement.servers == "driver":
        servers = shufflers if shufflers > 1 else 0
    actors = client_actors + servers if ray else 0
    # The largest report and the largest batch of any release stand for all.
    parts = planned_releases(scenario, mechanism)
    largest = max((part.ask.mechanism for part in parts), key=lambda stage: stage.bits)
    policy = scenario.participation
    sized = [policy if (n := part.ask.wanted) is None else policy.sized(n) for part in parts]
    cohort = max(own.expected(population.clients, population.rate()) for own in sized)
    rounds = scenario.task.rounds * scenario.repeat
    if (together := parts[0].together) is not None:
        cohort, rounds = float(together), scenario.repeat
    messages = cohort * largest.messages_per_report
    row_bytes = largest.bits / largest.messages_per_report / 8 + 8
    # Samples that are held out are read by the lead reader and the analyst, too.
    data = population.data.memory(population.clients, client_actors + 2 if ray else 1)
    batches = int(4 * _span(scenario) * messages * row_bytes)
    memory = data + batches + actors * _ACTOR_BYTES
    if not charged_alike(scenario, mechanism):
        memory += population.clients * _ACCOUNT_BYTES
    per_round = 1e-7 * messages + (0.01 + 0.0017 * client_actors if ray else 0.001)
    at_once = min(client_actors, cpus) if ray else 1
    # What is done once a round is done beside the clients, but on the same processors.
    per_round += _seconds_of_work(scenario, cohort) / at_once
    return Plan(
        actors=actors,
        memory=memory + (_RAY_BYTES if ray else 0),
        seconds=loading + (6.0 + 0.6 * actors if ray else 0.0) + rounds * per_round,
        reports=cohort * rounds,
        epsilon=planned(scenario, mechanism),
        bits=largest.bits,
        loading=loading,
        prediction=predict(scenario),
        least=scenario.least_batch,
        data=_data(scenario),
        batches=batches,
    )


def _span(scenario: Scenario) -> int:
    """Return how many releases go together where the scenario says it; `auto` sees to memory."""
    span, task = scenario.placement.span, scenario.task
    several = isinstance(scenario.participation, Rounds) and scenario.shuffle.shufflers == 1
    if span == "auto" or task.adaptive or scenario.privacy.budget is not None or not several:
        return 1
    return min(span, task.rounds)


def _seconds_of_work(scenario: Scenario, cohort: float) -> float:
    """Time what the task says is computed in a round, on this machine."""
    work = scenario.task.work(setting_of(scenario))
    return sum(_seconds(each.piece) * (cohort / each.reports + 1.0 / each.rounds) for each in work)


def _seconds(piece: Callable[[], object]) -> float:
    """Return the least time that a piece of work took, after one that warms up.

    Of the processor, which others may be using as well; or of the clock, where several processors
    are used at once and wait for each other.
    """
    timed: list[float] = []
    while len(timed) < 2 or (len(timed) <= _TRIALS and sum(timed) < _ENOUGH):
        began, used = time.perf_counter(), time.process_time()
        piece()
        timed.append(min(time.perf_counter() - began, time.process_time() - used))
    return min(timed[1:])


def _data(scenario: Scenario) -> str:
    """Say what was found out about the data, and which rows of a file nobody holds."""
    data, clients = scenario.population.data, scenario.population.clients
    said, rows = data.said(), data.rows()
    if rows is None or rows == clients:
        return said
    unused = f"population.clients is {clients:,}, so {rows - clients:,} of {rows:,} rows are unused"
    return f"{said}; {unused}" if said else unused


def refuse_what_cannot_fit(scenario: Scenario, planned: Plan, room: Room) -> None:
    """Refuse a run that needs more memory than there is, naming the field to change.

    Raises:
        InputError: the field, its value and how much is missing.
    """
    if planned.memory <= room.memory:
        return
    need, have = (f"{size / 2**30:.1f} GiB" for size in (planned.memory, room.memory))
    if planned.actors * _ACTOR_BYTES > planned.memory / 2:
        value = scenario.placement.clients_per_actor
        remedy = f"that makes {planned.actors} processes and needs {need} of {have}; raise it"
        raise bad_field("placement.clients_per_actor", value, remedy)
    if _span(scenario) > 1 and planned.batches > planned.memory / 2:
        remedy = f"the run needs {need} of {have}; lower it, or leave it to auto"
        raise bad_field("placement.span", scenario.placement.span, remedy)
    clients = scenario.population.clients
    raise bad_field("population.clients", clients, f"the run needs {need} of {have}; lower it")
