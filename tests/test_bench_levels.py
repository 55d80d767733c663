"""The benchmark of several levels works, on small sizes; how fast they are is for it to say."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from raydp_sim.bench import levels
from raydp_sim.bench.levels import Row, Size, goals, rows
from raydp_sim.cli.main import main

ROW = Row(1_000_000, 10, 0.2, 0.1, 0.1, 0.004, 0.004)


def test_every_case_is_measured_and_errs_as_it_should():
    found = list(rows(Size(categories=16, reports=(500, 2000), levels=(1, 3))))
    assert [(row.reports, row.levels) for row in found] == [
        (500, 1),
        (500, 3),
        (2000, 1),
        (2000, 3),
    ]
    for row in found:
        assert row.seconds >= 0.0
        # A mean of squares over its expectation: a hundredfold has probability below 1e-6.
        assert 0.0 < row.error < 100.0 * row.exact


def test_goals_are_met_or_missed():
    small = Row(100_000, 1, 0.003, 0.0, 0.001, 0.1, 0.1)
    assert all(goals([small, ROW]).values())
    assert list(goals([small, replace(ROW, clients=12.0)]).values()) == [False, False]
    assert list(goals([small, replace(ROW, clients=0.8)]).values()) == [True, False]


def test_the_command_prints_a_table_and_a_document(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(levels, "rows", lambda progress: iter([ROW]))
    result = CliRunner().invoke(main, ["bench", "levels"])
    assert result.exit_code == 0, result.stderr
    for words in ("1,000,000", "3.00", "30.0", "below 1 s: met", "linear"):
        assert words in result.stdout
    made = json.loads(CliRunner().invoke(main, ["bench", "levels", "--json"]).stdout)
    assert made["rows"][0]["to_floor"] == pytest.approx(3.0)
