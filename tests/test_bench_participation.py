"""The benchmark of participation works on tiny sizes; how fast it is, it says itself."""

import json

import pytest
from click.testing import CliRunner

from raydp_sim.actors.backend import Inline
from raydp_sim.bench.contenders import Sample
from raydp_sim.bench.participation import CASES, Row, document, play, ratio
from raydp_sim.cli.bench import command
from raydp_sim.cli.shipped import shipped
from raydp_sim.cli.weeks import participation_table
from raydp_sim.scenario import load

WEEK = load(shipped()["week"])


def test_the_changes_are_what_they_say():
    week, reports, clients = (case.scenario(WEEK, share=0.1) for case in CASES)
    assert (week.population.clients, week.task.rounds) == (100_000, 100)
    assert (reports.population.clients, reports.task.rounds) == (100_000, 200)
    assert (clients.population.clients, clients.task.rounds) == (200_000, 100)
    # As many check-ins in as long a time, so as many reports: only the people are more.
    assert clients.participation.every == 2 * week.participation.every
    assert clients.participation.batch == week.participation.batch == 1000


def test_a_week_of_ours_is_a_week():
    expected = WEEK.population.clients * WEEK.population.rate() * 604_800
    reports = WEEK.task.rounds * WEEK.participation.batch
    assert expected / WEEK.participation.every == pytest.approx(reports, rel=0.02)


def test_every_case_is_measured_on_tiny_sizes():
    rows = list(play(WEEK, share=0.004, people=0.02, backend=Inline(), whole=False))
    assert [row.name for row in rows] == [case.name for case in CASES]
    assert [row.reports for row in rows] == [80, 160, 80]
    assert rows[1].days > rows[0].days and all(row.seconds.wall > 0 for row in rows)


def test_ratios_are_to_the_unchanged_part():
    rows = [
        Row("a whole week", 10, 10, 100, 7.0, Sample(30.0, 40.0)),
        Row(CASES[0].name, 10, 1, 10, 0.7, Sample(2.0, 4.0)),
        Row(CASES[1].name, 10, 2, 20, 1.4, Sample(4.0, 9.0)),
    ]
    assert ratio(rows, rows[0]) is None
    assert ratio(rows, rows[2]) == {"wall": 2.0, "cpu": 2.25}
    made = json.loads(json.dumps(document(rows, {"cpu": "some"})))
    assert made["rows"][2]["ratio"]["cpu"] == 2.25 and made["rows"][0]["ratio"] is None
    assert participation_table(rows).row_count == 3


def test_help_shows_an_example():
    shown = CliRunner().invoke(command, ["participation", "--help"])
    assert shown.exit_code == 0 and "raydp-sim bench participation" in shown.output
