"""The scenario file: its sections, how it is loaded, and errors that name the field."""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    Field,
    ValidationError,
    model_validator,
)

from raydp_sim.accounting import calibrated
from raydp_sim.datasets import DATASETS
from raydp_sim.document import overridden, read
from raydp_sim.errors import InputError, bad_field
from raydp_sim.feasible import check_participation, check_reach
from raydp_sim.findings import describe
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.model import Model
from raydp_sim.population.availability import AVAILABILITY
from raydp_sim.population.devices import DeviceClass
from raydp_sim.population.latency import LATENCY
from raydp_sim.population.participation import PARTICIPATION
from raydp_sim.population.participation.all import All
from raydp_sim.population.participation.base import Participation, Rounds
from raydp_sim.population.section import Population
from raydp_sim.privacy.mixed import honest_clients
from raydp_sim.random import Stream
from raydp_sim.registry import piece, search_also
from raydp_sim.tasks import TASKS
from raydp_sim.tasks.base import Task
from raydp_sim.tasks.mean import Mean

_SAMPLE = 4096
_SAMPLE_BYTES = 1 << 26


class Section(Model):
    """A part of the file."""


class Shuffle(Section):
    """The shuffler of the shuffle model.

    Fields:
        shufflers: actors that share the work; the result does not depend on it.
        min_batch: a batch with fewer clients is never released.
    """

    shufflers: Annotated[int, Field(ge=1, le=64)] = 1
    min_batch: Annotated[int, Field(ge=1)] = 1


class Budget(Section):
    """What the whole run may cost one client.

    Fields:
        epsilon: of everything the client takes part in.
        delta: that goes with it; 0 counts pure losses only.
    """

    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Privacy(Section):
    """How privacy is reported, and what it may cost a client.

    Fields:
        delta: the largest failure probability that the whole run may end with; shuffled releases
            are accounted at it.
        honest_fraction: share of every batch that does not collude; only those hide a client.
        bound: which bound to report; `best`, the smallest one that is proved, is the only
            choice so far.
        budget: `{epsilon, delta}` of every client: who cannot afford the next release, should its
            batch be the smallest that is let out, stays home; none unless given.
    """

    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    honest_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    bound: Literal["best"] = "best"
    budget: Budget | None = None

    @model_validator(mode="after")
    def _budget_within_delta(self) -> "Privacy":
        if self.budget is not None and self.budget.delta > self.delta:
            raise ValueError(
                f"budget.delta is {self.budget.delta:g}; it must be at most privacy.delta, which "
                f"is {self.delta:g}"
            )
        return self


class Placement(Section):
    """Where the run takes place; nothing here changes a result.

    Fields:
        backend: `ray`, or `inline` for one process without Ray.
        clients_per_actor: clients in one actor; `auto` makes one actor per CPU of the cluster.
        checkpoint_seconds: least wall-clock time between two checkpoints; 0 makes one per release.
        start_timeout: seconds that Ray may take to start.
    """

    backend: Literal["ray", "inline"] = "ray"
    clients_per_actor: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    checkpoint_seconds: Annotated[float, Field(ge=0)] = 1.0
    start_timeout: Annotated[float, Field(gt=0)] = 90.0


class Metrics(Section):
    """What analysts see while it happens.

    Fields:
        serve: whether rows are also served live; only `false` so far, rows go to Parquet.
    """

    serve: Literal[False] = False


class Scenario(Section):
    """One experiment, complete: the same file and seed give the same numbers anywhere.

    Fields:
        name: short name; the run directory is called after it.
        description: what the scenario shows, in a sentence.
        seed: every random draw of the run follows from it.
        repeat: independent repetitions; summaries then carry standard errors.
        trust: who is trusted: `central` (the aggregator), `local` (nobody), `shuffle` (a shuffler).
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    repeat: Annotated[int, Field(ge=1, le=100_000)] = 1
    trust: Literal["central", "local", "shuffle"] = "shuffle"
    population: Population
    participation: Annotated[Participation, *piece(PARTICIPATION)] = All()
    task: Annotated[Task, *piece(TASKS)] = Mean()
    mechanism: Annotated[Mechanism, *piece(MECHANISMS)]
    shuffle: Shuffle = Shuffle()
    privacy: Privacy = Privacy()
    placement: Placement = Placement()
    metrics: Metrics = Metrics()

    @model_validator(mode="before")
    @classmethod
    def _usual_task(cls, document: Any) -> Any:
        """Let `--set task.rounds=3` work on a file that leaves the task to its default."""
        task = document.get("task") if isinstance(document, Mapping) else None
        if isinstance(task, Mapping) and "kind" not in task:
            return {**document, "task": {"kind": Mean.kind, **task}}
        return document

    @cached_property
    def bound_mechanism(self) -> Mechanism:
        """The mechanism with what the rest of the file says about it filled in.

        Raises:
            InputError: when the mechanism does not fit the population's data.
        """
        known = {"dimension": self.population.data.width(), "clients": self.population.clients}
        for name, value in known.items():
            given = getattr(self.mechanism, name)
            if given is not None and given != value:
                remedy = f"the population says {value}; leave mechanism.{name} out"
                raise bad_field(f"mechanism.{name}", given, remedy)
        cls = type(self.mechanism)
        try:
            filled = cls.model_validate({**self.mechanism.model_dump(), **known})
            return calibrated(self, filled.for_batches(self._honest()))
        except ValidationError as error:
            raise InputError(describe(error, _known_keys(), prefix=("mechanism",))) from None

    @property
    def least_batch(self) -> int:
        """The smallest batch that is ever released."""
        return self.shuffle.min_batch if self.trust == "shuffle" else 1

    @property
    def scheduled(self) -> bool:
        """Whether batches are planned in one place.

        Otherwise each client knows by itself that it takes part, and all report at once.
        """
        population, alone = self.population, self.participation.decided_by == "client"
        free = self.privacy.budget is None and not population.needs_influence
        at_once = population.instant and isinstance(self.participation, Rounds)
        return not (alone and free and at_once)

    def _honest(self) -> int:
        """Return how many honest clients every release is sure to have."""
        return honest_clients(self.shuffle.min_batch, self.privacy.honest_fraction)

    def settled(self) -> "Scenario":
        """Return the scenario with its mechanism filled in and calibrated, once and for all."""
        return self.model_copy(update={"mechanism": self.bound_mechanism})

    def document(self) -> dict[str, Any]:
        """Return the file as resolved: loading it gives this scenario again."""
        return self.model_dump(mode="json")

    def stream(self, repetition: int) -> Stream:
        """Return the root of all randomness of one repetition."""
        return Stream(self.seed).at("repetition", repetition)


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
        _check_combination(scenario)
    except ValidationError as error:
        raise InputError(describe(error, _known_keys(), source)) from None
    except RecursionError:
        raise InputError(f"{source}: it is nested too deeply; write it flat") from None
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return scenario


def _check_combination(scenario: Scenario) -> None:
    """Refuse what each section allows but all together do not."""
    clients, data = scenario.population.clients, scenario.population.data
    check_participation(scenario)
    if (wrong := scenario.population.check()) is not None:
        raise InputError(f"population.{wrong}")
    check_reach(scenario)
    rows = data.rows()
    if rows is not None and rows < clients:
        raise bad_field("population.clients", clients, f"the data hold only {rows} rows; lower it")
    mechanism = scenario.bound_mechanism
    kind = MECHANISMS.dump(scenario.mechanism)["kind"]
    if mechanism.guarantee == "none":
        remedy = "it adds no noise, so no guarantee holds"
        private = {"quan": "r2"}.get(kind)
        raise bad_field("mechanism.kind", kind, f"{remedy}; use '{private}'" if private else remedy)
    if (mechanism.where == "aggregator") != (scenario.trust == "central"):
        place = "the aggregator" if mechanism.where == "aggregator" else "the client"
        fits = "central" if mechanism.where == "aggregator" else "local or shuffle"
        raise bad_field(
            "trust", scenario.trust, f"mechanism '{kind}' draws its noise at {place}; use {fits}"
        )
    if mechanism.guarantee == "shuffled-only" and scenario.trust != "shuffle":
        raise bad_field("trust", scenario.trust, f"mechanism '{kind}' needs trust: shuffle")
    stages = scenario.task.stages(mechanism)
    messages = max(stage.messages_per_report for stage, _ in stages)
    if messages >= 1 << 16:
        raise bad_field(
            "mechanism.coordinates",
            messages,
            "a report has at most 65535 messages; lower mechanism.coordinates or mechanism.levels",
        )
    if any(math.isinf(stage.event().epsilon) for stage, _ in stages):
        remedy = (
            "a message would be flipped less often than 53-bit draws can express, so no guarantee "
            "holds; lower it below 25 per message"
        )
        raise bad_field("mechanism.epsilon_local", scenario.mechanism.epsilon_local, remedy)
    spent = sum(stage.event().delta * releases for stage, releases in stages)
    if spent > scenario.privacy.delta:
        remedy = (
            f"{scenario.task.rounds} releases of this mechanism spend {spent:.3g}; raise it, lower "
            "the mechanism's delta, or use fewer task.rounds"
        )
        raise bad_field("privacy.delta", scenario.privacy.delta, remedy)
    block = max(1, min(_SAMPLE, _SAMPLE_BYTES // (8 * mechanism.domain.width)))
    sample = np.arange(min(block if rows is None else rows, clients), dtype=np.uint32)
    for start in range(0, len(sample), block):
        ids = sample[start : start + block]
        values = data.values(ids, scenario.stream(0).at("data"))
        try:
            mechanism.domain.admit(values, ids, mechanism.on_out_of_range)
        except InputError as error:
            raise InputError(f"population.data: {error}") from None


def _known_keys() -> set[str]:
    """Return every key of every section and piece."""
    registries = (MECHANISMS, TASKS, DATASETS, AVAILABILITY, LATENCY, PARTICIPATION)
    pieces = (cls for registry in registries for cls in registry.kinds.values())
    sections = (Scenario, Population, DeviceClass, Shuffle, Privacy, Placement, Metrics)
    return {key for model in (*sections, *pieces) for key in model.model_fields}
