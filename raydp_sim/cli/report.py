"""`raydp-sim report`: runs as one HTML file that opens anywhere and prints well."""

import tempfile
from html import escape
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from raydp_sim.cli.curves_drawn import draw
from raydp_sim.cli.phrases import epsilon
from raydp_sim.cli.summary_table import facts
from raydp_sim.durable import write_durable
from raydp_sim.errors import InputError
from raydp_sim.metrics import columns, parts, streams
from raydp_sim.registry import search_also
from raydp_sim.run import Run, reopen
from raydp_sim.run.html import picture, table
from raydp_sim.sweep.comparison import cell, differences, labels

_EPILOG = """\b
Example:
  raydp-sim report runs/first
  raydp-sim report runs/first runs/second --out both.html
"""
_ROWS = 8  # of a stream, the last ones
_WIDE = 9  # columns that fit beside each other on paper; more stand below each other
_COORDINATES = 64

# Nothing is loaded and nothing runs: the file is safe to open, whoever named the run.
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }}
h2 {{ border-top: 1px solid #bbb; padding-top: 1.2rem; margin-top: 2.4rem; }}
table {{ border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; vertical-align: top; padding: .15rem .9rem .15rem 0;
  border-bottom: 1px solid #e4e4e4; }}
td.n {{ text-align: right; }}
.wide {{ overflow-x: auto; font-size: 12px; }}
.mark {{ color: #666; }}
pre {{ font-size: 12px; background: #f6f6f6; padding: .8rem; overflow-x: auto; }}
img {{ max-width: 100%; }}
@media print {{ body {{ margin: 0; max-width: none; font-size: 10pt; }} .wide {{ overflow: visible;
  font-size: 8pt; }} pre {{ white-space: pre-wrap; font-size: 7pt; }}
  h2 {{ break-before: page; }} h3, th {{ break-after: avoid; }}
  img, tr {{ break-inside: avoid; }} }}
</style></head><body>
"""


@click.command("report", epilog=_EPILOG)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--out", metavar="FILE.html", help="Default: report.html of the run, if it is one.")
def command(runs: tuple[str, ...], out: str | None) -> None:
    """Write runs into one HTML file: pictures, privacy statement, answer, streams and scenario.

    The file needs nothing else, no internet and no scripts. Runs may be unfinished.
    """
    search_also(Path.cwd())
    if out is None and len(runs) > 1:
        raise InputError("--out is missing; say where the report of several runs is to be written")
    made = [reopen(run) for run in runs]
    path = Path(out) if out is not None else made[0].directory.path / "report.html"
    if path.suffix != ".html":
        raise InputError(f"--out is {str(path)!r}; its name must end in .html")
    try:
        write_durable(path, page(made).encode())
    except OSError as error:
        raise InputError(f"--out is {str(path)!r}; {error.strerror}: give another") from None
    click.echo(path)


def page(runs: list[Run]) -> str:
    """Return the report of some runs."""
    names = labels([str(run.directory.path) for run in runs])
    title = escape(f"raydp-sim: {', '.join(names)}")
    compared = _compared(names, runs) if len(runs) > 1 else ""
    sections = [_section(name, run) for name, run in zip(names, runs, strict=True)]
    head = _HEAD.format(title=title)
    return f"{head}<h1>{title}</h1>{compared}{''.join(sections)}</body></html>\n"


def _compared(names: list[str], runs: list[Run]) -> str:
    differ = differences([run.scenario.document() for run in runs])
    rows: list[list[Any]] = [
        [field, *(cell(value) for value in values)] for field, values in differ.items()
    ]
    results = [run.result for run in runs]
    spent = [result and epsilon(result.summary["privacy"]["epsilon"]) for result in results]
    rows.append(["epsilon", *spent])
    found = [result.summary["metrics"] if result else {} for result in results]
    for name in dict.fromkeys(name for metrics in found for name in metrics):
        rows.append([name.replace("_", " "), *(metrics.get(name) for metrics in found)])
    folders = [run.directory.metrics for run in runs]
    seen = _drawn(lambda path: draw(names, folders, path), "errors and epsilon of the runs")
    return f"<h2>Side by side</h2>{table(['', *names], rows)}{seen}"


def _section(name: str, run: Run) -> str:
    result, folder = run.result, run.directory.metrics
    done = streams.read(folder, "releases").num_rows
    if result is None:
        total = run.scenario.task.rounds * run.scenario.repeat
        said = table([], [("not finished", f"{done:,} of {total:,} releases so far")])
        seen = _drawn(lambda path: draw([name], [folder], path), f"{name} so far") if done else ""
    else:
        said = table([], facts(result.summary)) + _answer(result.summary)
        seen = _drawn(result.plot, f"plot of {name}")
    text = (run.directory.path / "scenario.yaml").read_text(encoding="utf-8")
    scenario = f"<h3>Scenario</h3><pre>{escape(text)}</pre>"
    tables = "".join(_stream(folder, stream) for stream in parts.names(folder))
    about = escape(run.scenario.description or "")
    return f"<h2>{escape(name)}</h2><p>{about}</p>{said}{seen}{tables}{scenario}"


def _drawn(drawing: Any, said: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.svg"
        drawing(path)
        return picture(path, said)


def _answer(summary: dict[str, Any]) -> str:
    found = summary.get("estimate", {})
    if "values" not in found:
        return ""
    columns = [found["names"], found["values"], found["standard_error"]]
    head = ["", "estimate", "standard error"]
    if "truth" in summary:
        columns.append(summary["truth"]["population"])
        head.append("truth (simulation only)")
    rows = list(zip(*columns, strict=True))
    more = len(rows) - _COORDINATES
    note = f"<p>... {more:,} more in the stream estimates</p>" if more > 0 else ""
    return f"<h3>Answer</h3>{table(head, rows[:_COORDINATES])}{note}"


def _stream(folder: Path, stream: str) -> str:
    rows = streams.read(folder, stream)
    last = rows.slice(max(0, rows.num_rows - _ROWS))
    mark = streams.visibility(rows.schema)
    known = columns.STREAMS.get(stream)
    said = f"a row is {known.row}; " if known else ""
    counted = f"{rows.num_rows:,} rows" + (", the last of them:" if rows.num_rows > _ROWS else ":")
    return (
        f'<h3>{escape(stream)} <span class="mark">{mark}</span></h3><p>{escape(said)}{counted}</p>'
        f'<div class="wide">{_laid(last)}</div>'
    )


def _laid(rows: pa.Table) -> str:
    lines = [list(row.values()) for row in rows.to_pylist()]
    if rows.num_columns <= _WIDE:
        return table(rows.column_names, lines)
    return table([], list(zip(rows.column_names, *lines, strict=True)))
