"""The scenarios that ship: one bandit in three trust models and under three kinds of stress."""

from pathlib import Path
from typing import Any

import pytest

from raydp_sim.cli.shipped import shipped
from raydp_sim.metrics import streams
from raydp_sim.run import run
from raydp_sim.scenario import Scenario, load, parse
from tests.docs.pages import PAGES

PAGE = PAGES["docs/bandits.md"]
STRESS = ("steady", "half-dropout", "night-drought")
MODELS = ("central", "shuffle", "local")


def scenario(name: str) -> Scenario:
    return load(shipped()[f"bandits/{name}"])


def played(name: str, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    found = run(scenario(name), out=folder / name).summary
    return found, streams.read(folder / name / "metrics", "releases").to_pylist()


def shown(name: str, found: dict[str, Any], *more: str) -> str:
    """Return a row of the page's tables."""
    bandit = found["bandit"]
    numbers = (f"{found['metrics']['regret']:,.0f}", f"{bandit['certificate']:,.0f}")
    return " | ".join(
        ("|", name, *numbers, f"{bandit['radius']:.3f}", str(bandit["active"]), *more, "|")
    ).replace("| |", "|")


def test_less_trust_costs_more_regret(tmp_path: Path) -> None:
    """The same clients, actions and epsilon; only trust differs."""
    files = [scenario(f"ten-actions-{model}") for model in MODELS]
    assert len({(str(file.population), str(file.task)) for file in files}) == 1
    regret = []
    for model in MODELS:
        found, _ = played(f"ten-actions-{model}", tmp_path)
        assert found["privacy"]["epsilon"] == pytest.approx(1.0)
        assert found["bandit"]["action"] == 0
        assert found["metrics"]["regret"] <= found["bandit"]["certificate"]
        regret.append(found["metrics"]["regret"])
        alone = found["privacy"]["epsilon_local"]
        assert shown(model, found, "none" if alone is None else f"{alone:.2f}") in PAGE
    central, shuffle, local = regret
    assert central < shuffle < local / 2.0


def test_the_tight_accountant_gains_regret_over_the_text_s_closed_form(tmp_path: Path) -> None:
    document = scenario("ten-actions-shuffle").document()
    document["task"]["amplification"] = "closed"
    found = run(parse(document), out=tmp_path / "closed").summary
    assert found["privacy"]["epsilon"] == pytest.approx(1.0)
    alone = f"{found['privacy']['epsilon_local']:.2f}"
    assert shown("shuffle, by (6.10)", found, alone) in PAGE
    tight, _ = played("ten-actions-shuffle", tmp_path)
    assert tight["metrics"]["regret"] < 0.7 * found["metrics"]["regret"]


def test_stress_costs_certainty_and_time_at_the_same_epsilon(tmp_path: Path) -> None:
    files = [scenario(name) for name in STRESS]
    assert len({str(file.task) + str(file.mechanism) for file in files}) == 1
    found, hours = {}, {}
    for name in STRESS:
        found[name], rows = played(name, tmp_path)
        hours[name] = rows[-1]["time"] / 3600.0
        assert found[name]["privacy"]["epsilon"] == pytest.approx(2.0), "equal for all"
        assert found[name]["bandit"]["action"] == 0
        assert found[name]["metrics"]["regret"] <= found[name]["bandit"]["certificate"]
        missing = f"{found[name]['metrics']['missing']:,.0f}"
        assert shown(name, found[name], missing, f"{hours[name]:.1f}") in PAGE
    steady, dropout, night = (found[name] for name in STRESS)
    # An empty slot is a round all the same, and teaches nothing.
    assert dropout["metrics"]["missing"] > 0.4 * dropout["bandit"]["rounds"]
    assert dropout["bandit"]["radius"] > 1.1 * steady["bandit"]["radius"]
    assert dropout["bandit"]["certificate"] > 1.1 * steady["bandit"]["certificate"]
    # Batches wait for the morning, and are as good as by day.
    assert hours["night-drought"] > 2.0 * hours["steady"]
    assert night["bandit"]["radius"] == pytest.approx(steady["bandit"]["radius"], rel=0.01)


def test_regions_of_unknown_size_are_asked_for_first(tmp_path: Path) -> None:
    found, rows = played("regions-unknown", tmp_path)
    assert rows[0]["batch_size"] == 2000
    assert found["bandit"]["name"] == "2-0-2", "the best message of each region"
    assert 0.0 < found["metrics"]["asked_regret"] < found["metrics"]["linear_regret"]
    assert found["privacy"]["epsilon"] == pytest.approx(2.0)


def test_a_sampled_table_withholds_the_certificate(tmp_path: Path) -> None:
    found, _ = played("five-features", tmp_path)
    assert found["bandit"]["certificate"] is None
    assert found["bandit"]["actions"] > 30
    assert abs(found["metrics"]["regret"] - found["metrics"]["linear_regret"]) < 1.5 * 50_000**0.5
