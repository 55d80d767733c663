"""`raydp-sim curves`: what training runs had reached, at which epsilon."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.cli.shipped import shipped
from raydp_sim.metrics.curves import read_csv
from raydp_sim.run.play import run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curves")
    for seed in (1, 2):
        out, few = folder / f"digits-{seed}", {"task__rounds": 10, "seed": seed}
        few["task__evaluate_every"] = 5
        run(shipped()["learning/digits"], out=out, placement__backend="inline", **few)
    return [str(folder / f"digits-{seed}") for seed in (1, 2)]


def call(*words):
    return CliRunner().invoke(main, ["curves", *map(str, words)])


def test_the_table_has_the_mean_of_the_runs(trained, tmp_path):
    words = ["--at", "8.0=0.8", "--at", "1000", "--csv", tmp_path / "c.csv"]
    found = call(*trained, *words, "--plot", tmp_path / "c.png", "--json")
    assert found.exit_code == 0, found.stderr
    document = json.loads(found.stdout)
    rows = [json.loads((Path(folder) / "summary.json").read_text()) for folder in trained]
    ends = [row["metrics"]["test_accuracy"] for row in rows]
    assert document["end"]["accuracy"] == pytest.approx(sum(ends) / 2)
    assert document["end"]["epsilon"] == rows[0]["privacy"]["epsilon"]
    assert document["end"]["runs"] == 2 and document["end"]["round"] == 10
    assert document["at"]["1000"] is None and document["at"]["8"]["epsilon_seed"] <= 8.0
    assert read_csv(tmp_path / "c.csv").num_rows == 2 * 2
    assert (tmp_path / "c.png").stat().st_size > 10_000
    shown = call(*trained, *words).stdout
    assert "not reached" in shown and "Mean of 2 runs" in shown
    assert call(tmp_path / "c.csv", *words[:4]).stdout == shown


def test_what_trains_nothing_has_no_curves(tmp_path, trained):
    plain = tmp_path / "plain"
    run("scenarios/quickstart.yaml", out=plain, placement__backend="inline", task__rounds=2)
    refused = call(plain)
    assert refused.exit_code == 2 and "no stream `learning`" in refused.stderr
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    refused = call(tmp_path / "other.csv")
    assert refused.exit_code == 2 and "was not written by" in refused.stderr
    assert call(tmp_path / "none.csv").exit_code == 2
    refused = call(*trained, "--csv", tmp_path / "nowhere" / "c.csv")
    assert refused.exit_code == 2 and "it cannot be written" in refused.stderr
    refused = call(*trained, "--at", "much")
    assert refused.exit_code == 2 and "--at is 'much'" in refused.stderr
