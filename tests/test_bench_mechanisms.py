"""The benchmark of mechanisms works, on small sizes; how fast they are is for it to say."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from raydp_sim.bench import mechanisms
from raydp_sim.bench.mechanisms import CATEGORIES, VECTORS, Row, Size
from raydp_sim.cli.main import main
from raydp_sim.mechanisms import MECHANISMS

TINY = Size(dimension=4, vectors=64, categories=5, reports=200, epsilons=(1.0, 4.0))
ROW = Row(VECTORS, "privunit", 1.0, 3e4, 1e5, 0.1, 0.1, 2e4)


def call(*arguments: str):
    return CliRunner().invoke(main, ["bench", "mechanisms", *arguments])


def test_every_mechanism_for_vectors_and_categories_is_measured():
    found = list(mechanisms.rows(TINY))
    names = {
        group: {row.name for row in found if row.group == group} for group in (VECTORS, CATEGORIES)
    }
    assert {"l2", "l2, kashin", "privunit", "gaussian", "r2", "sqkr", "vqsgd"} <= names[VECTORS]
    assert {"krr", "rappor", "hadamard-response", "hadamard-bit"} <= names[CATEGORIES]
    assert not {"linf", "2rr", "central-gaussian"} & (names[VECTORS] | names[CATEGORIES])
    assert {name.split(",")[0] for each in names.values() for name in each} <= set(MECHANISMS.kinds)
    for row in found:
        assert row.rate > 0.0 and row.floor > 0.0 and row.exact > 0.0
        # A mean of squares over its expectation: a hundredfold has probability below 1e-6.
        assert row.measured < 100.0 * row.exact


KINDS = ["l2", "privunit", "gaussian", "krr", "r2", "sqkr"]


def test_goals_are_on_what_they_were_set_for():
    found = {row.name: row for row in mechanisms.rows(TINY, KINDS)}
    assert found["l2"].goal == found["l2, kashin"].goal == found["sqkr"].goal == 2e4
    assert found["privunit"].goal == 1e5
    assert found["krr"].goal == 2e7
    assert found["gaussian"].goal is None and found["r2"].goal is None


def test_a_goal_is_met_or_missed_or_absent():
    assert ROW.met is True
    assert replace(ROW, rate=1e4).met is False
    assert replace(ROW, goal=None).met is None
    made = mechanisms.document([ROW, replace(ROW, epsilon=2.0, rate=1e4)], {})
    assert made["met"] is False and made["slowest_to_fastest_epsilon"] == {"privunit": 3.0}


def test_the_command_prints_a_table_and_a_document(monkeypatch: pytest.MonkeyPatch):
    slow = Row(CATEGORIES, "rappor", 1.0, 4e6, 5e8, 0.1, 0.1, 2e7, "draws a coin per category")
    monkeypatch.setattr(mechanisms, "rows", lambda kinds, progress: iter([ROW, slow]))
    result = call()
    assert result.exit_code == 0, result.stderr
    for words in ("30,000", ">= 20000 yes", ">= 2e+07 NO", "rappor draws a coin", "1 of 2 goals"):
        assert words in result.stdout
    made = json.loads(call("--json").stdout)
    assert [row["met"] for row in made["rows"]] == [True, False]


def test_an_unknown_kind_is_refused():
    result = call("--kind", "privunits")
    assert result.exit_code == 2 and "--kind is 'privunits'" in result.stderr
