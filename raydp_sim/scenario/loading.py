"""Reading a scenario file: overrides, checks of the whole, and errors that name the field."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.model import describe
from raydp_sim.registry import search_also
from raydp_sim.scenario.accounting import planned_releases
from raydp_sim.scenario.batches import with_least_batch
from raydp_sim.scenario.bound import bound_mechanism, setting_of
from raydp_sim.scenario.document import overridden, read
from raydp_sim.scenario.feasible import (
    check_categories,
    check_participation,
    check_reach,
    check_records,
)
from raydp_sim.scenario.file import Scenario
from raydp_sim.scenario.keys import known_keys
from raydp_sim.scenario.leveled import check_levels
from raydp_sim.tasks.base import Ask, Task
from raydp_sim.tasks.charging import amplifies
from raydp_sim.tasks.trial import check_values

_SAMPLE = 4096
_SAMPLE_BYTES = 1 << 26


def load(path: str | Path, overrides: Iterable[str] = (), seed: int | None = None) -> Scenario:
    """Read, override and check a scenario file.

    Args:
        path: the YAML file.
        overrides: assignments such as `population.clients=500`; values are read as YAML.
        seed: replaces the file's seed.

    Raises:
        InputError: one message that names the file, the field, the value and the remedy.
    """
    path = Path(path)
    search_also(path.parent)
    return parse(read(path), overrides, seed, source=str(path), folder=path.parent)


def parse(
    document: Any,
    overrides: Iterable[str] = (),
    seed: int | None = None,
    source: str = "scenario",
    folder: Path | None = None,
) -> Scenario:
    """Check a scenario given as a mapping; see `load`."""
    if not isinstance(document, Mapping):
        state = "it is empty" if document is None else "it holds no sections"
        raise InputError(f"{source}: {state}; it must be a mapping such as `population: ...`")
    try:
        document = overridden(document, overrides)
        if seed is not None:
            document["seed"] = seed
        scenario = Scenario.model_validate(document)
        if folder is not None:
            population = scenario.population.located(folder.resolve())
            scenario = scenario.model_copy(update={"population": population})
        scenario = with_least_batch(scenario)
        _check_combination(scenario)
    except ValidationError as error:
        raise InputError(describe(error, known_keys(document), source)) from None
    except RecursionError:
        raise InputError(f"{source}: it is nested too deeply; write it flat") from None
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return scenario


def _check_combination(scenario: Scenario) -> None:
    """Refuse what each section allows but all together do not."""
    clients, data = scenario.population.clients, scenario.population.data
    _check_filled(scenario.mechanism)
    mechanism = bound_mechanism(scenario)
    kind = MECHANISMS.dump(scenario.mechanism)["kind"]
    parts = planned_releases(scenario, mechanism)
    for used in (mechanism, *(part.ask.mechanism for part in parts)):
        _check_guarantee(scenario, used, kind if used is mechanism else used.kind)
    check_levels(scenario)
    check_participation(scenario)
    if (wrong := scenario.population.check()) is not None:
        raise InputError(f"population.{wrong}")
    check_reach(scenario)
    check_categories(scenario)
    check_records(scenario)
    rows = data.rows()
    if rows is not None and rows < clients:
        raise bad_field("population.clients", clients, f"the data hold only {rows} rows; lower it")
    if mechanism.guarantee != "none" and mechanism.where != scenario.trust_model.noise_at:
        place = "the aggregator" if mechanism.where == "aggregator" else "the client"
        fits = "central" if mechanism.where == "aggregator" else "local or shuffle"
        raise bad_field(
            "trust", scenario.trust, f"mechanism '{kind}' draws its noise at {place}; use {fits}"
        )
    if mechanism.guarantee == "shuffled-only" and not scenario.trust_model.shuffled:
        raise bad_field("trust", scenario.trust, f"mechanism '{kind}' needs trust: shuffle")
    if scenario.trust_model.noise_at == "aggregator":
        _check_one_reader(scenario)
    stages = [(part.ask.mechanism, part.times) for part in parts]
    messages = max(stage.messages_per_report for stage, _ in stages)
    if messages >= 1 << 16:
        raise bad_field(
            "mechanism.coordinates",
            messages,
            "a report has at most 65535 messages; lower mechanism.coordinates or mechanism.levels",
        )
    private = scenario.privacy.guarantee == "required"
    if private and any(math.isinf(stage.event().epsilon) for stage, _ in stages):
        remedy = (
            "a message would be flipped less often than 53-bit draws can express, so no guarantee "
            "holds; lower it below 25 per message"
        )
        raise bad_field("mechanism.epsilon_local", scenario.mechanism.epsilon_local, remedy)
    # Shuffled normal noise is accounted at privacy.delta, whatever the delta of a report alone.
    alone = [
        part
        for part in parts
        if part.ask.slots is not None or not amplifies(part.ask.mechanism, scenario.trust_model)
    ]
    spent = sum(part.ask.mechanism.event().delta * part.times for part in alone)
    if spent > scenario.privacy.delta:
        remedy = (
            f"{scenario.task.rounds} releases of this mechanism spend {spent:.3g}; raise it, lower "
            "the mechanism's delta, or use fewer task.rounds"
        )
        raise bad_field("privacy.delta", scenario.privacy.delta, remedy)
    _check_output(scenario, [part.ask for part in parts])
    _check_sample(scenario)


def _check_filled(mechanism: Mechanism) -> None:
    """Refuse values for what is a task's own to say."""
    for name in mechanism.filled:
        given = getattr(mechanism, name)
        if given != type(mechanism).model_fields[name].default:
            raise bad_field(f"mechanism.{name}", given, "the task fills it in; leave it out")


def _check_output(scenario: Scenario, asks: list[Ask]) -> None:
    """Refuse counts where readers need more of a message than which symbol it is."""
    if scenario.shuffle.output == "permuted":
        return
    task, why = scenario.task, ""
    if not scenario.trust_model.shuffled:
        why = f"under trust: {scenario.trust} there is no shuffler that could count"
    elif scenario.privacy.levels is not None:
        why = "with privacy.levels readers need the id of every report"
    elif any(ask.slots is not None for ask in asks):
        why = f"task '{task.kind}' needs to know the slot of every report"
    elif type(task).fold is not Task.fold or type(task).zero is not Task.zero:
        why = f"task '{task.kind}' reads message by message"
    for ask in asks:
        if not why and not getattr(ask.mechanism.wire, "counted", False):
            kind = ask.mechanism.kind
            why = f"messages of mechanism '{kind}' are not of a finite alphabet that is counted"
    if why:
        raise bad_field("shuffle.output", scenario.shuffle.output, f"{why}; use permuted")


def _check_one_reader(scenario: Scenario) -> None:
    """Refuse several readers of one trusted release: each would draw noise of its own."""
    names = scenario.task.readers(setting_of(scenario))
    if len(names) > 1:
        remedy = (
            f"{' and '.join(names)} would each add noise to the same data, and a release is "
            "charged once; use local or shuffle"
        )
        raise bad_field("trust", scenario.trust, remedy)


def _check_guarantee(scenario: Scenario, mechanism: Mechanism, kind: str) -> None:
    """Let a mechanism without a guarantee run only where the scenario says so itself."""
    claimed = scenario.privacy.guarantee
    if mechanism.guarantee == "none" and claimed != "none":
        private = {"quan": "r2"}.get(kind)
        instead = f"use '{private}', or " if private else ""
        remedy = f"it adds no noise, so no guarantee holds; {instead}say privacy.guarantee: none"
        raise bad_field("mechanism.kind", kind, remedy)
    if mechanism.guarantee != "none" and claimed == "none":
        remedy = f"mechanism '{kind}' has a guarantee, and the two are never mixed; leave it out"
        raise bad_field("privacy.guarantee", claimed, remedy)


def _check_sample(scenario: Scenario) -> None:
    """Look at the data of some clients before anything is placed."""
    setting, data = setting_of(scenario), scenario.population.data
    rows, clients = data.rows(), scenario.population.clients
    block = max(1, min(_SAMPLE, _SAMPLE_BYTES // max(8, data.memory(1, 0))))
    sample = np.arange(min(block if rows is None else rows, clients), dtype=np.uint32)
    stream = scenario.stream(0)
    for start in range(0, len(sample), block):
        ids = sample[start : start + block]
        held = scenario.population.hold(ids, stream)
        try:
            check_values(scenario.task, setting, held, ids, stream)
        except InputError as error:
            raise InputError(f"population.data: {error}") from None
