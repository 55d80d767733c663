"""Every registered task passes every check of `raydp_sim.check`, in each of its examples."""

from functools import cache

import pytest

from raydp_sim.check import TASK_CHECKS, check_task
from raydp_sim.check.tasks.subject import documents
from raydp_sim.scenario import parse
from raydp_sim.tasks import TASKS

CASES = [(kind, n) for kind, cls in TASKS.kinds.items() for n in range(len(cls.examples))]


@cache
def found(kind: str, number: int):
    """All findings on a task in one of its examples: its runs are shared by the checks."""
    scenario = parse(documents(kind, TASKS.kinds[kind])[number])
    return {finding.check: finding for finding in check_task(scenario)}


def test_the_scan_finds_the_tasks_of_this_room():
    assert {"mean", "item-mean", "user-mean"} <= set(TASKS.kinds)
    assert {kind for kind, _ in CASES} == set(TASKS.kinds)


@pytest.mark.parametrize("case", CASES, ids=[f"{kind}-{n}" for kind, n in CASES])
@pytest.mark.parametrize("check", [check.name for check in TASK_CHECKS])
def test_a_task_keeps_its_promises(case, check):
    finding = found(*case)[check]
    assert finding.status == "passed", finding.why
