"""Every registered model passes every check of `raydp_sim.check`, with each of its examples."""

from functools import cache

import pytest

from raydp_sim.check import MODEL_CHECKS
from raydp_sim.check.models import ModelSubject
from raydp_sim.models import MODELS

CASES = [(kind, n) for kind, cls in MODELS.kinds.items() for n in range(len(cls.examples))]


@cache
def subject(kind: str, number: int) -> ModelSubject:
    cls = MODELS.kinds[kind]
    parameters, shape = cls.examples[number]
    return ModelSubject(cls.model_validate(parameters), shape)


def test_the_scan_finds_the_models_of_this_room():
    assert {"linear", "cnn", "lenet5", "torch"} <= set(MODELS.kinds)
    assert {kind for kind, _ in CASES} == set(MODELS.kinds)


@pytest.mark.parametrize("case", CASES, ids=[f"{kind}-{n}" for kind, n in CASES])
@pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.name)
def test_a_model_keeps_its_promises(case, check):
    if case[0] == "torch":
        pytest.importorskip("torch")
    finding = check(subject(*case))
    assert finding.status == "passed", finding.why
