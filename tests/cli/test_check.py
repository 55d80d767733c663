"""`raydp-sim check` from the outside."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from raydp_sim.check import MECHANISM_CHECKS, TASK_CHECKS
from raydp_sim.cli.main import main

from .test_bad_input import files, refused

BAD = "tests.check.bad"
TASKS = "tests.check.bad_tasks"


@pytest.fixture(autouse=True)
def forget_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYDP_SIM_PATH", "")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments])


def test_a_good_mechanism_passes_line_by_line() -> None:
    result = call("2rr")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    for check in MECHANISM_CHECKS:
        (line,) = (line for line in lines if line.startswith(f" {check.name} "))
        assert line.split(check.name)[1].split()[0] == "passed"
    assert f"{len(MECHANISM_CHECKS)} passed, 0 failed, 0 not applicable" in result.stdout


def test_a_bad_one_fails_with_exit_code_1_and_says_why() -> None:
    result = call(f"{BAD}:Identity")
    assert result.exit_code == 1, result.output
    assert result.stderr == "" or "checking" in result.stderr
    (line,) = (x for x in result.stdout.splitlines() if x.startswith(" sampled likelihood ratio"))
    assert "FAILED" in line and "an event has probability at least" in line
    assert "not applicable" in result.stdout and "has no method `laws`" in result.stdout


def test_a_good_task_passes_line_by_line() -> None:
    result = call(f"{TASKS}:Honest", "--set", "population.clients=23")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    for check in TASK_CHECKS:
        (line,) = (line for line in lines if line.startswith(f" {check.name} "))
        assert line.split(check.name)[1].split()[0] == "passed"
    assert "3 releases of 23 clients" in result.stdout
    assert f"{len(TASK_CHECKS)} passed, 0 failed, 0 not applicable" in result.stdout


def test_a_task_whose_values_leave_the_domain_fails_with_exit_code_1() -> None:
    result = call(f"{TASKS}:Outside", "--json")
    assert result.exit_code == 1, result.output
    found = json.loads(result.stdout)
    assert found["task"] == f"{TASKS}:Outside" and found["passed"] is False
    ((failed,),) = (
        [line for line in case["checks"] if line["status"] == "failed"] for case in found["cases"]
    )
    assert failed["check"] == "values lie in the domain"
    assert "is outside the l1 ball of radius 3" in failed["why"]


def test_the_document_has_every_case_check_and_reason() -> None:
    result = call(f"{BAD}:HalfTheNoise", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["class"] == f"{BAD}:HalfTheNoise" and found["passed"] is False
    assert [case["parameters"]["dimension"] for case in found["cases"]] == [1, 20]
    for case in found["cases"]:
        assert [line["check"] for line in case["checks"]] == [c.name for c in MECHANISM_CHECKS]
        failed = [line["check"] for line in case["checks"] if line["status"] == "failed"]
        assert failed == ["sampled likelihood ratio"]
        assert all(line["why"] for line in case["checks"])


def test_parameters_replace_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the working directory, as a user would."""
    monkeypatch.chdir(tmp_path)
    text = "from tests.check.bad import NoExamples as Base\n\n\nclass Mine(Base):\n    pass\n"
    Path("mine_checked.py").write_text(text)
    refused(call("mine_checked:Mine"), "--set", "mine_checked:Mine", "`examples`", "dimension=4")
    given = ("--set", "epsilon_local=2", "--set", "dimension=2", "--json")
    found = json.loads(call("mine_checked:Mine", *given).stdout)
    assert [case["parameters"] for case in found["cases"]] == [{"epsilon_local": 2, "dimension": 2}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["krrr"], ["CLASS is 'krrr'", "did you mean 'krr'?"]),
        (["nowhere_at_all:Thing"], ["'nowhere_at_all:Thing'", "cannot be imported"]),
        ([f"{BAD}:Nothing"], [f"'{BAD}:Nothing'", "cannot be imported", "Nothing"]),
        (["fractions:Fraction"], ["'fractions:Fraction'", "subclass", "Mechanism", "Task"]),
        ([f"{BAD}:NoDecode"], ["NoDecode has no method `decode`", "Estimate the mean"]),
        (
            [f"{BAD}:NoLossAndNoDomain"],
            ["NoLossAndNoDomain has no methods `domain`", "`event`", "write them"],
        ),
        (["meann"], ["CLASS is 'meann'", "did you mean 'mean'?", "user-mean"]),
        (
            [f"{TASKS}:NoMethods"],
            ["NoMethods has no methods `client` (Compute the values", "`step`", "`rows`"],
        ),
        (["mean", "--set", "task.rounds=0"], ["task.rounds is 0", "greater than or equal to 1"]),
        (["mean", "--set", "rounds=2"], ["rounds is 2", "not a known key"]),
        (["krr", "--set", "epsilon_local=1"], ["--set", "categories is missing"]),
        (["krr", "--set", "epsilon_local"], ["--set epsilon_local", "write it as"]),
        (["2rr", "--set", "epsilon_local=-1"], ["epsilon_local is -1", "greater than 0"]),
        (["2rr", "--set", "epsilon_local=1", "--set", "color=2"], ["color", "not a known key"]),
        ([f"{BAD}:NoKind"], ["NoKind has no `kind`", "ClassVar"]),
        (
            ["l2", "--set", "epsilon_local=2", "--set", "dimension=4", "--set", "radius=1"],
            ["--set", "clients is missing"],
        ),
        (["rbin", "--set", "epsilon_local=1"], ["--set", "no dimension", "give dimension=d"]),
    ],
)
def test_bad_input_is_refused(
    arguments: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(call(*arguments), *words)
    assert files(tmp_path) == set()


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_scenario_names_the_methods_that_a_class_lacks(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = {
        "name": "lacking",
        "population": {"clients": 10, "data": {"kind": "bernoulli", "probability": 0.5}},
        "mechanism": {"kind": f"{BAD}:NoDecode", "epsilon_local": 1.0},
        "placement": {"backend": "inline"},
    }
    Path("lacking.yaml").write_text(yaml.safe_dump(scenario))
    result = CliRunner().invoke(main, [command, "lacking.yaml"])
    refused(result, "lacking.yaml: mechanism.kind is", "NoDecode has no method `decode`")
    assert files(tmp_path) == {"lacking.yaml"}


def test_a_mechanism_that_says_nothing_of_its_error_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mse` and `laws` are optional, in a run as in a check."""
    monkeypatch.chdir(tmp_path)
    text = (
        "from raydp_sim.mechanisms.base import Mechanism\n"
        "from tests.check.bad import Response\n\n\n"
        "class Silent(Response):\n"
        "    examples = ({'epsilon_local': 2.0},)\n"
        "    mse = Mechanism.mse\n"
        "    worst_mse = Mechanism.worst_mse\n"
    )
    Path("silent.py").write_text(text)
    result = call("silent:Silent")
    assert result.exit_code == 0, result.output
    assert "Silent has no method `mse`" in result.stdout


def test_help_has_an_example() -> None:
    shown = call("--help").stdout
    assert "raydp-sim check my_module:MyMechanism" in shown
    assert "raydp-sim check my_module:MyTask" in shown
