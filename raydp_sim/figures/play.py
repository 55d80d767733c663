"""Play a figure: read its file, compute it, and leave a run directory behind."""

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pydantic import ValidationError

from raydp_sim.durable import fresh_folder, write_durable
from raydp_sim.errors import InputError
from raydp_sim.figures import claims, compute, model
from raydp_sim.figures.draw import draw
from raydp_sim.figures.model import FigureFile
from raydp_sim.model import describe
from raydp_sim.privacy.ledger.store import write_table
from raydp_sim.run.provenance import provenance
from raydp_sim.scenario.document import is_figure, overridden, read


@dataclass(frozen=True)
class Played:
    """A figure that was computed.

    Attributes:
        summary: the document of `summary.json`.
        run_dir: where everything is.
        tables: each panel's data, by name.
    """

    summary: dict[str, Any]
    run_dir: Path
    tables: dict[str, pa.Table]


@dataclass
class Watcher:
    """Callbacks of the progress; every hook may be left as it is."""

    panel: Callable[[str, int], None] = lambda name, rows: None
    row: Callable[[], None] = lambda: None
    claims: Callable[[int], None] = lambda count: None


def load(source: str | Path | Mapping[str, Any], overrides: Iterable[str] = ()) -> FigureFile:
    """Read, override and check a figure's file, or a mapping like one.

    Raises:
        InputError: names the file, the field, the value and the remedy.
    """
    named = isinstance(source, str | Path)
    document = read(Path(source)) if isinstance(source, str | Path) else source
    start = f"{source}: " if named else ""
    if not is_figure(document):
        raise InputError(f"{start}figure is missing; `raydp_sim.run.play` plays simulations")
    try:
        file = FigureFile.model_validate(overridden(document, overrides))
        compute.check(file)
        claims.check(file)
    except ValidationError as error:
        raise InputError(describe(error, _known_keys(), str(source) if named else "")) from None
    except RecursionError:
        raise InputError(f"{start}it is nested too deeply; write it flat") from None
    except InputError as error:
        raise InputError(f"{start}{error}") from None
    return file


def play(
    source: FigureFile | str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    watcher: Watcher | None = None,
) -> Played:
    """Compute a figure, draw it and judge what its text claims.

    Args:
        source: a file, a mapping like one, or what `load` returned.
        out: the run directory; by default a new one under `runs/`.
        watcher: callbacks of the progress.

    Raises:
        InputError: before anything is written.
    """
    file = source if isinstance(source, FigureFile) else load(source)
    folder = fresh_folder(file.name, out)
    watcher = watcher or Watcher()
    began, spent = time.monotonic(), time.process_time()
    _create(folder, file)
    tables = {}
    for name, panel in file.figure.panels.items():
        watcher.panel(name, len(panel.values) * len(panel.curves))
        tables[name] = compute.table(file.figure, panel, watcher.row)
        write_table(folder / "figure" / f"{name}.parquet", tables[name])
    write_durable(folder / "figure" / "all.csv", _csv(tables))
    watcher.claims(len(file.claims))
    verdicts = [claims.judge(claim, file.figure) for claim in file.claims]
    write_durable(folder / "plot.png", draw(file.figure, tables))
    summary = {
        "scenario": file.name,
        "claims": [asdict(verdict) for verdict in verdicts],
        "panels": {name: f"figure/{name}.parquet" for name in tables},
        "timing": {
            "wall_s": time.monotonic() - began,
            "cpu_s": time.process_time() - spent,
        },
        "provenance": provenance(),
        "run_dir": str(folder),
    }
    write_durable(folder / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())
    return Played(summary, folder, tables)


def _csv(tables: Mapping[str, pa.Table]) -> bytes:
    """Return all panels in one table, for whoever keeps what took long to compute."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(("panel", "sweep", "x", "curve", "status", "value", "spread", "note"))
    for name, table in tables.items():
        sweep = table.column_names[0]
        for row in table.to_pylist():
            told = (row[key] for key in ("curve", "status", "value", "spread", "note"))
            writer.writerow((name, sweep, f"{row[sweep]:g}", *told))
    return sink.getvalue().encode()


def _create(folder: Path, file: FigureFile) -> None:
    try:
        (folder / "figure").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out is {str(folder)!r}; {error.strerror}: give another") from None
    text = yaml.safe_dump(file.document(), sort_keys=False, allow_unicode=True)
    write_durable(folder / "scenario.yaml", text.encode())


def _known_keys() -> set[str]:
    sections = (
        model.Panel,
        model.Fixed,
        model.Claim,
        model.Curve,
        model.Bandit,
        model.Frequencies,
        model.Sketched,
        model.Problem,
    )
    return {key for each in (FigureFile, model.Figure, *sections) for key in each.model_fields}
