"""Figures from the outside: commands, what they leave behind, and what they refuse."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from raydp_sim.cli.main import main
from raydp_sim.errors import InputError
from raydp_sim.figures import load, play

SMALL: dict[str, Any] = {
    "name": "small",
    "figure": {
        "panels": {
            "a": {
                "quantity": "rdp",
                "sweep": "alpha",
                "values": [2, 5],
                "fixed": {"epsilon0": 1.0, "clients": 100},
                "curves": ["upper1", "lower"],
            },
            "b": {
                "quantity": "epsilon",
                "sweep": "rounds",
                "values": [1, 10],
                "fixed": {"epsilon0": 1.0, "clients": 1000, "delta": 1e-6},
                "curves": ["rdp-upper1", "fmt_numeric+kov"],
            },
        }
    },
    "claims": [
        {
            "claim": "ours is smaller",
            "printed": 1,
            "sense": "below",
            "panel": "a",
            "compute": "ratio",
            "of": "lower",
            "over": "upper1",
            "at": 2,
            "why": "it is a lower bound",
        }
    ],
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYDP_SIM_PATH", "")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def written(document: dict[str, Any] = SMALL) -> str:
    Path("small.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return "small.yaml"


def test_run_computes_a_figure_and_leaves_a_whole_directory() -> None:
    result = call("run", written(), "--out", "made")
    assert result.exit_code == 0, result.stderr
    for word in ("claim", "seed", "here", "holds", "why", "ours is smaller", "< 1", "yes"):
        assert word in result.stdout
    assert "CPU time" in result.stdout
    assert "panel a: 4 values" in result.stderr
    made = Path("made")
    found = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    tables = {"figure/a.parquet", "figure/b.parquet", "figure/all.csv"}
    assert found == {"scenario.yaml", "plot.png", "summary.json", *tables}
    assert load(made / "scenario.yaml") == load("small.yaml")


def test_json_is_the_summary() -> None:
    result = call("run", written(), "--out", "made", "--json")
    document = json.loads(result.stdout)
    assert document == json.loads(Path("made/summary.json").read_text())
    assert set(document) >= {"scenario", "claims", "timing", "provenance", "run_dir"}
    assert set(document["claims"][0]) >= {"claim", "printed", "computed", "holds", "why"}


def test_nothing_is_overwritten() -> None:
    assert call("run", written(), "--out", "made").exit_code == 0
    again = call("run", "small.yaml", "--out", "made")
    assert again.exit_code == 2
    assert "already exists" in again.stderr


def test_without_out_every_figure_gets_a_directory_of_its_own() -> None:
    for _ in range(2):
        play(SMALL)
    assert len(list(Path("runs").iterdir())) == 2


def test_set_reaches_a_panel() -> None:
    options = ("--set", "figure.panels.a.values=[3]", "--out", "made")
    assert call("run", written(), *options).exit_code == 0
    saved = yaml.safe_load(Path("made/scenario.yaml").read_text())
    assert saved["figure"]["panels"]["a"]["values"] == [3.0]


def test_a_silent_bound_leaves_a_hole_with_its_reason(tmp_path: Path) -> None:
    document = deepcopy(SMALL)
    document["figure"]["panels"]["a"]["curves"] = ["upper1", "lower", "simple"]
    document["figure"]["panels"]["a"]["values"] = [50]
    rows = play(document, tmp_path / "made").tables["a"].to_pylist()
    (hole,) = (row for row in rows if row["curve"] == "simple")
    assert hole["value"] is None
    assert hole["note"]


def test_validate_list_and_resume_know_figures() -> None:
    assert call("validate", written(), "seeds/000-figure-5.2").exit_code == 0
    rows = {row["name"]: row for row in json.loads(call("list", "--json").stdout)}
    assert rows["seeds/002-figure-5"]["clients"] is None
    assert "seeds/002-figure-5" in call("list").stdout
    call("run", "small.yaml", "--out", "made")
    again = call("resume", "made")
    assert again.exit_code == 2
    assert "raydp-sim run made/scenario.yaml" in again.stderr


def changed(path: str, value: Any) -> dict[str, Any]:
    document = deepcopy(SMALL)
    *keys, last = path.split(".")
    place: Any = document
    for key in keys:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[last] = value
    return document


BAD = [
    ("figure.panels.a.curves", ["uper1"], ["figure.panels.a.curves is 'uper1'", "upper1"]),
    ("figure.panels.a.curves", ["upper"], ["'upper'", "not proved for Shuffle"]),
    ("figure.panels.b.curves", ["rdp-subsampled"], ["'rdp-subsampled'", "not proved for Shuffle"]),
    ("figure.panels.b.curves", ["upper1"], ["figure.panels.b.curves is 'upper1'", "rdp-upper1"]),
    ("figure.panels.a.values", [2.5], ["figure.panels.a.values is 2.5", "whole orders"]),
    ("figure.panels.a.values", [], ["figure.panels.a.values", "at least 1"]),
    ("figure.panels.a.values", [-2], ["figure.panels.a.values.0 is -2", "greater than 0"]),
    ("figure.panels.b.values", [1.5], ["figure.panels.b.values is 1.5", "whole"]),
    ("figure.panels.b.curves", ["balle"], ["'balle'", "single shuffle"]),
    ("figure.panels.a.fixed.alpha", 3, ["figure.panels.a.fixed.alpha is 3", "sweeps alpha"]),
    ("figure.panels.a.fixed.delta", 0.1, ["figure.panels.a.fixed.delta is 0.1", "remove it"]),
    ("figure.panels.a.fixed.clients", 0, ["figure.panels.a.fixed.clients is 0"]),
    ("figure.panels.a.fixed", {"epsilon0": 1}, ["figure.panels.a.fixed.clients is missing"]),
    ("figure.panels.a.fixed.sampled", 200, ["fixed.sampled is 200", "from 1 to 100"]),
    ("figure.panels.a.values", [1e9], ["figure.panels.a.values is 1000000000.0", "at most 1e+07"]),
    ("figure.panels.a.fixed.epsilon0", 1e3, ["fixed.epsilon0 is 1000.0", "at most 100"]),
    ("figure.panels.a.sweep", "order", ["figure.panels.a.sweep is 'order'"]),
    ("figure.panels.a.curve", "x", ["figure.panels.a.curve is 'x'", "did you mean 'curves'"]),
    ("figure.panels", {}, ["figure.panels"]),
    ("figure.labels", {"upper2": "x"}, ["figure.labels.upper2", "no panel"]),
    ("figure", 3, ["figure is 3"]),
    ("claims.0.panel", "z", ["claims.0.panel is 'z'", "a, b"]),
    ("claims.0.of", "uper1", ["claims.0.of is 'uper1'", "upper1"]),
    ("claims.0.over", None, ["claims.0.over is None", "second curve"]),
    ("claims.0.at", None, ["claims.0.at is None", "place"]),
    ("claims.0.at", 2.5, ["claims.0.at is 2.5", "whole orders"]),
    ("claims.0.compute", "reached", ["claims.0"]),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD)
def test_bad_input_names_field_value_and_remedy(path: str, value: Any, words: list[str]) -> None:
    result = call("run", written(changed(path, value)), "--out", "made")
    assert result.exit_code == 2, result.output
    for word in ("small.yaml: ", *words):
        assert word in result.stderr
    assert not Path("made").exists()
    assert call("validate", "small.yaml").exit_code == 2


@pytest.mark.parametrize("option", [("--seed", "3"), ("--address", "auto")])
def test_options_of_simulations_are_refused(option: tuple[str, str]) -> None:
    result = call("run", written(), *option)
    assert result.exit_code == 2
    assert f"{option[0]} is" in result.stderr


def test_a_simulation_is_not_a_figure() -> None:
    with pytest.raises(InputError, match="figure is missing"):
        load({"name": "x"})


def test_a_ratio_over_no_panel_is_refused() -> None:
    document = changed("claims.0.compute", "largest-ratio")
    del document["claims"][0]["panel"], document["claims"][0]["at"]
    document["claims"][0]["of"] = "upper2"
    with pytest.raises(InputError, match=r"claims\.0\.of is 'upper2'; no panel has both"):
        load(document)
