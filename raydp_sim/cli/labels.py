"""`raydp-sim labels`: how good labels of trained teachers are, at every price."""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from raydp_sim.cli import tables
from raydp_sim.cli.tables import Column, Row
from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.ensembles.choice import Noise
from raydp_sim.metrics import estimates, streams
from raydp_sim.metrics.curves import read_csv, write_csv
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario.document import read
from raydp_sim.tasks.ensembles import scored
from raydp_sim.tasks.ensembles.scored import Tallies, Votes

_EPILOG = """\b
Example:
  raydp-sim labels runs/mnist-linear runs/mnist-cnn-open
  raydp-sim labels runs/mnist-* --csv teachers.csv
"""
_PIPE = 110
_SCHEMA = pa.schema(
    [
        ("setting", pa.string()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("truth", pa.int64()),
        ("tally", pa.int64()),
        ("questions", pa.int64()),
    ]
)
_QUERIES = (20, 50, 100)
_MULTIPLES = (1, 3, 5, 7)
_WAYS: dict[str, Noise] = {"subsampling": "subsampling", "optimised": "full"}
# Mean (deviation) at Q = 20, 50, 100 of 004, Tables B.4, 3.1, B.6 and B.8.
PRINTED = {
    ("mnist", "gnmax", 1): "0.54 (0.11) 0.51 (0.07) 0.57 (0.03)",
    ("mnist", "gnmax", 3): "0.63 (0.09) 0.66 (0.06) 0.64 (0.04)",
    ("mnist", "gnmax", 5): "0.73 (0.11) 0.75 (0.07) 0.72 (0.04)",
    ("mnist", "gnmax", 7): "0.79 (0.07) 0.80 (0.05) 0.80 (0.04)",
    ("mnist", "subsampling", 1): "0.68 (0.07) 0.67 (0.05) 0.71 (0.03)",
    ("mnist", "subsampling", 3): "0.76 (0.09) 0.75 (0.06) 0.76 (0.04)",
    ("mnist", "subsampling", 5): "0.76 (0.09) 0.82 (0.04) 0.79 (0.05)",
    ("mnist", "subsampling", 7): "0.80 (0.09) 0.82 (0.05) 0.80 (0.04)",
    ("mnist", "optimised", 1): "0.74 (0.08) 0.66 (0.05) 0.69 (0.04)",
    ("mnist", "optimised", 3): "0.79 (0.09) 0.79 (0.05) 0.80 (0.04)",
    ("mnist", "optimised", 5): "0.84 (0.07) 0.83 (0.04) 0.83 (0.03)",
    ("mnist", "optimised", 7): "0.85 (0.08) 0.85 (0.04) 0.83 (0.03)",
    ("fashion-mnist", "gnmax", 1): "0.56 (0.10) 0.52 (0.05) 0.56 (0.04)",
    ("fashion-mnist", "gnmax", 3): "0.65 (0.11) 0.59 (0.06) 0.64 (0.04)",
    ("fashion-mnist", "gnmax", 5): "0.72 (0.10) 0.72 (0.08) 0.72 (0.06)",
    ("fashion-mnist", "gnmax", 7): "0.79 (0.07) 0.79 (0.05) 0.79 (0.03)",
    ("fashion-mnist", "subsampling", 1): "0.92 (0.05) 0.89 (0.04) 0.89 (0.04)",
    ("fashion-mnist", "subsampling", 3): "0.90 (0.07) 0.94 (0.03) 0.93 (0.02)",
    ("fashion-mnist", "subsampling", 5): "0.96 (0.04) 0.96 (0.02) 0.97 (0.01)",
    ("fashion-mnist", "subsampling", 7): "0.95 (0.04) 0.96 (0.03) 0.96 (0.02)",
    ("fashion-mnist", "optimised", 1): "0.89 (0.06) 0.92 (0.03) 0.91 (0.04)",
    ("fashion-mnist", "optimised", 3): "0.96 (0.03) 0.96 (0.02) 0.96 (0.02)",
    ("fashion-mnist", "optimised", 5): "0.97 (0.04) 0.97 (0.02) 0.97 (0.01)",
    ("fashion-mnist", "optimised", 7): "0.96 (0.04) 0.97 (0.03) 0.96 (0.02)",
}


@click.command("labels", epilog=_EPILOG)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--csv", "file", metavar="FILE.csv", help="Write how often each tally came.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(runs: tuple[str, ...], file: str | None, as_json: bool) -> None:
    """Show how good labels are that trained teachers give, by every way to release a majority.

    RUN is the directory of a finished run of task label-transfer, or a file that `--csv` wrote.
    Accuracies are exact means over the run's questions and over the noise of a label; beside them
    the standard deviation of that of 20, 50 and 100 questions, and what 004 prints for these, as
    mean (deviation) of ten draws. Each label is (m epsilon, m delta)-DP, of a vote's epsilon and
    delta. These are functions of the votes: only a simulation may look at them.
    """
    found = pa.concat_tables([_runs(run) for run in runs])
    if file is not None:
        try:
            write_csv(found, Path(file))
        except OSError as error:
            raise bad_field("--csv", file, f"it cannot be written: {error.strerror}") from None
    settings = dict.fromkeys(found["setting"].to_pylist())
    lines = [line for setting in settings for line in _lines(setting, found)]
    if as_json:
        click.echo(json.dumps(lines, indent=2))
        return
    _print(lines)


def _runs(run: str) -> pa.Table:
    if run.endswith(".csv"):
        try:
            stored = read_csv(Path(run))
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(f"{run}: it cannot be read: {error}") from None
        if stored.column_names != _SCHEMA.names:
            raise InputError(f"{run}: it was not written by `raydp-sim labels --csv`")
        return stored.cast(_SCHEMA)
    folder = RunDir.existing(run).path
    votes, truth = streams.read(folder / "metrics", "votes"), None
    if votes.num_rows:
        truth = estimates.last_truth(folder / "metrics")
    if truth is None:
        raise InputError(f"{run}: it has no votes on questions whose answer is known")
    mechanism = read(folder / "scenario.yaml")["mechanism"]
    right, tally = truth.values.astype(np.int64), votes["tally"].to_numpy()
    voters = int(votes["votes"].to_numpy().max())
    counts = np.zeros((2, voters + 1), np.int64)
    np.add.at(counts, (right[votes["query"].to_numpy()], tally), 1)
    rows = [
        {
            "setting": folder.name,
            "epsilon": mechanism.get("vote_epsilon"),
            "delta": mechanism.get("vote_delta"),
            "truth": answer,
            "tally": number,
            "questions": int(counts[answer, number]),
        }
        for answer in (0, 1)
        for number in range(voters + 1)
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _lines(setting: str, found: pa.Table) -> list[dict[str, Any]]:
    own = [row for row in found.to_pylist() if row["setting"] == setting]
    voters = max(row["tally"] for row in own)
    tallies: Tallies = np.zeros((2, voters + 1), np.int64)
    for row in own:
        tallies[row["truth"], row["tally"]] = row["questions"]
    vote = _vote(own[0], found)
    dataset = next((name for name, *_ in PRINTED if setting.startswith(name)), "")
    ways = [("majority", 0, scored.majority(voters))]
    for multiple in _MULTIPLES:
        if own[0]["epsilon"] is None:
            ways.append(("gnmax", multiple, scored.noisy(voters, vote, multiple)))
            continue
        for way, noise in _WAYS.items():
            ways.append((way, multiple, scored.private(voters, vote, multiple, noise)))
    lines = []
    for way, multiple, law in ways:
        share = scored.accuracy(tallies, law)
        lines.append(
            {
                "setting": setting,
                "way": way,
                "m": multiple or None,
                "accuracy": share,
                "deviation": [scored.spread(share, count) for count in _QUERIES],
                "independent": scored.independent(tallies, law),
                "printed": PRINTED.get((dataset, way, multiple)),
            }
        )
    return lines


def _vote(row: dict[str, Any], found: pa.Table) -> Votes:
    """Return what a vote costs; for teachers without privacy, what it costs the others."""
    if row["epsilon"] is not None:
        return Votes(row["epsilon"], row["delta"])
    name = str(row["setting"])
    for other in found.to_pylist():
        alike = name.split("-")[0] == str(other["setting"]).split("-")[0]
        if other["epsilon"] is not None and alike:
            return Votes(other["epsilon"], other["delta"])
    raise InputError(f"{name}: give a run of private teachers too, whose epsilon it is held to")


def _print(lines: list[dict[str, Any]]) -> None:
    heads = ["m", "accuracy", "sd 20, 50, 100", "independent", "printed at 20, 50, 100"]
    columns = [Column("teachers", right=False), Column("released", right=False)]
    columns += [Column(head) for head in heads]
    rows = []
    for line in lines:
        deviation = " ".join(f"{each:.2f}" for each in line["deviation"])
        cells = [line["setting"], line["way"], "" if line["m"] is None else str(line["m"])]
        cells += [f"{line['accuracy']:.3f}", deviation, f"{line['independent']:.3f}"]
        rows.append(Row((*cells, line["printed"] or "")))
    tables.fitted(columns, rows, tables.width(_PIPE)).show(_PIPE)
    click.echo()
    tables.say("independent: if the same teachers erred independently of each other.", _PIPE)
