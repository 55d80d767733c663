"""Figures of regret: what holds, the regime of each claim, error bars, bad files."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from raydp_sim.cli.shipped import shipped
from raydp_sim.errors import InputError
from raydp_sim.figures import claims, load, play
from raydp_sim.figures.claims import judge
from raydp_sim.figures.compute import table, value
from raydp_sim.figures.model import FigureFile

SMALL: dict[str, Any] = {
    "name": "small",
    "figure": {
        "curves": {
            "none": {"bandit": {"model": "none"}, "repetitions": 4},
            "local": {"bandit": {"model": "local"}, "repetitions": 4},
            "printed": {"bandit": {"model": "local", "sensitivity": 1}, "repetitions": 4},
            "shuffled": {"bandit": {"model": "shuffle"}, "repetitions": 4},
        },
        "panels": {
            "a": {
                "quantity": "regret",
                "sweep": "epsilon",
                "values": [1, 2],
                "fixed": {"rounds": 2000, "actions": 5, "dimension": 2, "delta": 1e-6},
                "curves": ["none", "local", "printed", "shuffled"],
            },
            "b": {
                "quantity": "regret",
                "sweep": "rounds",
                "values": [1000, 10_000, 100_000],
                "fixed": {"epsilon": 8, "actions": 5, "dimension": 2},
                "curves": ["none", "local"],
            },
        },
    },
    "claims": [
        {
            "claim": "Sublinear.",
            "printed": 1,
            "sense": "below",
            "panel": "b",
            "compute": "exponent",
            "of": "local",
            "why": "x",
        }
    ],
}


@cache
def figure(name: str) -> FigureFile:
    return load(shipped()[f"seeds/{name}"])


def changed(path: str, to: Any) -> dict[str, Any]:
    document = deepcopy(SMALL)
    *parents, last = path.split(".")
    place: Any = document
    for parent in parents:
        place = place[int(parent)] if isinstance(place, list) else place[parent]
    place[last] = to
    return document


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "holds"),
    [
        (
            "000-figure-6.2a",
            "yes yes no yes yes yes yes no yes yes yes yes yes yes yes",
        ),
        ("000-figure-6.2b", "yes no yes yes no no yes no yes yes"),
    ],
)
def test_what_holds(name: str, holds: str) -> None:
    found = [judge(claim, figure(name).figure).holds for claim in figure(name).claims]
    assert found == [word == "yes" for word in holds.split()]


def test_a_core_set_is_better_at_high_privacy_only() -> None:
    """Claims 3 and 5 of figure 6.2b with 5 of its instances, clear by nine standard errors."""
    document = figure("000-figure-6.2b").document()
    for curve in document["figure"]["curves"].values():
        curve["repetitions"] = 5
    file = load(document)
    verdicts = [judge(file.claims[index], file.figure) for index in (2, 4)]
    assert [verdict.holds for verdict in verdicts] == [True, False]


def test_common_instances_and_their_standard_error(tmp_path: Path) -> None:
    played = play(deepcopy(SMALL), tmp_path / "made")
    rows = played.tables["a"].to_pylist()
    assert {row["status"] for row in rows} == {"simulated"}
    assert all(row["spread"] is not None and row["spread"] >= 0.0 for row in rows)
    none = [row["value"] for row in rows if row["curve"] == "none"]
    assert none[0] == none[1], "nothing of it depends on epsilon"
    at = {(row["curve"], row["epsilon"]): row["value"] for row in rows}
    assert at["local", 2] == at["printed", 1], "the printed noise is that of twice the epsilon"
    assert "epsilon0 up to" in next(row["note"] for row in rows if row["curve"] == "shuffled")
    assert (tmp_path / "made" / "plot.png").stat().st_size > 10_000
    assert played.summary["claims"][0]["holds"]


def test_the_exponent_is_the_slope_of_the_logarithms() -> None:
    file = load(deepcopy(SMALL))
    panel = file.figure.panels["b"]
    values = [value(file.figure, panel, "local", x).epsilon for x in panel.values]
    verdict = judge(file.claims[0], file.figure)
    x, y = np.log(panel.values), np.log(values)
    slope = ((x - x.mean()) @ (y - y.mean())) / ((x - x.mean()) ** 2).sum()
    assert verdict.computed == pytest.approx(slope)
    assert table(file.figure, panel).num_rows == 6


def test_a_crossing_is_where_curves_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of x^-2 and 1/(3x), which meet at x = 3; powers are straight lines in logarithms."""
    document = deepcopy(SMALL)
    document["figure"]["panels"]["a"]["values"] = [10, 1, 2]
    crossing = {"panel": "a", "compute": "crossing", "printed": 3, "why": "x", "claim": "x"}
    document["claims"] = [
        {**crossing, "of": "local", "over": "none"},
        {**crossing, "of": "local", "over": "local"},
        {**crossing, "of": "local", "over": "shuffled"},
    ]
    file = load(document)
    curves = {
        "local": lambda x: x**-2.0,
        "none": lambda x: x**-1.0 / 3.0,
        "shuffled": lambda x: x**-2.0 * (3.0 if x == 2 else 0.5),
    }

    def known(_figure: Any, _panel: Any, curve: str, x: float) -> Any:
        return SimpleNamespace(epsilon=curves[curve](x))

    monkeypatch.setattr(claims, "value", known)
    meet, alike, twice = (judge(claim, file.figure) for claim in file.claims)
    assert meet.computed == pytest.approx(3.0) and meet.holds
    assert alike.computed is None and alike.here == "no value"
    assert twice.computed is None, "above, below and above again is no regime"


A = "figure.panels.a"
BAD = [
    (f"{A}.fixed", {"rounds": 2000, "actions": 5}, "fixed.dimension is missing"),
    (f"{A}.fixed.delta", None, "a.fixed.delta is missing; curve 'shuffled' needs it"),
    (f"{A}.fixed.clients", 10, "fixed.clients is 10; regret has none"),
    (f"{A}.fixed.epsilon", 1, "fixed.epsilon is 1.0; the panel sweeps epsilon"),
    (f"{A}.fixed.rounds", 2, "fixed.rounds is 2; rounds must lie in 3"),
    (f"{A}.fixed.actions", 10**6, "fixed.actions is 1000000"),
    ("figure.panels.b.values", [1000, 2.5], "values is 2.5; rounds must be whole"),
    (f"{A}.curves", ["locl"], "curves is 'locl'; did you mean 'local'"),
    (f"{A}.quantity", "mse", "figure.panels.a"),
    ("figure.curves.none.bandit.model", "trusted", "figure.curves.none.bandit.model is 'trusted'"),
    ("figure.curves.none.bandit.modell", "none", "did you mean 'model'"),
    ("figure.curves.none.bandit.sensitivity", 0, "bandit.sensitivity is 0"),
    ("figure.curves.none.formula", "r1-bound", "figure.curves.none needs a bandit, and nothing"),
    ("figure.curves.none", {"formula": "r1-bound"}, "needs a bandit"),
    ("claims.0.at", 1000, "claims.0.at is 1000.0; exponent takes no place"),
    ("claims.0.over", "none", "claims.0.over is 'none'; exponent takes no second"),
    ("figure.panels.b.values", [1000], "claims.0.compute is 'exponent'; it needs a panel with two"),
]


@pytest.mark.parametrize(("path", "to", "words"), BAD)
def test_bad_files_are_refused_by_field(path: str, to: Any, words: str) -> None:
    with pytest.raises(InputError) as refused:
        load(changed(path, to))
    assert words in str(refused.value)


def test_bounds_and_errors_have_no_actions() -> None:
    for quantity, curve in (("epsilon", "rdp-upper1"), ("mse", "x")):
        document = {
            "name": "x",
            "figure": {
                "curves": {"x": {"formula": "user-naive"}},
                "panels": {
                    "a": {
                        "quantity": quantity,
                        "sweep": "clients",
                        "values": [100],
                        "fixed": {"epsilon0": 1, "actions": 3},
                        "curves": [curve],
                    }
                },
            },
        }
        if quantity == "epsilon":
            document["figure"]["panels"]["a"]["fixed"] |= {"rounds": 1, "delta": 1e-6}  # type: ignore[index]
        with pytest.raises(InputError, match=r"fixed\.actions is 3"):
            load(document)
