"""Terminals of 80 columns: columns are left out or stacked, nothing is cut and no word broken."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from raydp_sim.cli import tables
from raydp_sim.cli.main import main
from raydp_sim.cli.tables import Column, Row
from tests.cli.narrow import assert_fits, shown
from tests.cli.test_bad_input import write


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Four short runs with long names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYDP_SIM_PATH", "")
    path = write(tmp_path, {})
    names = [f"a-run-with-quite-a-long-name-{number}" for number in range(4)]
    for number, name in enumerate(names):
        shown(["run", path, "--seed", str(number), "--out", name])
    return names


def test_lists_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = assert_fits(["list"], monkeypatch)
    assert "No room for: path" in narrow and "stress/adversarial-absence" in narrow


@pytest.mark.parametrize(
    "command", ["shuffle --epsilon0 1 --rounds 2", "rdp --epsilon0 1 --alpha 4"]
)
def test_accounts_fit(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    delta = "" if command.startswith("rdp") else "--delta 1e-6"
    arguments = f"account {command} --clients 1000 --sampled 10 {delta}".split()
    # Seconds of the processor differ between two calls.
    monkeypatch.setattr("time.process_time", lambda: 0.0)
    assert "proved" in assert_fits(arguments, monkeypatch)


def test_ledgers_summaries_and_comparisons_fit(
    runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (["ledger", runs[0]], ["ledger", runs[0], "--client", "3"]):
        with monkeypatch.context() as patch:
            assert_fits(arguments, patch)
    with monkeypatch.context() as patch:
        assert_fits(["resume", runs[0]], patch)
    narrow = assert_fits(["compare", *runs], monkeypatch)
    assert narrow.count("running squared error") == 4, "one below the other"


def test_a_table_too_wide_for_any_terminal_is_not_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    laid = tables.fitted(
        [Column("name", right=False), Column("number")], [Row(("x" * 30, "1.25"))], 20
    )
    laid.show(100)
    assert f"{'x' * 30}    1.25" in capsys.readouterr().out


def test_a_title_counts_as_part_of_the_first_column() -> None:
    columns = [Column("", right=False), Column("MSE"), Column("", right=False)]
    laid = tables.fitted(columns, [Row(("a title that is long",)), Row(("krr", "1.5", "~"))], 20)
    with (console := Console(width=laid.needed)).capture() as captured:
        console.print(laid.table)
    assert "1.5  ~" in captured.get()


def test_what_validate_says_is_wrapped_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "room_of_stderr", lambda: 80)
    for changes, code in (({}, 0), ({"mechanism": {"kind": "krrr"}}, 2)):
        result = CliRunner().invoke(main, ["validate", write(tmp_path, changes)])
        lines = result.stderr.splitlines()
        assert result.exit_code == code and len(lines) > 1
        assert max(len(line) for line in lines if str(tmp_path) not in line) <= 80


def test_messages_are_wrapped_between_words_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "raydp-sim: " + "population.clients is 0; " * 8
    assert tables.wrapped_for_stderr(text) == text
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert tables.room_of_stderr() == 80
    lines = tables.wrapped_for_stderr(text).splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 80
    assert " ".join(lines).split() == text.split()
