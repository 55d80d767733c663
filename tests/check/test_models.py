"""Each check of models fails for a model that breaks what it checks."""

import json

import pytest
from click.testing import CliRunner

from raydp_sim.check import MODEL_CHECKS, check_model
from raydp_sim.cli.main import main

from . import bad_models

BROKEN = {
    "Wide": "shapes and types",
    "Unseeded": "seeds decide the start",
    "Remembering": "calls leave nothing behind",
    "Mixing": "a row does not depend on its company",
    "Crossing": "equal parameters give equal gradients",
    "Averaging": "samples add up",
    "Detouring": "one pass gives what the way there and back gives",
    "Keeping": "one pass gives what the way there and back gives",
    "Unscaled": "one pass gives what the way there and back gives",
    "Boasting": "one pass gives what the way there and back gives",
    "Sloping": "gradients are slopes of the loss",
    "Swallowing": "what is no number stays visible",
}


def failed(name):
    found = check_model(getattr(bad_models, name)(), (3, 4))
    return [each.check for each in found if each.status == "failed"]


def test_the_honest_one_passes():
    assert failed("Model") == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name):
    assert BROKEN[name] in failed(name)


def test_every_check_can_fail():
    unbreakable = {"a scenario file can name it"}  # pydantic's own round trip
    assert {check.name for check in MODEL_CHECKS} - unbreakable == set(BROKEN.values())


def call(*arguments):
    return CliRunner().invoke(main, ["check", *arguments])


def test_the_command_takes_models():
    good = call("linear", "--json")
    assert good.exit_code == 0 and json.loads(good.stdout)["model"] == "linear"
    bad = call("tests.check.bad_models:Sloping")
    assert bad.exit_code == 1 and "the gradient of weight is not the slope" in bad.stdout


def test_the_command_refuses_what_it_cannot_make():
    assert "filters" in call("cnn", "--set", "filters=0").stderr
    near = call("lenet")
    assert near.exit_code == 2 and "did you mean 'lenet5'" in near.stderr
