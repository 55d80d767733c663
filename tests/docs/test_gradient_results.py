"""Stored figures of shuffled gradients: their page has their numbers, and claims are as stated."""

import csv
import json

import pytest

from raydp_sim.cli.shipped import shipped
from raydp_sim.figures import load
from raydp_sim.tasks.shuffled_gradients.accounting import calibrated
from raydp_sim.tasks.shuffled_gradients.plan import epochs
from tests.docs.pages import PAGES, ROOT, blocks, call, shows

FIGURES = [f"004-figure-{each}" for each in ("4.2", "C.1", "C.2", "C.3", "C.4")]
CURVES = ("private", "priv-pub", "pub-priv", "interleaved", "public-only")
PAGE = "docs/shuffled-gradients.md"


def stored(name: str) -> dict[tuple[str, str], dict[str, str]]:
    """The last rows of every panel and curve."""
    with (ROOT / "docs" / "results" / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(row["status"] == "simulated" and row["sweep"] == "epochs" for row in rows)
    return {(row["panel"], row["curve"]): row for row in rows if row["x"] == "50"}


def value(name: str, panel: str, curve: str) -> float:
    return float(stored(name)[panel, curve]["value"])


@pytest.mark.parametrize("name", FIGURES)
def test_the_page_has_the_stored_numbers(name: str) -> None:
    rows, file = stored(name), load(shipped()[f"seeds/{name}"])
    assert {panel for panel, _ in rows} == set(file.figure.panels)
    for panel in file.figure.panels:
        cells = [rows[panel, curve] for curve in CURVES]
        shown = [f"{float(c['value']):.4g} ({float(c['spread']):.2g})" for c in cells]
        assert f"| {panel} | {' | '.join(shown)} |" in PAGES[PAGE]


@pytest.mark.parametrize("name", FIGURES)
def test_stored_runs_had_the_noise_of_their_target_and_say_how_public_records_differ(name) -> None:
    rows, file = stored(name), load(shipped()[f"seeds/{name}"])
    for key, panel in file.figure.panels.items():
        fixed, problem = panel.fixed, panel.problem
        assert problem is not None and fixed.clients and fixed.rounds
        assert fixed.epsilon and fixed.delta
        for curve in CURVES[:-1]:
            plan = epochs(curve, fixed.rounds, fixed.clients, problem.share)  # type: ignore[arg-type]
            goal = (fixed.epsilon, fixed.delta, problem.gradient_clip)
            sigma = calibrated(*goal, plan, fixed.clients)
            assert f"sigma {sigma:.4f}, 10 runs; public records: " in rows[key, curve]["note"]


def test_what_holds_of_figure_4_2() -> None:
    name = "004-figure-4.2"
    found = {
        (claim.panel, claim.of, claim.over): value(name, claim.panel, claim.of)
        / value(name, claim.panel, claim.over)
        for claim in load(shipped()[f"seeds/{name}"]).claims
        if claim.panel is not None and claim.over is not None
    }
    holds = {place for place, ratio in found.items() if ratio < 1.0}
    fails = {(panel, over) for panel, _, over in found.keys() - holds}
    assert fails == {
        ("cifar-1", "public-only"),
        ("cifar-1", "priv-pub"),
        *(("crime-1", over) for over in ("private", "public-only", "priv-pub", "pub-priv")),
        ("compas-5", "public-only"),
        ("credit-5", "public-only"),
        ("cifar-5", "interleaved"),
    }


@pytest.mark.parametrize("name", FIGURES)
def test_interleaved_is_best_on_mnist_69_whatever_order_and_share(name: str) -> None:
    rows = stored(name)
    panels = [panel for panel, _ in rows if panel.startswith("mnist") or name == "004-figure-C.4"]
    assert panels or name == "004-figure-C.3"
    for panel in panels:
        others = [value(name, panel, each) for each in CURVES if each != "interleaved"]
        assert value(name, panel, "interleaved") < 0.8 * min(others)


def test_a_run_prints_what_is_shown(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    command, *_ = blocks(PAGE, "bash")
    shown, *_ = blocks(PAGE, "text")
    inline = ("--set", "placement.backend=inline", "--out", "made")
    shows(shown, call(*command.split()[1:], *inline).stdout)


def test_no_ordering_holds_for_every_shift(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = call("run", "seeds/004-shifts", "--out", "made", "--json").stdout
    verdicts = json.loads(printed)["claims"]
    assert [one["holds"] for one in verdicts] == [True, True, False, True, False, True]
    # "Seventeen times better", on the page.
    assert verdicts[2]["computed"] == pytest.approx(17.44, abs=0.5)
