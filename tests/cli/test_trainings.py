"""`raydp-sim trainings`: what runs of several settings came to."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.cli.shipped import shipped
from raydp_sim.metrics.panels import BLUE
from raydp_sim.metrics.trainings import Outcome, _against_bits, draw
from raydp_sim.run.play import run
from raydp_sim.scenario import parse

ALONE = {
    "task": {"kind": "local-only", "rounds": 1},
    "mechanism": {"kind": "2rr", "epsilon_local": 1e-6},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trainings")
    for seed in (1, 2):
        few = {"task__rounds": 2, "seed": seed, "placement__backend": "inline"}
        run(shipped()["learning/digits"], out=folder / f"digits-{seed}", **few)
    run(
        shipped()["learning/e4-standin"],
        out=folder / "own-1",
        task__rounds=1,
        placement__backend="inline",
        population__data__points=50,
        population__data__personal_validation=10,
    )
    return [str(folder / name) for name in ("digits-1", "digits-2", "own-1")]


def call(*words):
    return CliRunner().invoke(main, ["trainings", *map(str, words)])


def test_runs_of_one_setting_are_shown_together(trained, tmp_path):
    words = ["--csv", tmp_path / "t.csv", "--plot", tmp_path / "t.png", "--json"]
    found = call(*trained, *words)
    assert found.exit_code == 0, found.stderr
    digits, own = json.loads(found.stdout)
    ends = [json.loads((Path(run) / "summary.json").read_text()) for run in trained]
    accuracies = [end["metrics"]["test_accuracy"] for end in ends[:2]]
    assert (digits["setting"], digits["runs"], digits["bits"]) == ("digits", 2, 64 * 650)
    assert digits["accuracy"] == pytest.approx(sum(accuracies) / 2)
    assert digits["epsilon"] == max(end["privacy"]["epsilon"] for end in ends[:2])
    assert own["accuracy"] == ends[2]["metrics"]["personal_accuracy"]
    assert own["alone"] == ends[2]["metrics"]["alone_accuracy"]
    assert (tmp_path / "t.png").stat().st_size > 10_000
    shown = call(*trained).stdout
    assert "mean of 2 runs" in shown and "gaussian-steps" in shown
    assert call(tmp_path / "t.csv").stdout == shown


def test_choices_are_shown_by_the_samples_that_they_are_made_by(trained, tmp_path):
    *_, own = trained
    (found,) = json.loads(
        call(own, "--of", "validation", "--csv", tmp_path / "v.csv", "--json").stdout
    )
    summary = json.loads((Path(own) / "summary.json").read_text())
    end = summary["metrics"]
    assert found["accuracy"] == end["personal_validation_accuracy"] != end["personal_accuracy"]
    assert found["alone"] == end["alone_validation_accuracy"]
    assert "not accounted for" in summary["learning"]["personal_validation"]
    (stored,) = json.loads(call(tmp_path / "v.csv", "--json").stdout)
    assert stored == found
    (common,) = json.loads(call(trained[0], "--of", "validation", "--json").stdout)
    end = json.loads((Path(trained[0]) / "summary.json").read_text())["metrics"]
    assert common["accuracy"] == end["validation_accuracy"] != end["test_accuracy"]
    few = {"task__rounds": 1, "placement__backend": "inline"}
    kept = {"population__data__points": 50, "population__data__personal_validation": 10}
    local = parse({**yaml.safe_load(shipped()["learning/e4-standin"].read_text()), **ALONE})
    run(local, out=tmp_path / "alone-1", **few, **kept)
    (alone,) = json.loads(call(tmp_path / "alone-1", "--of", "validation", "--json").stdout)
    assert alone["accuracy"] is None and 0.0 < alone["alone"] <= 1.0
    # The common model is not what a run with personal models is about.
    split = {"population__data__validation": 100}
    run(shipped()["learning/e4-standin"], out=tmp_path / "own-1", **few, **split)
    refused = call(tmp_path / "own-1", "--of", "validation")
    assert refused.exit_code == 2 and "personal_validation" in refused.stderr
    none = {"task__rounds": 1, "placement__backend": "inline", "population__data__validation": 0}
    run(shipped()["learning/digits"], out=tmp_path / "none-1", **none)
    refused = call(tmp_path / "none-1", "--of", "validation")
    assert refused.exit_code == 2 and "population.data.validation" in refused.stderr


def test_a_picture_is_drawn_of_many_epsilons_and_of_one_setting(tmp_path):
    known = {"rounds": 1, "withheld": 0.0, "epsilon_local": 1.0, "planned": 1.0, "alone": None}
    rows = [
        Outcome(
            setting="a", mechanism="b", bits=2**n, epsilon=n, accuracy=0.5, spread=None, runs=1,
            **known,
        )
        for n in range(1, 7)
    ]  # fmt: skip
    for name, some in (("many", rows), ("one", rows[:1])):
        draw(some, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_a_picture_tells_mechanisms_of_one_length_and_shortened_runs_apart():
    from matplotlib.figure import Figure

    def came(mechanism, rounds, accuracy, bits=15):
        known = {"withheld": 0.0, "epsilon_local": 1.0, "planned": 1.0, "epsilon": 1.0}
        more = {"spread": None, "alone": None, "runs": 1}
        return Outcome("s", mechanism, rounds, bits=bits, accuracy=accuracy, **known, **more)

    axis = Figure().subplots()
    shown = [came("rinf", 9, 0.8), came("vqsgd", 3, 0.9), came("linf", 9, 0.95, bits=64)]
    _against_bits(axis, shown)
    assert {text.get_text() for text in axis.texts} == {
        "rinf (circles)", "vqsgd (squares)", "linf",
    }  # fmt: skip
    assert axis.get_legend_handles_labels()[1] == ["epsilon 1, 9 rounds", "fewer rounds"]
    dots = {
        (line.get_marker(), line.get_mfc()) for line in axis.lines if len(line.get_xdata()) == 1
    }
    assert ("s", "white") in dots and ("o", BLUE) in dots
    (line,) = [line for line in axis.lines if len(line.get_xdata()) > 1]
    assert list(line.get_ydata()) == [0.8, 0.95], "what is shortened is no part of the line"


def test_what_trained_nothing_is_refused(tmp_path, trained):
    plain = tmp_path / "plain"
    run("scenarios/quickstart.yaml", out=plain, placement__backend="inline", task__rounds=2)
    refused = call(plain)
    assert refused.exit_code == 2 and "trained nothing" in refused.stderr
    (plain / "summary.json").unlink()
    refused = call(plain)
    assert refused.exit_code == 2 and "resume" in refused.stderr
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    refused = call(tmp_path / "other.csv")
    assert refused.exit_code == 2 and "was not written by" in refused.stderr
    assert call(tmp_path / "none.csv").exit_code == 2
    refused = call(*trained, "--csv", tmp_path / "nowhere" / "t.csv")
    assert refused.exit_code == 2 and "it cannot be written" in refused.stderr
