"""The README keeps its word: its files run, its commands and fields exist."""

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.scenario import Scenario, parse

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_users_own_pieces_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYDP_SIM_PATH", "")
    for block in blocks("python") + blocks("yaml"):
        if named := re.match(r"# (\w+\.(py|yaml))\n", block):
            (tmp_path / named[1]).write_text(block)
    inline = ["--set", "placement.backend=inline", "--out", "made"]
    result = CliRunner().invoke(main, ["run", "own.yaml", *inline])
    assert result.exit_code == 0, result.stderr
    error = re.search(r"squared error cohort +(\S+)", result.stdout)
    # Variance at most coth(1/2)^2 / 10,000 = 4.7e-4, so beyond 5 sd with probability below 1e-6.
    assert error is not None and 0 < float(error[1]) < 25 * 4.7e-4


def test_the_short_scenario_is_complete() -> None:
    (document,) = [text for text in blocks("yaml") if text.startswith("name: survey")]
    assert parse(yaml.safe_load(document)).task.rounds == 1


def test_every_command_and_exit_code_is_there() -> None:
    for name in main.commands:
        assert f"`raydp-sim {name}" in README
    for code in (0, 1, 2, 3, 130):
        assert f"| {code} |" in README


def test_every_field_is_explained() -> None:
    for section, field in Scenario.model_fields.items():
        below = getattr(field.annotation, "model_fields", {})
        if section in ("participation", "task", "mechanism") or not below:
            assert f"`{section}`" in README, section
        else:
            for name in below:
                assert f"`{section}.{name}`" in README, (section, name)


def test_the_first_commands_are_the_makefiles() -> None:
    first, second, *_ = blocks("bash")
    assert (first, second) == ("make quickstart\n", "make test\n")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"quickstart", "test", "test-all", "format"} <= set(targets)
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_only_one_index_is_named() -> None:
    """No registry host but PyTorch's public one for ordinary machines."""
    hosts = set(re.findall(r"https?://([\w.-]+)", README))
    assert hosts == {"download.pytorch.org"}


def test_the_output_shown_is_that_of_the_quickstart(tmp_path: Path) -> None:
    """All but the wall time, the plan of processes and the paths, which differ by machine."""
    arguments = ["--set", "placement.backend=inline", "--out", str(tmp_path / "made")]
    result = CliRunner().invoke(main, ["run", "quickstart", *arguments])
    shown = next(text for text in blocks("text") if text.startswith("plan:"))
    differ = ("wall time", "run directory", "picture")
    lines = [line.rstrip() for line in result.stdout.splitlines() if line.strip()]
    for line in lines:
        if not line.startswith(differ) and str(tmp_path) not in line:
            assert line in shown, line
