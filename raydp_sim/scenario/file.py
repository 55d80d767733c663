"""The scenario: one experiment, complete, as its file describes it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.population.participation import PARTICIPATION
from raydp_sim.population.participation.all import All
from raydp_sim.population.participation.base import Participation, Rounds
from raydp_sim.population.section import Population
from raydp_sim.random import Stream
from raydp_sim.registry import piece
from raydp_sim.scenario.sections import Metrics, Placement, Privacy, Section, Shuffle
from raydp_sim.stream.trust import TRUSTS, Trust
from raydp_sim.tasks import TASKS
from raydp_sim.tasks.base import Task
from raydp_sim.tasks.mean import Mean


class Scenario(Section):
    """One experiment, complete: the same file and seed give the same numbers anywhere.

    Fields:
        name: short name; the run directory is called after it.
        description: what the scenario shows, in a sentence.
        seed: every random draw of the run follows from it.
        repeat: independent repetitions; metrics are then means with standard errors, privacy is
            that of the worst repetition, since each stands for a deployment of its own.
        trust: who is trusted: `central` (the aggregator, which sees values), `local` (nobody: the
            server sees who sent which report), `shuffle` (a shuffler: the server sees only a
            uniformly shuffled stream of messages that name nobody).
        population: who the clients are and what they hold.
        participation: who takes part in a release.
        task: what is learned.
        mechanism: the randomizer, with its guarantee.
        shuffle: the shuffler, for trust `shuffle`.
        privacy: how privacy is reported, and what it may cost a client.
        placement: where the run takes place.
        metrics: what analysts see while it happens.
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
    # The mechanism as calibrated: kept by `bound_mechanism`, because that may take seconds.
    _bound: Mechanism | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _usual_task(cls, document: Any) -> Any:
        """Let `--set task.rounds=3` work on a file that leaves the task to its default."""
        task = document.get("task") if isinstance(document, Mapping) else None
        if isinstance(task, Mapping) and "kind" not in task:
            return {**document, "task": {"kind": Mean.kind, **task}}
        return document

    @model_validator(mode="before")
    @classmethod
    def _deltas_agree(cls, document: Any) -> Any:
        """Account at the delta of a target, unless the file gives another by itself."""
        if not isinstance(document, Mapping):
            return document
        privacy, mechanism = document.get("privacy", {}), document.get("mechanism")
        target = mechanism.get("target") if isinstance(mechanism, Mapping) else None
        delta = target.get("delta") if isinstance(target, Mapping) else None
        given = not isinstance(privacy, Mapping) or "delta" in privacy
        try:
            within = not given and delta is not None and 0.0 < float(delta) < 1.0
        except (TypeError, ValueError):
            within = False  # refused where it stands
        if not within:
            return document
        return {**document, "privacy": {**privacy, "delta": delta}}

    @model_validator(mode="before")
    @classmethod
    def _levels_agree(cls, document: Any) -> Any:
        """Give a mechanism with keys the levels of the privacy section, unless it has its own."""
        if not isinstance(document, Mapping):
            return document
        privacy, mechanism = document.get("privacy"), document.get("mechanism")
        levels = privacy.get("levels") if isinstance(privacy, Mapping) else None
        if not isinstance(levels, list | tuple) or not levels or not isinstance(mechanism, Mapping):
            return document
        try:
            fields = MECHANISMS.find(str(mechanism.get("kind"))).model_fields
        except PydanticCustomError:
            return document  # refused where it stands
        known: dict[str, Any] = {"finer": levels[:-1], "epsilon_local": levels[-1]}
        said = {"epsilon_local"} if "target" in mechanism else set()
        known = {name: known[name] for name in known if name in fields and name not in said}
        return {**document, "mechanism": {**known, **mechanism}}

    @property
    def trust_model(self) -> Trust:
        """What the readers of this run are handed, and what has to be paid for."""
        return TRUSTS[self.trust]

    @property
    def least_batch(self) -> int:
        """The smallest batch that is ever released."""
        return self.shuffle.min_batch if self.trust_model.shuffled else 1

    @property
    def scheduled(self) -> bool:
        """Whether batches are planned in one place.

        Otherwise each client knows by itself that it takes part, and all report at once.
        """
        population, alone = self.population, self.participation.decided_by == "client"
        free = self.privacy.budget is None and not population.needs_influence
        at_once = population.instant and isinstance(self.participation, Rounds)
        return not (alone and free and at_once)

    def document(self) -> dict[str, Any]:
        """Return the file as resolved: loading it gives this scenario again."""
        return self.model_dump(mode="json")

    def stream(self, repetition: int) -> Stream:
        """Return the root of all randomness of one repetition."""
        return Stream(self.seed).at("repetition", repetition)
