"""`raydp-sim mechanisms` from the outside."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from raydp_sim.cli.main import main
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.compare import Budget, catalogue

SMALL = ("--dimension", "3", "--clients", "500")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["mechanisms", *arguments])


def test_the_table_the_document_and_the_picture(tmp_path: Path) -> None:
    picture = tmp_path / "made.png"
    result = call(*SMALL, "--json", "--plot", str(picture))
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert {row["kind"] for row in rows} == set(MECHANISMS.kinds)
    promised = {"kind", "domain", "bits", "epsilon_local", "mse", "mse_is", "unbiased", "source"}
    assert all(promised <= set(row) for row in rows)
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000


def test_the_table_names_every_kind_domain_and_source() -> None:
    result = call("--dimension", "2", "--clients", "300", "--epsilon", "0.5")
    assert result.exit_code == 0, result.stderr
    for kind in MECHANISMS.kinds:
        assert f" {kind} " in result.stdout
    for words in ("l2 ball, d = 2", "linf ball", "bit", "epsilon 0.5", "Warner 1965"):
        assert words in result.stdout


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


def test_the_readme_shows_what_is_computed() -> None:
    """The local columns of its excerpt; the shuffled ones would take many seconds."""
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    shown = readme[readme.index("l2 ball, d = 100") : readme.index("`~` marks a bound")]
    entries = catalogue(Budget(100, 10_000, 1.0), shuffle=False)
    for entry in entries:
        if entry.domain == "l2 ball" or (entry.domain, entry.dimension) == ("category", 100):
            numbers = f"{entry.own.bits:,} +{entry.own.mse:.4g}"
            assert re.search(rf"^   {entry.kind} +{numbers}", shown, re.MULTILINE), entry.kind
