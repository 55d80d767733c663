"""Every registered mechanism passes every check of `raydp_sim.check`, with each of its examples.

Statistical checks have fixed seeds; each states its chance of a false alarm, 1e-8 per case.
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest

from raydp_sim.check import accuracy, checks_of, contract, laws, sampled
from raydp_sim.check.subject import Subject
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.privacy.events import EnsembleRelease

from .support import inputs, losses

CASES = [(kind, n) for kind, cls in MECHANISMS.kinds.items() for n in range(len(cls.examples))]
NAMES = [f"{kind}-{number}" for kind, number in CASES]
every = pytest.mark.parametrize("case", CASES, ids=NAMES)
OF_LAWS = {
    accuracy.additive,
    accuracy.enumerated,
    laws.probabilities,
    laws.followed,
    laws.exact_ratio,
    laws.message_losses,
}


@cache
def subject(kind: str, number: int) -> Subject:
    """A mechanism with what was sampled of it, for all checks together."""
    cls = MECHANISMS.kinds[kind]
    return Subject(cls.model_validate(cls.examples[number]))


def test_the_registry_holds_the_mechanisms_of_this_room():
    expected = {"2rr", "rbin", "linf", "l2", "laplace", "gaussian"}
    assert expected | {"central-laplace", "central-gaussian"} <= set(MECHANISMS.kinds)
    assert all(cls.examples for cls in MECHANISMS.kinds.values())


@every
def test_a_mechanism_keeps_its_promises(case):
    of = subject(*case)
    findings = [(check, check(of)) for check in checks_of(of.mechanism)]
    failed = [f"{check.name}: {found.why}" for check, found in findings if found.status == "failed"]
    assert not failed, "\n".join(failed)
    # Nothing is left out but for what the class declares, so no check can fall silent.
    left_out = set() if of.has("laws") else set(OF_LAWS)
    if of.mechanism.losses() is None:
        left_out.add(laws.message_losses)
    if of.mechanism.guarantee == "none" or isinstance(of.mechanism.event(), EnsembleRelease):
        left_out.add(sampled.sampled_ratio)
    if of.mechanism.tells == "majority":
        left_out |= {accuracy.unbiased, accuracy.stated_error, accuracy.worst_error}
    if type(of.mechanism).calibrated is not Mechanism.calibrated:
        left_out.add(contract.target)  # a task finds its noise, and is held to that
    if of.mechanism.kind == "bare-records":
        left_out.add(contract.seeds)  # it draws nothing
    assert {check for check, found in findings if found.status == "not applicable"} == left_out


def test_the_loss_of_a_report_is_the_sum_over_its_messages():
    tried = 0
    for case in CASES:
        if not subject(*case).has("laws"):
            continue
        mechanism = subject(*case).mechanism
        each = mechanism.laws(inputs(mechanism.domain)[:4])
        if len(each) < 2 or each[0].shape[1] ** len(each) > 2000:
            continue
        joint = np.array(
            [
                [
                    math.prod(law[row, symbol] for law, symbol in zip(each, report, strict=True))
                    for report in itertools.product(range(each[0].shape[1]), repeat=len(each))
                ]
                for row in range(len(each[0]))
            ]
        )
        assert joint.sum(axis=1) == pytest.approx(1.0)
        assert losses([joint]) == pytest.approx(losses(each), abs=1e-9)
        assert losses([joint]).max() <= mechanism.event().epsilon + 1e-9
        tried += 1
    assert tried >= 5
