"""The benchmark of bandits works on tiny sizes; how fast it is, it says itself."""

import json
import math

import numpy as np
from click.testing import CliRunner

from raydp_sim.actors.backend import Inline
from raydp_sim.bench.bandits import FLOOR, Row, actors, document, fast, growth_of
from raydp_sim.bench.contenders import Floor, Sample
from raydp_sim.cli.bench import command
from raydp_sim.cli.bench_bandits import bandit_table
from tests import bandit_floors


def test_the_simulation_is_measured_beside_its_floor() -> None:
    floor = Floor(FLOOR)
    try:
        rows = list(fast(floor, rounds=1000, actions=5))
    finally:
        floor.stop()
    assert [row.name.split(",")[1] for row in rows] == [" central", " shuffle", " shuffle"]
    assert all(row.seconds.wall > 0.0 and row.floor.wall > 0.0 for row in rows)
    assert all(0 < row.reports <= 1000 and row.met for row in rows)


def test_runs_on_actors_are_measured_to_the_commitment() -> None:
    floor = Floor(FLOOR)
    try:
        rows = list(actors(floor, Inline(), (300, 900)))
    finally:
        floor.stop()
    assert [row.rounds for row in rows] == [300, 900]
    assert [row.goal for row in rows] == [None, 60.0]
    for row in rows:
        assert row.seconds.wall > row.floor.wall > 0.0
        assert row.rounds / 4 < row.reports <= row.rounds
    assert math.isfinite(growth_of(rows))


def test_the_floor_does_the_same_draws() -> None:
    """Mean sums of 400 runs within 6 standard errors of the rewards' means: alarm below 1e-7."""
    for made, means, each in (
        (bandit_floors.reports(12), np.array([0.6, 0.2]), np.array([5, 4])),
        (bandit_floors.sums(12), np.full(3, 0.2), np.full(3, 3)),
    ):
        drawn = np.array([made() for _ in range(400)])
        spread = drawn.std(axis=0, ddof=1) / 20.0
        assert (np.abs(drawn.mean(axis=0) - each * means) < 6.0 * spread).all()


def test_the_table_says_which_goals_are_met() -> None:
    rows = [
        Row("one", 10, 5, Sample(1.0, 2.0), Sample(0.1, 0.2), 2.0),
        Row("two", 10, 5, Sample(3.0, 2.0), Sample(0.1, 0.2), 2.0),
        Row("three", 10, 5, Sample(3.0, 2.0), Sample(0.1, 0.2), None),
    ]
    assert [row.met for row in rows] == [True, False, None]
    made = json.loads(json.dumps(document(rows, {"cpu": "some"})))
    assert [row["met"] for row in made["rows"]] == [True, False, None]
    assert made["rows"][0]["seconds"] == {"wall": 1.0, "cpu": 2.0}
    goals = list(bandit_table(rows).columns[-1].cells)
    assert goals == ["< 2 yes", "< 2 NO", ""]


def test_help_shows_an_example() -> None:
    shown = CliRunner().invoke(command, ["bandits", "--help"])
    assert shown.exit_code == 0 and "raydp-sim bench bandits" in shown.output
