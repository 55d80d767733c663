"""Runs as HTML that needs nothing else: every text escaped, pictures inside, no scripts."""

import base64
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

_MIME = {".png": "image/png", ".svg": "image/svg+xml"}


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table; numbers stand to the right.

    Example:
        >>> table(["name", "x"], [["<b>", 0.5]])
        '<table><tr><th>name</th><th>x</th></tr><tr><td>&lt;b&gt;</td><td class="n">0.5</td></tr></table>'
    """  # noqa: E501  # one line of HTML
    top = "".join(f"<th>{escape(str(name))}</th>" for name in head)
    lines = ["".join(_cell(value) for value in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{f'<tr>{top}</tr>' if head else ''}{body}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"<td>{'' if value is None else escape(str(value))}</td>"
    text = f"{value:,}" if isinstance(value, int) else f"{value:.5g}"
    return f'<td class="n">{text}</td>'


def picture(path: Path, said: str) -> str:
    """Return a picture with what it shows, for those who do not see it."""
    content = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(said)}" src="data:{_MIME[path.suffix]};base64,{content}">'


def shown(summary: dict[str, Any], plot: Path) -> str:
    """Return a finished run as a notebook shows it.

    Args:
        summary: of the run.
        plot: its picture, if there is one.
    """
    privacy, metrics = summary["privacy"], summary["metrics"]
    spent = privacy["epsilon"]
    facts: list[tuple[str, Any]] = [
        ("clients", summary["clients"]),
        ("releases", metrics["releases"]),
        *((name.replace("_", " "), metrics[name]) for name in metrics if name != "releases"),
        ("epsilon", "infinite: no guarantee" if math.isinf(spent) else spent),
        ("delta", privacy["delta"]),
        ("bound", privacy["bound"]),
        ("which holds for", privacy["assumption"]),
        ("run directory", summary["run_dir"]),
    ]
    seen = picture(plot, f"plot of the run {summary['scenario']}") if plot.is_file() else ""
    return f"<h3>{escape(summary['scenario'])}</h3>{table([], facts)}{seen}"
