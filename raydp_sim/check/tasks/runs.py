"""Small runs of the real actors in one process: alike by seed, placement and interruption."""

from raydp_sim.check.finding import NotChecked, check, plural, require
from raydp_sim.check.tasks.subject import TaskSubject
from raydp_sim.run.outcome import Outcome, difference, outcome
from raydp_sim.run.play import prepare, reopen
from raydp_sim.scenario import Scenario, bound_mechanism, parse
from raydp_sim.scenario.accounting import planned


def placed(scenario: Scenario, clients_per_actor: int, shufflers: int) -> Scenario:
    """Return a scenario with its clients placed otherwise."""
    document = scenario.document()
    document["placement"]["clients_per_actor"] = clients_per_actor
    if scenario.trust_model.shuffled:
        document["shuffle"] = {**document.get("shuffle", {}), "shufflers": shufflers}
    return parse(document)


def played(subject: TaskSubject, name: str, scenario: Scenario | None = None) -> Outcome:
    """Play a scenario to its end in a folder of its own."""
    folder = subject.folder / name
    for _ in prepare(scenario or subject.scenario, out=folder).releases():
        pass
    return outcome(folder)


def base(subject: TaskSubject) -> Outcome:
    """Return the outcome of the run that others are compared with, if it came to its end."""
    try:
        return _base(subject)
    except Exception:
        raise NotChecked("no run came to its end, see above") from None


def _base(subject: TaskSubject) -> Outcome:
    if subject.base is None:
        subject.base = played(subject, "base")
    return subject.base


@check("a run is within its plan")
def within(subject: TaskSubject) -> str:
    """The ledger ends with no larger epsilon than the plan stated before the run."""
    _ = subject.made
    rows = _base(subject)["stream 'releases'"]
    spent, delta = float(rows["epsilon"][-1].as_py()), subject.scenario.privacy.delta
    before = planned(subject.scenario, bound_mechanism(subject.scenario))
    require(
        spent <= before * (1.0 + 1e-9),
        f"the ledger has epsilon {spent:.6g} at delta {delta:g}, but `plan` stated {before:.6g}",
    )
    return f"{plural(rows.num_rows, 'release')}, epsilon {spent:.4g} of {before:.4g} planned"


@check("the seed decides")
def seed(subject: TaskSubject) -> str:
    """A second run is the same in every number."""
    wrong = difference(base(subject), played(subject, "again"))
    require(wrong is None, f"{wrong} differs between two runs of one seed; draw from `stream`")
    return "two runs"


@check("placement changes nothing")
def placement(subject: TaskSubject) -> str:
    """Seven clients per actor and three shufflers give what all in one place give."""
    whole = base(subject)
    wrong = difference(whole, played(subject, "placed", placed(subject.scenario, 7, 3)))
    require(wrong is None, f"{wrong} differs between 1 actor and {-(-len(subject.ids) // 7)}")
    return "all clients in one actor; 7 in each, and 3 shufflers"


@check("a resumed run is the same")
def resume(subject: TaskSubject) -> str:
    """A run that is stopped after its first release and taken up again ends in the same numbers."""
    whole = base(subject)
    if whole["stream 'releases'"].num_rows < 2:
        raise NotChecked("it makes one release; give it more, such as --set task.rounds=3")
    folder = subject.folder / "resumed"
    rows = prepare(subject.scenario, out=folder).releases()
    next(rows)
    rows.close()
    again = reopen(folder)
    again.scenario = placed(again.scenario, 13, 1)
    for _ in again.releases():
        pass
    wrong = difference(whole, outcome(folder))
    require(wrong is None, f"{wrong} differs once a run is resumed; keep all of it in the state")
    return "stopped after the first release"
