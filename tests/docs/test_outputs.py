"""Longer outputs that the pages show are what the commands print."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, blocks, call, shows


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)


def test_a_figure_of_a_paper_prints_what_is_shown() -> None:
    (command,) = blocks("docs/papers.md", "bash")
    (shown,) = blocks("docs/papers.md", "text")
    result = call(*command.split()[1:], "--out", "made")
    shows(shown, result.stderr + result.stdout, ("CPU time", "run directory", "picture"))


def test_a_census_prints_what_is_shown() -> None:
    (shown,) = blocks("docs/analysts.md", "text")
    inline = ("--set", "placement.backend=inline", "--out", "made")
    shows(shown, call("run", "levels/census", *inline).stdout)


@pytest.mark.slow
def test_stress_prints_what_is_shown() -> None:
    command, *_ = blocks("docs/clients.md", "bash")
    shown, *_ = blocks("docs/clients.md", "text")
    shows(shown, call(*command.split()[1:]).stdout, ("run directories", "picture"))


@pytest.mark.slow
def test_mechanisms_prints_what_is_shown() -> None:
    (shown,) = blocks("docs/mechanisms.md", "text")
    shows(shown, call("mechanisms").stdout)


@pytest.mark.long
def test_the_table_of_gains_is_what_is_printed() -> None:
    printed = call("bench", "gains").stdout
    shown = re.findall(r"^\|.*$", PAGES["docs/accounting-gains.md"], re.MULTILINE)
    assert shown == [line for line in printed.splitlines() if line.startswith("|")]


def test_a_bandit_prints_what_is_shown() -> None:
    command, *_ = blocks("docs/bandits.md", "bash")
    shown, *_ = blocks("docs/bandits.md", "text")
    inline = ("--set", "placement.backend=inline", "--out", "made")
    shows(shown, call(*command.split()[1:], *inline).stdout)
