"""Our epsilons beside dp_accounting's, and the table of what a law gains."""

import json
import sys

import pytest
from click.testing import CliRunner

from raydp_sim.bench import accountants, gains
from raydp_sim.cli.bench import command
from raydp_sim.errors import InputError
from raydp_sim.privacy.events import GaussianRelease, Shuffle

RUNS = {"noise": (GaussianRelease(2.0), 4), "shuffle": (Shuffle(1.0, 50), 1)}


def test_both_are_shown_where_both_have_the_event():
    noise, shuffle = accountants.beside(RUNS, 1e-6)
    assert noise.bound == "pld-noise" and noise.smaller == "equal within 0.1 %"
    assert noise.peers == pytest.approx(noise.ours, rel=1e-3)
    assert shuffle.peers is None and shuffle.smaller == "only ours"
    assert accountants.Beside("a", 1.0, "b", 2.0).smaller == "ours"
    assert accountants.Beside("a", 2.0, "b", 1.0).smaller == "theirs"


def test_the_command_prints_a_table_and_a_document(monkeypatch):
    monkeypatch.setattr(accountants, "TABLES", {})
    monkeypatch.setattr(accountants, "CENTRAL", RUNS)
    shown = CliRunner().invoke(command, ["accounting", "--peers"])
    assert shown.exit_code == 0, shown.stderr
    assert "no event" in shown.stdout and "pld-noise" in shown.stdout
    made = json.loads(CliRunner().invoke(command, ["accounting", "--peers", "--json"]).stdout)
    assert [row["smaller"] for row in made["rows"]] == ["equal within 0.1 %", "only ours"]


def test_without_dp_accounting_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(InputError, match="pip install dp-accounting"):
        list(accountants.beside(RUNS))


def test_gains_are_between_the_floor_and_what_holds_for_any_randomizer(monkeypatch):
    few = ("rappor", "privunit, dimension 100", "linf, l2: 8 equal messages")
    monkeypatch.setattr(gains, "EVENTS", {name: gains.EVENTS[name] for name in few})
    monkeypatch.setattr(gains, "CLIENTS", (1000,))
    monkeypatch.setattr(gains, "LOSSES", (2.0,))
    monkeypatch.setattr(gains, "ROUNDS", (1,))
    found = list(gains.gains())
    assert len(found) == len(gains.EVENTS)
    assert all(one.floor <= one.after < one.before for one in found)
    shown = CliRunner().invoke(command, ["gains"])
    assert shown.stdout.count("\n") == 2 + len(gains.EVENTS)
    assert "| privunit, dimension 100 | 10^3 | 1 |" in shown.stdout
