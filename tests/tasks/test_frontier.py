"""Scenarios that are compared at equal epsilon: what each costs, how long its reports are."""

from pathlib import Path

import pytest

from raydp_sim.cli.shipped import shipped
from raydp_sim.scenario import bound_mechanism, load
from raydp_sim.scenario.accounting import planned

SHARED = Path(__file__).parents[3] / "shared" / "data"
# Bits that a scenario's first line says.
BITS = {
    "rinf": 15,
    "vqsgd": 15,
    "codebook": 30,
    "sqkr": 64,
    "l2": 176,
    "linf": 576,
    "sketch": 960,
    "privunit": 32 * 13_706,
    "central": 64 * 13_706,
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not there")
@pytest.mark.parametrize("name", BITS)
def test_it_costs_what_it_says_and_sends_as_many_bits(name, monkeypatch):
    monkeypatch.setenv("RAYDP_SIM_DATA", str(SHARED))
    path = shipped()[f"learning/frontier/{name}"]
    scenario = load(path)
    mechanism = bound_mechanism(scenario)
    assert mechanism.bits == BITS[name]
    assert path.read_text().startswith(f"# {BITS[name]:,} bits:")
    assert 1.39 < planned(scenario, mechanism) <= 1.4


def test_all_of_them_are_here():
    found = {name for name in shipped() if name.startswith("learning/frontier/")}
    assert found == {f"learning/frontier/{name}" for name in BITS}
