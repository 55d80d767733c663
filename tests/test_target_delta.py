"""A target is accounted at its own delta, unless the file names another."""

import pytest

from raydp_sim.run import run
from tests.conftest import scenario

TARGET = {"epsilon": 1.0, "delta": 1e-7}
LAPLACE = {"kind": "laplace", "radius": 1.0, "target": TARGET}
DATA = {"kind": "gaussian", "dimension": 1, "clip": 1.0}


def made(**sections):
    people = {"clients": 500, "data": DATA}
    sections = {"mechanism": LAPLACE, "shuffle": {"min_batch": 500}, **sections}
    return scenario(rounds=1, population=people, **sections)


def test_the_delta_of_a_target_is_the_runs(tmp_path):
    assert made().privacy.delta == 1e-7
    privacy = run(made(), out=tmp_path / "run").summary["privacy"]
    assert privacy["delta"] == 1e-7 and "target" not in privacy
    assert privacy["epsilon"] <= 1.0


def test_larger_deltas_than_the_default_need_no_second_field():
    looser = {**LAPLACE, "target": {"epsilon": 1.0, "delta": 1e-4}}
    assert made(mechanism=looser).privacy.delta == 1e-4


def test_with_another_delta_both_are_reported(tmp_path):
    privacy = run(made(privacy={"delta": 1e-5}), out=tmp_path / "run").summary["privacy"]
    alone = run(made(), out=tmp_path / "alone").summary["privacy"]
    # The same reports, so at the target's delta they cost what they cost in a run at that delta.
    assert privacy["epsilon_local"] == alone["epsilon_local"]
    assert privacy["delta"] == 1e-5
    assert privacy["target"] == {**TARGET, "reached": pytest.approx(alone["epsilon"], rel=1e-9)}
    assert privacy["epsilon"] < privacy["target"]["reached"] <= 1.0
