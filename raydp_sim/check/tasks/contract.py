"""The contract of a task: types, its plan, its events and the marks of its rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.check.finding import Failed, NotChecked, check, plural, require
from raydp_sim.check.tasks.subject import Made, TaskSubject
from raydp_sim.errors import InputError, RunError
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.metrics import streams
from raydp_sim.registry import missing
from raydp_sim.scenario.accounting import least_batch, opened, release_event
from raydp_sim.tasks import TASKS
from raydp_sim.tasks.base import Ask, Planned, Task
from raydp_sim.tasks.charging import Formed, charges
from raydp_sim.tasks.claims import check_event


def _arrays(found: Any, what: str) -> None:
    fits = isinstance(found, dict) and all(
        isinstance(column, np.ndarray) for column in found.values()
    )
    require(fits, f"{what} must be a dictionary of NumPy arrays, and is {_shown(found)}")


def _shown(found: Any) -> str:
    if isinstance(found, dict):
        wrong = {name: type(value).__name__ for name, value in found.items()}
        return f"a dictionary of {wrong}"
    return f"a {type(found).__name__}"


@check("methods and types")
def types(subject: TaskSubject) -> str:
    """Every method is there, and what is known before the run and of its first ask has its type."""
    task, setting, cls = subject.task, subject.setting, type(subject.task)
    wanting = missing(cls, Task)
    require(wanting is None, str(wanting))
    adaptive = getattr(cls, "adaptive", None)
    require(isinstance(adaptive, bool), f"`adaptive` is {adaptive!r}; it must be True or False")
    width = task.width(setting.shape, setting.labels)
    require(isinstance(width, int) and width >= 1, f"`width` is {width!r}; it must be 1 or more")
    names = task.readers(setting)
    named = isinstance(names, tuple) and names and len(set(names)) == len(names)
    require(named, f"`readers` is {names!r}; it must be a tuple of different names")
    plan = task.plan(setting)
    fits = isinstance(plan, tuple) and plan and all(isinstance(part, Planned) for part in plan)
    require(fits, f"`plan` is {_shown(plan)}; it must be a tuple of Planned, not empty")
    require(all(part.times >= 1 for part in plan), "a planned release happens at least once")
    state = task.init(setting)
    _arrays(state, "what `init` returns")
    ask = task.ask(setting, state)
    require(isinstance(ask, Ask), f"the first `ask` is {_shown(ask)}; it must be an Ask")
    assert ask is not None
    _arrays(ask.broadcast, "the broadcast of an ask")
    memory = task.memory(setting, subject.data, subject.stream.at("memory").clients(subject.ids))
    _arrays(memory, "what `memory` returns")
    short = [name for name, column in memory.items() if len(column) != len(subject.ids)]
    require(not short, f"`memory` must have a row per client, and {short} have not")
    return f"{plural(len(plan), 'planned stage')}, {plural(len(names), 'reader')}"


@check("the scenario file keeps it")
def scenario_file(subject: TaskSubject) -> str:
    """A task that is written to a scenario file and read back is the same."""
    written = TASKS.dump(subject.task)
    require(TASKS.parse(written) == subject.task, f"written as {written}, it is read differently")
    return f"kind: {written['kind']}"


@check("a release is made")
def released(subject: TaskSubject) -> str:
    """Clients answer, readers fold and step, the analyst scores; each returns its type."""
    try:
        made = subject.releases
    except InputError:
        raise NotChecked("values were refused, see below") from None
    require(made, "the first `ask` ends the run")
    for release in made:
        for reader in subject.readers:
            _arrays(release.after[reader], f"the state of reader {reader} after `step`")
            _arrays(release.public[reader], f"what reader {reader} makes public in `step`")
        seen = release.truth.seen
        exact = seen is None or np.asarray(seen).dtype.kind in "iu"
        require(exact, "`seen` of an answer must be integers, so that sums are exact")
    return f"{plural(len(made), 'release')} of {made[0].formed.reports} clients"


@check("the plan is what is asked")
def plan(subject: TaskSubject) -> str:
    """Asks come in the planned order with the planned sizes and guarantees, and no more of them.

    Where clients serve once, sizes and local losses may follow from what was released; then no
    ask may cost more than planned, should its batch be the smallest that is released.
    """
    made, plan = subject.made, subject.task.plan(subject.setting)
    planned = [part for part in plan for _ in range(part.times)]
    require(len(made) <= len(planned), f"{len(planned)} releases are planned, and more are asked")
    for part, release in zip(planned, made, strict=False):
        if subject.task.once:
            _no_dearer(subject, part, release)
        else:
            _as_planned(part, release)
    return f"{plural(len(planned), 'planned release')}, {len(made)} made"


def _as_planned(part: Planned, made: Made) -> None:
    where, ask = f"release {made.release}", made.ask
    for name in ("cohort", "minimum", "slots"):
        wanted, found = getattr(part.ask, name), getattr(ask, name)
        require(wanted == found, f"{where} has {name} {found}, but {wanted} was planned")
    wanted, found = _guarantee(part.ask.mechanism), _guarantee(ask.mechanism)
    for name, value in found.items():
        require(
            value == wanted[name],
            f"{where} has a mechanism with {name} {value}, but {wanted[name]} was planned; `plan` "
            "must list every guarantee",
        )
    same = not part.fixed or part.ask.mechanism == ask.mechanism
    require(same, f"{where} has another mechanism than planned; say so by Planned(fixed=False)")


def _no_dearer(subject: TaskSubject, part: Planned, made: Made) -> None:
    scenario, mechanism, ask = subject.scenario, subject.setting.mechanism, made.head
    where, planned, found = f"release {made.release}", part.ask.mechanism.bits, ask.mechanism.bits
    require(planned == found, f"{where} has reports of {found} bits, but {planned} were planned")
    least = release_event(scenario, mechanism, least_batch(scenario, ask), ask)
    wrong = opened(scenario, mechanism).refuses(*charges(ask.mechanism, least))
    require(wrong is None, f"{where} may form with {least_batch(scenario, ask)} reports: {wrong}")


def _guarantee(mechanism: Mechanism) -> dict[str, Any]:
    """Return what of a mechanism must not depend on earlier releases."""
    return {
        "event": mechanism.event(),
        "losses": mechanism.losses(),
        "release": mechanism.release(),
        "bits": mechanism.bits,
    }


@check("events claim no more than the batch")
def events(subject: TaskSubject) -> str:
    """The event of batches of several kinds is one that the engine's knowledge of them allows."""
    tried = 0
    for made in subject.made:
        for formed in _batches(made.formed):
            found = subject.task.event(subject.setting, made.head, formed)
            try:
                check_event(found, made.ask.mechanism, formed)
            except RunError as refused:
                raise Failed(str(refused)) from None
            tried += 1
    return f"{tried} batches: whole, half honest, not sampled, and a single report"


def _batches(formed: Formed) -> list[Formed]:
    """Return a batch as it formed, and others that the engine could know less or fewer of."""
    most = formed.most
    one = replace(formed, sampling=None, reports=1, honest=1, values=most, fewest=most)
    found = [
        formed,
        replace(formed, honest=max(1, formed.honest // 2)),
        replace(formed, sampling=None),
    ]
    if formed.slots is None:
        found.append(one)
    return found


@check("streams are marked")
def marks(subject: TaskSubject) -> str:
    """Each stream is marked, and what is marked as released is the same whatever the truth is."""
    names: dict[str, str] = {}
    for made in subject.made:
        rows = _rows(subject, made)
        for name, batch in rows.items():
            names[name] = _mark(name, batch)
        population = subject.task.truth(subject.setting, subject.data[: len(subject.ids) // 2])
        other = replace(made.truth, cohort=population, so_far=population, population=population)
        again = _rows(subject, replace(made, truth=other))
        for name, mark in names.items():
            same = mark != "released" or name not in rows or rows[name].equals(again.get(name))
            require(
                same,
                f"stream {name!r} is marked as released, but depends on the truth; mark it with "
                "`simulation_only`",
            )
    return ", ".join(f"{name}: {mark}" for name, mark in sorted(names.items()))


def _rows(subject: TaskSubject, made: Made) -> dict[str, pa.RecordBatch]:
    rows = subject.task.rows(subject.setting, made.head, made.public, made.truth)
    fits = isinstance(rows, dict) and all(isinstance(b, pa.RecordBatch) for b in rows.values())
    require(fits, f"`rows` returns {_shown(rows)}; it must be a dictionary of RecordBatch")
    return rows


def _mark(name: str, batch: pa.RecordBatch) -> str:
    require(name not in streams.SCHEMAS, f"the stream {name!r} is not a task's to write")
    try:
        return streams.visibility(batch.schema)
    except ValueError as error:
        raise Failed(f"stream {name!r}: {error}") from None
