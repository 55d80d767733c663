"""Before a run: what it will need, what it plans to end with, and what cannot fit."""

from dataclasses import dataclass

import psutil

from raydp_sim.accounting import charged_alike, planned
from raydp_sim.errors import bad_field
from raydp_sim.scenario import Scenario

_ACTOR_BYTES = 100 << 20  # resident, private memory of one actor process with our imports
_RAY_BYTES = 400 << 20
# What the ledger and the schedule hold of a client where each has a history of its own: a double
# for each of 44 orders, and a few more.
_ACCOUNT_BYTES = 400
_RESERVE = 0.9


@dataclass(frozen=True)
class Plan:
    """What a run will need and what it plans to end with.

    Attributes:
        actors: operating-system processes, 0 for the inline backend.
        memory: bytes, roughly.
        seconds: wall-clock, roughly.
        reports: clients' reports over all releases, as expected.
        epsilon: of a client that takes part in every release.
        bits: of one report.
    """

    actors: int
    memory: int
    seconds: float
    reports: float
    epsilon: float
    bits: int


def plan(scenario: Scenario, client_actors: int) -> Plan:
    """Estimate a run from measured rates; rough, but of the right order."""
    mechanism, population = scenario.bound_mechanism, scenario.population
    ray = scenario.placement.backend == "ray"
    shufflers = scenario.shuffle.shufflers if scenario.trust == "shuffle" else 0
    actors = client_actors + shufflers + 3 if ray else 0
    cohort = scenario.participation.expected(population.clients, population.rate())
    # The largest report of any release stands for all.
    largest, _ = max(scenario.task.stages(mechanism), key=lambda stage: stage[0].bits)
    messages = cohort * largest.messages_per_report
    row_bytes = largest.bits / largest.messages_per_report / 8 + 8
    data = population.clients * mechanism.domain.width * 8
    memory = data + int(4 * messages * row_bytes) + actors * _ACTOR_BYTES
    if not charged_alike(scenario):
        memory += population.clients * _ACCOUNT_BYTES
    rounds = scenario.task.rounds * scenario.repeat
    per_round = 1e-7 * messages + (0.01 + 0.0017 * client_actors if ray else 0.001)
    return Plan(
        actors=actors,
        memory=memory + (_RAY_BYTES if ray else 0),
        seconds=(6.0 + 0.6 * actors if ray else 0.0) + rounds * per_round,
        reports=cohort * rounds,
        epsilon=planned(scenario, mechanism),
        bits=largest.bits,
    )


def refuse_what_cannot_fit(scenario: Scenario, planned: Plan) -> None:
    """Refuse a run that needs more memory than there is, naming the field to change.

    Raises:
        InputError: the field, its value and how much is missing.
    """
    available = int(psutil.virtual_memory().available * _RESERVE)
    if planned.memory <= available:
        return
    need, have = (f"{size / 2**30:.1f} GiB" for size in (planned.memory, available))
    if planned.actors * _ACTOR_BYTES > planned.memory / 2:
        value = scenario.placement.clients_per_actor
        remedy = f"that makes {planned.actors} processes and needs {need} of {have}; raise it"
        raise bad_field("placement.clients_per_actor", value, remedy)
    clients = scenario.population.clients
    raise bad_field("population.clients", clients, f"the run needs {need} of {have}; lower it")
