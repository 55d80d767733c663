"""What a command shows on a terminal of 80 columns, held against what it writes into a pipe."""

import pytest
from click.testing import CliRunner

from raydp_sim.cli import tables
from raydp_sim.cli.main import main

COLUMNS = 80


def shown(arguments: list[str]) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def assert_fits(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Nothing is cut, no line is too long, and every word is a word of the wide output."""
    wide = shown(arguments)
    monkeypatch.setattr(tables, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    narrow = shown(arguments)
    assert "…" not in narrow
    # Paths stand at the end of their lines and are as long as they are.
    long = [line for line in narrow.splitlines() if len(line.rstrip()) > COLUMNS]
    assert not [line for line in long if "/" not in line], long
    note = "No room for"
    whole = narrow.partition(note)[0] + narrow.partition("see --json.")[2]
    words = {word for word in whole.split() if not word.startswith("/")}
    broken = words - set(wide.split()) - {word for word in words if set(word) == {"─"}}
    assert not broken, broken
    return narrow
