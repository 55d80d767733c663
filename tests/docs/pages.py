"""The README and the pages of docs, and what they show."""

import re
from pathlib import Path

from click.testing import CliRunner, Result

from raydp_sim.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "cluster" / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
    )
}


def blocks(page: str, language: str) -> list[str]:
    """Return what a page shows in a language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, PAGES[page], re.MULTILINE | re.DOTALL)


def prose(page: str) -> str:
    """Return a page without what it shows."""
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)


def files(page: str) -> dict[str, str]:
    """Return the files that a page shows: blocks that begin with their name in a comment."""
    shown = blocks(page, "python") + blocks(page, "yaml")
    named = ((re.match(r"# (\w+\.(?:py|yaml))\n", block), block) for block in shown)
    return {name[1]: block for name, block in named if name}


def call(*arguments: str) -> Result:
    """Run a command of ours without Ray; it must succeed."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.stderr
    return result


def shows(shown: str, printed: str, other: tuple[str, ...] = ()) -> None:
    """Check that every line shown is printed, in this order.

    Args:
        shown: a block, in which `...` stands for lines left out.
        printed: by the command.
        other: beginnings of lines that differ by machine.
    """
    lines = iter([line.rstrip() for line in printed.splitlines()])
    for line in shown.splitlines():
        if line == "..." or not line or "───" in line or line.startswith(other or ("\0",)):
            continue
        assert any(line == one for one in lines), f"not printed, or not in this order: {line}"
