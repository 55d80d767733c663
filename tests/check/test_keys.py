"""Mechanisms whose keys break a promise are caught by the checks of keys."""

import pytest

from raydp_sim.check.keys import KEY_CHECKS
from raydp_sim.check.subject import Subject

from . import bad_keys

AGAIN = "keys are drawn again alike"
LOSES, ESTIMATES = "every level loses what is stated", "every level estimates the value"
OPENED, HIDES = "opened reports follow their level's law", "keys say nothing about the value"
CAUGHT = {
    bad_keys.OtherKeysTheSecondTime: {AGAIN, OPENED},
    bad_keys.KeysOfTheValue: {AGAIN, OPENED, HIDES},
    bad_keys.SaysLessThanItLoses: {LOSES},
    bad_keys.WrongFlips: {OPENED, HIDES},
    bad_keys.WrongView: {ESTIMATES},
    bad_keys.KeyThatShowsMore: {AGAIN, OPENED, HIDES},
}


@pytest.mark.parametrize("cls", CAUGHT, ids=lambda cls: cls.__name__)
def test_a_mechanism_with_bad_keys_is_caught(cls):
    subject = Subject(cls.model_validate(bad_keys.EXAMPLE))
    found = [check(subject) for check in KEY_CHECKS]
    assert {one.check for one in found if one.status == "failed"} == CAUGHT[cls], found


def test_every_check_of_keys_catches_something():
    assert set().union(*CAUGHT.values()) == {check.name for check in KEY_CHECKS}
