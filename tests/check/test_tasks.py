"""Each check of tasks catches a task made to break it, and lets good ones pass."""

import pytest

from raydp_sim.check import TASK_CHECKS, check_task
from raydp_sim.check.tasks.subject import TaskSubject, documents
from raydp_sim.scenario import parse
from tests.check import bad_tasks as bad

CHECKS = {check.name: check for check in TASK_CHECKS}


def scenario(cls):
    (document,) = documents(f"{cls.__module__}:{cls.__qualname__}", cls)
    return parse(document)


@pytest.mark.parametrize("cls", [bad.Honest, bad.Pair, bad.Arms, bad.Keeping])
def test_a_good_task_passes_every_check(cls):
    found = check_task(scenario(cls))
    assert [(f.check, f.why) for f in found if f.status != "passed"] == []


CAUGHT = {
    "methods and types": [(bad.ListState, "`init`"), (bad.SometimesAdaptive, "`adaptive`")],
    "the scenario file keeps it": [(bad.Lossy, "read differently")],
    "a release is made": [(bad.Crashing, "`step` raised KeyError"), (bad.BareState, "NumPy")],
    "values lie in the domain": [
        (bad.Outside, "outside the l"),
        (bad.LateOutside, "outside the l"),
    ],
    "values do not depend on the block": [(bad.Centred, "shares the call")],
    "truths add up": [(bad.MeanTruth, "do not add up")],
    "messages add up in any order": [(bad.FloatSums, "another order")],
    "every reader is served": [(bad.Erasing, "changes the batch")],
    "readers use messages alone": [(bad.Peeking, "has seen their data")],
    "the plan is what is asked": [
        (bad.Understating, "was planned"),
        (bad.TwiceAsOften, "more are asked"),
        (bad.OtherCohort, "cohort 20"),
    ],
    "events claim no more than the batch": [(bad.ClaimsSampling, "not uniform and secret")],
    "streams are marked": [
        (bad.Unmarked, "no mark"),
        (bad.ReleasesTheTruth, "depends on the truth"),
    ],
    "a run is within its plan": [(bad.TwiceAsOften, "`plan` stated")],
    "the seed decides": [(bad.Undecided, "two runs of one seed")],
    "placement changes nothing": [(bad.CountsCalls, "'errors' differs")],
    "a resumed run is the same": [(bad.Forgetful, "'made' differs")],
}


@pytest.mark.parametrize(
    ("name", "cls", "words"),
    [(name, cls, words) for name, found in CAUGHT.items() for cls, words in found],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_promise_is_found(name, cls, words, tmp_path):
    finding = CHECKS[name](TaskSubject(scenario(cls), tmp_path))
    assert finding.status == "failed", finding
    assert words in finding.why


def test_every_check_catches_something():
    assert set(CAUGHT) == set(CHECKS)


def test_what_breaks_one_promise_is_not_blamed_for_the_others(tmp_path):
    """Values outside the domain: checks that would need a release say so, and do not fail."""
    subject = TaskSubject(scenario(bad.Outside), tmp_path)
    found = {check.name: check(subject).status for check in TASK_CHECKS}
    assert [name for name, status in found.items() if status == "failed"] == [
        "values lie in the domain"
    ]
    assert found["messages add up in any order"] == "not applicable"
