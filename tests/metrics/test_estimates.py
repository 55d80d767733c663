"""The answer of a run: in streams, in its result, in its summary, with honest error bars."""

import numpy as np
import pytest
from scipy import stats

from raydp_sim.metrics import estimates, streams
from raydp_sim.run import answer, reopen, run
from tests.conftest import interrupted, placed_everywhere, scenario
from tests.tasks.examples import Ending

KRR = {"kind": "krr", "categories": 4, "epsilon_local": 1.0}
WORDS = {"kind": "categorical", "categories": 4}
LAPLACE = {"kind": "laplace", "radius": 1.0, "epsilon_local": 1.0}


def words(clients=200, rounds=3, **sections):
    people = {"clients": clients, "data": WORDS}
    return scenario(rounds=rounds, population=people, mechanism=KRR, **sections)


WIDE = {"dimension": 300, "clip": 0.003}  # within an l1 ball of radius 1
TASKS = {
    "histogram": {"population": {"clients": 300, "data": WORDS}, "mechanism": KRR, "repeat": 30},
    "mean": {
        "population": {"clients": 60, "data": {"kind": "gaussian", **WIDE}},
        "mechanism": LAPLACE,
        "repeat": 3,
    },
    "item-mean": {
        "population": {"clients": 60, "data": {"kind": "points", "points": 2, **WIDE}},
        "mechanism": LAPLACE,
        "task": {"kind": "item-mean", "rounds": 2, "sampled_points": 2},
        "repeat": 3,
    },
}


@pytest.mark.parametrize("name", TASKS)
def test_error_bars_cover_the_truth_as_often_as_they_say(name, tmp_path):
    """Squares of standardised errors are chi-squared, or nearly: sums of at least 120 terms.

    Every client takes part in both releases, so all that is left is noise. The coordinates of
    vectors are independent: 900 squares in one sum. Of a histogram each category has a sum of 30.
    Each of 6 sums leaves its interval with probability 1e-7 if noise is normal.
    """
    sections = {"task": {"kind": "mean", "rounds": 2}, "trust": "local", **TASKS[name]}
    result = run(scenario(**sections), out=tmp_path / "run")
    last = [(result.estimate_of(r), result.truth_of(r)) for r in range(sections["repeat"])]
    off = np.array([(one.values - true.values) / one.standard_error for one, true in last])
    if name != "histogram":
        off = off.reshape(-1, 1)
    low, high = stats.chi2.interval(1.0 - 1e-7, len(off))
    squares = (off**2).sum(axis=0)
    assert ((low < squares) & (squares < high)).all(), squares / len(off)


def test_the_error_bars_of_user_means_are_of_the_second_stage(tmp_path):
    people = {"clients": 400, "data": {"kind": "samples", "samples": 100, "mean": 0.5}}
    mechanism = {"kind": "projected-mean", "epsilon_local": 4.0, "radius": 4.0, "levels": 3}
    task = {"kind": "user-mean", "samples": 100, "sigma": 1.0}
    base = scenario(population=people, mechanism=mechanism, task=task)
    result = run(base, out=tmp_path / "run")
    rows = streams.read(tmp_path / "run" / "metrics", "estimates")
    search, mean = rows["standard_error"].to_pylist()
    assert search is None and mean == result.estimate.standard_error[0]
    # One normal draw; beyond 6 standard errors with probability 2e-9.
    assert abs(result.estimate.values[0] - result.truth.values[0]) < 6.0 * mean


def test_streams_say_what_a_reader_could_publish(tmp_path):
    result = run(words(trust="local"), out=tmp_path / "run")
    folder = tmp_path / "run" / "metrics"
    released, truth = (streams.read(folder, name) for name in ("estimates", "truth"))
    assert streams.visibility(released.schema) == "released"
    assert streams.visibility(truth.schema) == "simulation-only"
    assert released.num_rows == truth.num_rows == 3 * 4
    assert released["name"].to_pylist() == ["0", "1", "2", "3"] * 3
    last = released.slice(8)
    assert np.array_equal(np.asarray(result.estimate), last["estimate"].to_numpy())
    error = last["estimate"].to_numpy() - result.truth.values
    assert np.array_equal(truth.slice(8)["error"].to_numpy(), error)
    # All took part, so these are the whole population.
    assert np.allclose(truth["participants"].to_numpy(), truth["population"].to_numpy())
    running = float((error**2).sum())
    assert result.summary["metrics"]["running_squared_error"] == pytest.approx(running)
    section = result.summary["estimate"]
    assert section["values"] == result.estimate.values.tolist() and section["kind"] == "histogram"
    assert result.summary["truth"]["visibility"] == "simulation-only"


def test_long_estimates_are_only_in_the_streams(tmp_path, monkeypatch):
    monkeypatch.setattr(answer, "SHOWN", 3)
    summary = run(words(trust="local"), out=tmp_path / "run").summary
    assert summary["estimate"]["coordinates"] == 4 and "values" not in summary["estimate"]
    assert "truth" not in summary


def test_of_many_wide_releases_a_few_are_written_and_always_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr(estimates, "EVERY", 20)
    base = words(rounds=7, repeat=2, trust="local")
    result = placed_everywhere(base, tmp_path, stop=9)
    rows = streams.read(tmp_path / "base" / "metrics", "estimates")
    assert sorted(set(rows["release"].to_pylist())) == [0, 1, 3, 6]
    assert rows.num_rows == 2 * 4 * 4
    assert [result.estimate_of(r).release for r in (0, 1)] == [6, 6]


def test_the_last_estimate_is_written_once_however_often_a_run_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(estimates, "EVERY", 1)
    base = words(rounds=6, trust="local")
    run(base, out=tmp_path / "whole")
    run(base, out=tmp_path / "again")
    (tmp_path / "again" / "summary.json").unlink()  # as if killed just before the summary
    for _ in reopen(tmp_path / "again").play():
        pass
    one, other = (
        streams.read(tmp_path / name / "metrics", "estimates") for name in ("whole", "again")
    )
    assert one.equals(other) and one["release"].to_pylist()[-1] == 5


def test_a_run_that_its_task_ends_has_its_last_estimate_too(tmp_path, monkeypatch):
    monkeypatch.setattr(estimates, "EVERY", 1)
    kind = f"{Ending.__module__}:{Ending.__qualname__}"
    base = scenario(task={"kind": kind, "rounds": 9, "stop": 3}, trust="local")
    assert run(base, out=tmp_path / "run").estimate.release == 2
    interrupted(base, tmp_path / "part", 2)
    made = reopen(tmp_path / "part")
    for _ in made.play():
        pass
    assert np.array_equal(
        made.result.estimate.values, estimates.last_estimate(tmp_path / "run" / "metrics").values
    )
