"""The comparison with other simulators: all that needs none of them."""

import ast
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from raydp_sim.bench import peers
from raydp_sim.bench.contenders import Sample
from raydp_sim.bench.peers import OURS, PEERS, SCRIPTS, Contender, Peer, Result
from raydp_sim.bench.training import CASES
from raydp_sim.cli.bench import command
from raydp_sim.cli.bench_peers import peers_table, remarks
from raydp_sim.errors import InputError, RunError
from raydp_sim.scenario import setting_of

# Plays in a process below it, whose CPU-seconds count too.
OBEDIENT = """
import json, subprocess, sys
spin = "import time\\nwhile time.process_time() < {}: pass\\ninput()"
below = subprocess.Popen([sys.executable, "-c", spin.format(0.5)], stdin=subprocess.PIPE)
print(json.dumps({"it": sys.argv[1]}), flush=True)
for line in sys.stdin:
    print(json.dumps({"rounds": int(line)}), flush=True)
below.communicate(b"\\n")
"""
FAKE = Peer("fake", "none.py", ("nothing",), 3)


def started(tmp_path: Path, code: str) -> Contender:
    return Contender(FAKE, [sys.executable, "-c", code, "1.0"], tmp_path / "fake.log")


def test_a_contender_answers_and_counts_all_of_its_processes(tmp_path: Path) -> None:
    made = started(tmp_path, OBEDIENT)
    try:
        assert made.versions == {"it": "1.0"}
        while made.cpu() < 0.2:  # that the process below it spins
            pass
        first, second = made.play(4), made.play(1)
        assert first.wall > 0.0 and min(first.cpu, second.cpu) >= 0.0
    finally:
        made.stop()
    assert made.process.poll() == 0 and made.cpu() >= 0.2


def test_contenders_take_turns_and_the_first_is_not_counted(tmp_path: Path) -> None:
    made, said = started(tmp_path, OBEDIENT), []
    try:
        (result,) = peers._turns([made], 100, said.append, 2)
    finally:
        made.stop()
    assert said == ["warming up", "segment 1 of 2", "segment 2 of 2"]
    assert len(result.samples) == 2 and result.versions == {"it": "1.0"}


def test_one_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"fake ended with exit code 1: NameError: .*fake\.log"):
        started(tmp_path, "nonsense")
    lazy = started(tmp_path, OBEDIENT.replace("int(line)", "0"))
    try:
        with pytest.raises(RunError, match=r"fake played .*0} instead of 3 rounds"):
            lazy.play(3)
    finally:
        lazy.stop()


def test_rates_are_of_the_median_round() -> None:
    ours = Result("ours", 100, {"a": "1"}, [Sample(0.1, 0.2), Sample(0.2, 0.4), Sample(0.9, 0.9)])
    other = Result("other", 100, {"b": "2", "c": "3"}, [Sample(2.0, 1.0)])
    assert ours.median == Sample(0.2, 0.4)
    assert (ours.updates, ours.updates_per_cpu) == (pytest.approx(500.0), pytest.approx(250.0))
    table = peers_table([ours, other])
    cells = [list(column.cells) for column in table.columns]
    assert cells[1] == ["500", "50"] and cells[2] == ["1", "10"] and cells[4] == ["1", "2.5"]
    assert remarks([ours, other])[-1] == "other: b 2, c 3"
    made = json.loads(json.dumps(peers.document([ours, other], {"cpu": "some"})))
    assert made["rows"][1]["updates_per_second"] == pytest.approx(50.0)
    assert made["workload"] == CASES[peers.CASE].title


def test_a_missing_environment_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no pfl/bin/python: make it with `raydp-sim"):
        peers.play(tmp_path, ["pfl"])
    shown = CliRunner().invoke(command, ["peers", "--environments", str(tmp_path)])
    assert isinstance(shown.exception, InputError) and "no flower/bin" in str(shown.exception)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_installed_says_why(tmp_path: Path) -> None:
    wrong = Peer("wrong", "none.py", ("--no-such-option-of-pip",), 1)
    with pytest.raises(RunError, match=r"wrong cannot be installed into .*: .*no such option"):
        peers.install(tmp_path, wrong)
    assert not (tmp_path / "wrong" / "installed").exists()
    (tmp_path / "wrong" / "installed").touch()
    peers.install(tmp_path, wrong)  # is there, so nothing is done


def test_everyone_is_given_the_workload_of_the_training_benchmark() -> None:
    case = CASES[peers.CASE]
    scenario = case.scenario()
    clients, cohort, points, pixels, classes = map(int, peers._arguments(case))
    assert (clients, cohort) == (scenario.population.clients, scenario.participation.sampled)
    assert scenario.population.data.points == points
    # One weight and no more for each pixel and class, and a bias.
    assert setting_of(scenario).mechanism.domain.width == (pixels + 1) * classes == 7850
    assert scenario.task.steps == 1 and scenario.task.batch is None


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_scripts_are_there_and_know_nothing_of_ours(peer: Peer) -> None:
    for path in (SCRIPTS / peer.script, *SCRIPTS.glob(f"{peer.name}_clients.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not str(node.module).startswith("raydp_sim")
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("raydp_sim") for alias in node.names)


def test_peers_see_none_of_our_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert "PYTHONPATH" not in peers._environment(FAKE)
    assert peers._environment(OURS)["PYTHONPATH"] == "/somewhere"
    assert peers._environment(FAKE)["OMP_NUM_THREADS"] == "1"


def test_help_shows_an_example() -> None:
    shown = CliRunner().invoke(command, ["peers", "--help"])
    assert shown.exit_code == 0 and "raydp-sim bench peers --install" in shown.output
