"""The benchmark works: what it does, on tiny sizes; how fast it is, is for the benchmark to say."""

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from raydp_sim.actors.backend import Inline
from raydp_sim.bench import contenders
from raydp_sim.bench.cases import CASES
from raydp_sim.bench.contenders import FLOORS, Floor, Pipeline, Sample, tree_cpu
from raydp_sim.bench.pipeline import Result, document, play
from raydp_sim.cli.bench import command, notes, table
from raydp_sim.errors import InputError
from raydp_sim.privacy.ledger import store
from tests import floors


def result(name="a", actors=(0.02, 0.03), floor=(0.01, 0.01), pss=1 << 30, inline=0.05):
    made = Result(CASES[name], 10, pss=pss)
    made.samples = {
        "actors": [Sample(*actors)] * 3,
        "inline": [Sample(inline, 0.05)] * 3,
        "floor": [Sample(*floor), Sample(*floor), Sample(9.0, 9.0)],
    }
    return made


def test_ratios_are_of_medians_and_goals_follow():
    good = result(actors=(0.005, 0.008))
    assert good.rate("actors") == pytest.approx(2.0) and good.cpu("actors") == pytest.approx(0.8)
    assert good.met() == {"rate": True, "cpu": True, "pss": True}
    assert result(actors=(0.03, 0.04), pss=3 << 30).met() == dict.fromkeys(
        ("rate", "cpu", "pss"), False
    )
    assert result("d").met() == {"actors": False}
    assert result("e", actors=(0.011, 0.02), inline=0.0031).met() == {
        "actors": True,
        "inline": False,
    }
    assert result("e", actors=(0.013, 0.02), inline=0.003).met() == {
        "actors": False,
        "inline": True,
    }


def test_the_table_and_the_document_hold_every_contender():
    results = [result("a"), result("d"), result("e", inline=0.0025)]
    assert table(results).row_count == 9
    assert any("1.00 GiB (goal < 2: met)" in line for line in notes(results))
    small = next(line for line in notes(results) if line.startswith("(e)"))
    assert "inline 2.50 ms a round (goal <= 3: met)" in small
    assert "actors 20.00 ms a round (goal <= 12: NOT met)" in small
    cases = json.loads(json.dumps(document(results)))["cases"]
    assert set(cases[0]["seconds_per_round"]) == {"actors", "inline", "floor"}
    assert cases[0]["pss_bytes"] == 1 << 30


@pytest.mark.parametrize("name", list(CASES))
def test_inline_plays_every_case_in_segments(name, tmp_path):
    pipeline = Pipeline(CASES[name].scenario("inline", 12), Inline(), tmp_path, lambda: 0.0)
    assert pipeline.play(2).wall > 0.0
    assert pipeline.play(1).cpu == 0.0
    rows = []
    pipeline.advance(2, lambda: rows.append(None))
    assert len(rows) == 2
    assert store.read(tmp_path / "ledger")["release"].to_pylist() == [0, 1, 2, 3, 4]


def test_the_floor_answers_every_case():
    floor = Floor()
    try:
        for case in CASES.values():
            if "floor" in case.contenders:
                assert floor.play(case.floor_name, 50, 2).wall > 0.0
    finally:
        floor.stop()
    assert floor.process.returncode is not None


def test_the_floor_runs_by_hand_and_imports_nothing_of_ours():
    script = (
        "import runpy, sys; sys.argv = ['floors.py', 'd']; "
        f"runpy.run_path({str(FLOORS)!r}, run_name='__main__'); "
        "assert 'raydp_sim' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("d: ")


@pytest.mark.parametrize(("make", "dimension"), [(floors.linf, 8), (floors.l2, 16)])
def test_the_floors_of_vectors_estimate_the_mean(make, dimension, monkeypatch):
    """The floor is honest only if it solves the problem; 6 standard errors, 16 coordinates."""
    clients, rounds = 2000, 200
    shift = np.linspace(-0.2, 0.2, dimension)

    class Shifted(np.random.Generator):
        def standard_normal(self, size):
            return 0.1 * super().standard_normal(size) + shift

    monkeypatch.setattr(np.random, "Generator", Shifted)
    play_one = make(clients, dimension)
    estimates = np.array([play_one() for _ in range(rounds)])
    error = estimates.mean(axis=0) - shift
    deviation = estimates.std(axis=0) / np.sqrt(rounds) + 0.1 / np.sqrt(clients)
    assert (np.abs(error) < 6 * deviation).all()


def test_the_floor_of_bits_estimates_the_mean():
    """Data of mean 0.3, 100,000 clients; 8 standard errors of the sum of both."""
    assert abs(floors.randomized_response(100_000)()[0] - 0.3) < 8 * (0.0031 + 0.0015)


def test_the_floor_of_levels_estimates_shares_at_every_level():
    estimates = floors.levels(100_000, categories=4, epsilons=3)()
    # Means of 100,000 numbers of at most 1.4: off by 0.03 with probability below 1e-18.
    assert estimates.shape == (3, 4) and np.abs(estimates - 0.25).max() < 0.03


def test_missing_floors_are_bad_input(monkeypatch, tmp_path):
    monkeypatch.setattr(contenders, "FLOORS", tmp_path / "floors.py")
    with pytest.raises(InputError, match="floors"):
        next(play([CASES["a"]]))


def test_the_clock_counts_children_but_not_the_floor():
    burn = "t = __import__('time').process_time\nwhile t() < 0.3: pass\ninput()"
    child = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE)
    try:
        deadline = tree_cpu(without=0)
        while deadline() - tree_cpu(without=child.pid)() < 0.2:
            assert child.poll() is None
    finally:
        child.kill()
        child.communicate()


def test_help_shows_an_example():
    shown = CliRunner().invoke(command, ["pipeline", "--help"])
    assert shown.exit_code == 0 and "raydp-sim bench pipeline --case a --json" in shown.output


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["a", pytest.param("d", marks=pytest.mark.long)])
def test_all_three_take_turns(name, ray_session):
    (done,) = play([CASES[name]], segments=2, clients=6, rounds=2)
    assert {who: len(samples) for who, samples in done.samples.items()} == {
        "actors": 2,
        "inline": 2,
        "floor": 2,
    }
    assert (done.pss > 0) == (name == "a")
