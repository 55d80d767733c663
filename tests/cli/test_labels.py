"""`raydp-sim labels`: from runs of teachers to a table, by way of a file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.run import run
from tests.tasks.ensembles.test_label_transfer import transfer


@pytest.fixture(scope="module")
def teachers(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    run(transfer(), out=folder / "toy-private")
    gnmax = {"kind": "gnmax", "epsilon": 1.0, "delta": 1e-7}
    open_ones = {**transfer().document()["task"], "noise_multiplier": 0.0}
    run(transfer(open_ones, gnmax), out=folder / "toy-open")
    return folder


def labels(*words):
    return CliRunner().invoke(main, ["labels", *map(str, words)])


def test_a_file_says_what_the_runs_say(teachers: Path) -> None:
    runs, file = [teachers / "toy-private", teachers / "toy-open"], teachers / "toy.csv"
    from_runs = labels(*runs, "--csv", file, "--json")
    assert from_runs.exit_code == 0, from_runs.output
    assert json.loads(labels(file, "--json").output) == json.loads(from_runs.output)
    lines = {
        (line["setting"], line["way"], line["m"]): line for line in json.loads(from_runs.output)
    }
    summary = json.loads((runs[0] / "summary.json").read_text())["metrics"]
    majority = lines["toy-private", "majority", None]["accuracy"]
    assert majority == pytest.approx(summary["majority_accuracy"])
    assert lines["toy-private", "optimised", 7]["accuracy"] == pytest.approx(majority)
    assert ("toy-open", "gnmax", 3) in lines
    shown = labels(file).output
    assert "toy-open" in shown and "subsampling" in shown


def test_bad_input_ends_with_exit_code_2(teachers: Path) -> None:
    other = teachers / "other.csv"
    other.write_text("a,b\n1,2\n")
    for words, says in (
        ([other], "not written by"),
        ([teachers / "none.csv"], "cannot be read"),
        ([teachers / "toy-open"], "give a run of private teachers too"),
    ):
        found = labels(*words)
        assert found.exit_code == 2 and says in " ".join(found.output.split())
