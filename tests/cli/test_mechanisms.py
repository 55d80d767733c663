"""`raydp-sim mechanisms` from the outside."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from raydp_sim.cli import mechanisms
from raydp_sim.cli.main import main
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.compare import Budget, Entry, catalogue
from tests.cli.narrow import assert_fits

SMALL = ("--dimension", "3", "--clients", "500", "--epsilon", "0.5")
COMPARED = [kind for kind, cls in MECHANISMS.kinds.items() if cls.compared]


@pytest.fixture(scope="module")
def computed() -> list[Entry]:
    """The catalogue of these options, which takes seconds; shown in two forms below."""
    return catalogue(Budget(3, 500, 0.5))


@pytest.fixture
def once(computed: list[Entry], monkeypatch: pytest.MonkeyPatch) -> None:
    def made(budget: Budget, progress: Any) -> list[Entry]:
        assert budget == Budget(3, 500, 0.5)
        return computed

    monkeypatch.setattr(mechanisms, "catalogue", made)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["mechanisms", *arguments])


def test_the_table_the_document_and_the_picture(tmp_path: Path, once: None) -> None:
    picture = tmp_path / "made.png"
    result = call(*SMALL, "--json", "--plot", str(picture))
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert {row["kind"] for row in rows} == set(COMPARED)
    promised = {"kind", "domain", "bits", "epsilon_local", "mse", "mse_is", "unbiased", "source"}
    assert all(promised <= set(row) for row in rows)
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000


def test_the_table_names_every_kind_domain_and_source(once: None) -> None:
    result = call(*SMALL)
    assert result.exit_code == 0, result.stderr
    for kind in COMPARED:
        assert re.search(rf"(^| ){kind}[ ,]", result.stdout, re.MULTILINE)
    for words in ("l2 ball, d = 3", "linf ball", "bit", "epsilon 0.5", "Warner 1965"):
        assert words in result.stdout


def test_the_table_fits_into_80_columns(once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = CliRunner().invoke(main, ["mechanisms", *SMALL]).stdout
    shown = assert_fits(["mechanisms", *SMALL], monkeypatch)
    assert "No room for: source" in shown
    assert shown.count(" ~") == wide.count(" ~") > 2, "marks of bounds are not cut either"
    for kind in COMPARED:
        assert re.search(rf"(^| ){kind}[ ,]", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("option", "value", "remedy"),
    [
        ("--dimension", "0", "at least 1"),
        ("--dimension", "1000000", "at most 100000"),
        ("--clients", "-3", "at least 1"),
        ("--epsilon", "0", "> 0"),
        ("--epsilon", "nan", "> 0"),
        ("--epsilon", "50", "0.0001 and 20"),
        ("--delta", "1", "(0, 1)"),
        ("--plot", "made.pdf", "end in .png"),
        ("--plot", "nowhere/made.png", "directory that exists"),
    ],
)
def test_bad_input_names_the_option_the_value_and_the_remedy(
    option: str, value: str, remedy: str
) -> None:
    result = call(option, value)
    assert result.exit_code == 2
    assert f"{option} is" in result.stderr and remedy in result.stderr


def test_help_has_an_example() -> None:
    assert "raydp-sim mechanisms --dimension" in call("--help").stdout


def test_the_docs_show_what_is_computed() -> None:
    """The local columns of its excerpt; the shuffled ones would take many seconds."""
    page = Path(__file__).resolve().parents[2] / "docs" / "mechanisms.md"
    text = page.read_text(encoding="utf-8")
    shown = text[text.index("l2 ball, d = 100") : text.index("`~` marks a bound")]
    entries = catalogue(Budget(100, 10_000, 1.0), shuffle=False)
    for entry in entries:
        if entry.domain == "l2 ball" or (entry.domain, entry.dimension) == ("category", 100):
            numbers = f"{entry.own.bits:,} +{entry.own.mse:.4g}"
            assert re.search(rf"^   {entry.kind} +{numbers}", shown, re.MULTILINE), entry.kind
