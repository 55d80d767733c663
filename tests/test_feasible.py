"""What could never work is refused with exit code 2, and what nobody comes to ends by itself."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_bad_input import call, write

pytestmark = pytest.mark.timeout(60)  # none of it may hang

ASYNC = {"kind": "asynchronous", "batch": 20, "every": 60.0}
SLOW = {"kind": "pareto", "minimum": 30.0, "shape": 1.0}
BITS = {
    "population.data": {"kind": "bernoulli", "probability": 0.5},
    "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "more reports in a batch than clients": (
        {"participation": {**ASYNC, "batch": 51}},
        "participation.batch is 51; there are only 50 clients",
    ),
    "a cohort larger than the population": (
        {"participation": {"kind": "uniform", "sampled": 51}},
        "participation.sampled is 51; there are only 50 clients",
    ),
    "more asked than there are": (
        {"participation": {"kind": "over-selected", "sampled": 40, "factor": 1.5}},
        "participation.sampled is 40; 1.5 times that are 60",
    ),
    "a deadline that no report meets": (
        {"population.latency": SLOW, "participation": {"kind": "all", "deadline": 30.0}},
        "participation.deadline is 30.0; no report takes less than 30",
    ),
    "the same, asynchronously": (
        {"population.latency": SLOW, "participation": {**ASYNC, "deadline": 29.0}},
        "participation.deadline is 29.0; no report takes less than 30",
    ),
    "patience that no report meets": (
        {"population.latency": SLOW, "participation": {**ASYNC, "patience": 30.0}},
        "participation.patience is 30.0; it must be longer than",
    ),
    "rounds that wait for the lost": (
        {"population.dropout": 0.1},
        "participation.deadline is None; give one: clients drop out",
    ),
    "a least batch larger than any": (
        {"shuffle.min_batch": 21},
        "shuffle.min_batch is 21; at most 20 clients are in a batch",
    ),
    "the same, asynchronously, larger": (
        {"participation": ASYNC, "shuffle.min_batch": 21},
        "shuffle.min_batch is 21; at most 20 clients are in a batch",
    ),
    "patience shorter than the deadline": (
        {"participation": {**ASYNC, "deadline": 90.0, "patience": 80.0}},
        "participation.patience is 80.0; it must be longer than participation.deadline",
    ),
    "patience of far too many periods": (
        {"participation": {**ASYNC, "every": 0.001, "patience": 1e12}},
        "participation.patience is 1000000000000.0; each of 50 clients would check in",
    ),
    "a budget below one release": (
        {"privacy.budget": {"epsilon": 0.001, "delta": 1e-9}},
        "privacy.budget.epsilon is 0.001; one release may cost more than that",
    ),
    "too few that are not kept away": (
        {
            "population.availability": {"kind": "adversarial", "share": 0.9},
            "participation": {"kind": "all"},
            "shuffle.min_batch": 10,
        },
        "shuffle.min_batch is 10; only 5 clients can ever come",
    ),
    "a full batch of more than can come": (
        {
            "population.availability": {"kind": "adversarial", "share": 0.9},
            "participation": ASYNC,
        },
        "participation.batch is 20; only 5 clients can ever come",
    ),
    "an adversary without a measure": (
        {
            "population.availability": {"kind": "adversarial", "share": 0.1},
            "task": {"kind": "user-mean", "samples": 5, "sigma": 0.1},
            "mechanism": {"kind": "projected-mean", "radius": 1.0, "epsilon_local": 2.0},
        },
        "population.availability.kind is 'adversarial'; task 'user-mean' does not say",
    ),
    "weights on values around a centre": (
        {
            "mechanism": {
                "kind": "projected-mean",
                "radius": 1.0,
                "epsilon_local": 2.0,
                "centre": 0.5,
            },
            "participation": {**ASYNC, "staleness_exponent": 0.5},
        },
        "participation.staleness_exponent is 0.5; values around a centre cannot be weighted",
    ),
    "weights on bits": (
        {**BITS, "participation": {**ASYNC, "staleness_exponent": 0.5}},
        "participation.staleness_exponent is 0.5;",
    ),
    "weights on categories": (
        {
            "population.data": {"kind": "categorical", "categories": 4},
            "mechanism": {"kind": "krr", "categories": 4, "epsilon_local": 1.0},
            "participation": {**ASYNC, "staleness_exponent": 0.5},
        },
        "participation.staleness_exponent is 0.5;",
    ),
}
# Everyone is there for a millisecond, at the very beginning, which no round and no check-in meets.
GONE = "client,on,off\n" + "".join(f"{client},0.0001,0.0011\n" for client in range(50))
TRACES = {
    "a table that is not there": (None, "path is"),
    "one without its columns": ("client,from,to\n0,1,2\n", "on"),
    "one that is empty": ("client,on,off\n", "path is"),
    "stays that end before they begin": ("client,on,off\n0,5,2\n", "path is"),
    "stays that overlap": ("client,on,off\n0,0,9\n0,5,12\n", "path is"),
    "stays out of order": ("client,on,off\n1,0,9\n0,5,12\n", "path is"),
    "clients that do not exist": ("client,on,off\n50,0,9\n", "50"),
    "times without end": ("client,on,off\n0,0,1e308\n", "path is"),
    "words for numbers": ("client,on,off\n0,zero,9\n", "path is"),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYDP_SIM_PATH", "")


def refused(path: str, words: str) -> None:
    for command in ("validate", "run"):
        result = call(command, path)
        assert result.exit_code == 2, result.output
        assert words in result.stderr and path in result.stderr, result.stderr
        assert "Traceback" not in result.stderr
    assert not Path("runs").exists()


@pytest.mark.parametrize("case", REFUSED)
def test_a_policy_that_could_never_work_is_refused(case: str, tmp_path: Path) -> None:
    changes, words = REFUSED[case]
    refused(write(tmp_path, changes), words)


@pytest.mark.parametrize("policy", ["budget", "asynchronous"])
def test_a_protocol_of_stages_takes_neither_budgets_nor_latecomers(
    policy: str, tmp_path: Path
) -> None:
    from raydp_sim.cli.shipped import shipped

    text = shipped()["user-level-mean"].read_text()
    path = tmp_path / "staged.yaml"
    path.write_text(text)
    change = "privacy.budget={epsilon: 1.0}"
    words = "privacy.budget.epsilon is 1.0; this task has stages"
    if policy == "asynchronous":
        change = "participation={kind: asynchronous, batch: 10, every: 60.0}"
        words = "participation.kind is 'asynchronous'; this task has stages"
    result = call("run", str(path), "--set", change)
    assert result.exit_code == 2 and words in result.stderr, result.stderr


@pytest.mark.parametrize("case", TRACES)
def test_a_bad_recording_is_bad_input(case: str, tmp_path: Path) -> None:
    content, words = TRACES[case]
    if content is not None:
        (tmp_path / "stays.csv").write_text(content)
    changes = {"population.availability": {"kind": "trace", "path": "stays.csv"}}
    path = write(tmp_path, changes)
    refused(path, words)
    assert "population.availability.path" in call("validate", path).stderr


@pytest.mark.parametrize("policy", ["asynchronous", "rounds"])
def test_a_population_that_never_shows_up_ends_cleanly(policy: str, tmp_path: Path) -> None:
    (tmp_path / "stays.csv").write_text(GONE)
    changes: dict[str, Any] = {
        "population.availability": {"kind": "trace", "path": "stays.csv"},
        "shuffle.min_batch": 5,
    }
    if policy == "asynchronous":
        changes["participation"] = {**ASYNC, "patience": 600.0}
    result = call("run", write(tmp_path, changes), "--out", "made")
    assert result.exit_code == 0, result.stderr
    assert "0 of 2" in result.stdout
    assert ("ended early" in result.stdout) == (policy == "asynchronous")
    assert Path("made/summary.json").is_file()


def test_the_stress_command_takes_a_population_that_never_shows_up(tmp_path: Path) -> None:
    (tmp_path / "stays.csv").write_text(GONE)
    changes = {
        "name": "nobody",
        "population.availability": {"kind": "trace", "path": "stays.csv"},
        "participation": {**ASYNC, "patience": 600.0},
    }
    path = write(tmp_path, changes)
    result = call("stress", path, "--set", "task.rounds=2", "--out", "made")
    assert result.exit_code == 0, result.stderr
    assert "ended after 0 of 2 batches" in " ".join(result.stdout.split())
