"""What a person sees of a run: the plan, live progress on stderr, and the summary on stdout."""

import math
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from raydp_sim.cli import tables
from raydp_sim.cli.answer_table import print_answer, print_groups
from raydp_sim.cli.tables import Column, Row
from raydp_sim.metrics import streams
from raydp_sim.run.advice import warning
from raydp_sim.run.prediction import Prediction
from raydp_sim.run.preflight import Plan
from raydp_sim.scenario import Scenario

_PIPE = 100  # pipes have no width; a wide one keeps the words of the assumption together
_STEPS = 10  # progress lines of a run at most, where there is no terminal
_LINE_SECONDS = 2.0
_LIVE_SECONDS = 0.1


class Display:
    """Live progress. On a terminal one line that changes; elsewhere a few plain lines."""

    def __init__(self, scenario: Scenario, done: int = 0) -> None:
        self.scenario = scenario
        self.total = scenario.task.rounds * scenario.repeat
        self.rounds, self.repeat = scenario.task.rounds, scenario.repeat
        self.done = self.said = done
        self.said_at = 0.0
        self.live: Progress | None = None
        self.task = TaskID(0)
        console = Console(stderr=True)
        if sys.stderr.isatty() and not console.is_dumb_terminal:
            columns = (
                TextColumn("{task.description:<16}"),
                BarColumn(bar_width=14),
                TextColumn("{task.fields[detail]}"),
                TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            )
            self.live = Progress(*columns, console=console, transient=True)
            self.task = self.live.add_task("starting", total=None, detail="")

    def __enter__(self) -> "Display":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live is not None:
            self.live.stop()

    # The hooks of `run.Watcher`.

    def planned(self, plan: Plan) -> None:
        """Say what the run will need and what to expect of it, and whether that is any good."""
        for line in plan_lines(self.scenario, plan):
            self._line(line)

    def phase(self, name: str) -> None:
        """Say what happens now."""
        self.said_at = time.monotonic()
        if self.live is None:
            if name != "playing":
                self._line(name)
            return
        playing = name == "playing"
        self.live.reset(
            self.task,
            description="releases" if playing else name,
            total=self.total if playing else None,
            completed=self.done if playing else 0,
            detail="",
        )

    def loaded(self, done: int, total: int) -> None:
        """Count the client actors that have their data."""
        if self.live is not None:
            self.live.update(
                self.task, total=total, completed=done, detail=f"{done} of {total} actors"
            )

    def row(self, row: dict[str, Any]) -> None:
        """Show a release: how many are done, the error of this one and what was spent so far."""
        self.done = row["repetition"] * self.rounds + row["release"] + 1
        now, last = time.monotonic(), self.done == self.total
        step = (self.done - self.said) * _STEPS >= self.total
        calm = step and now - self.said_at >= _LINE_SECONDS
        lively = now - self.said_at >= _LIVE_SECONDS
        if not (last or (calm if self.live is None else lively)):
            return
        self.said, self.said_at = self.done, now
        if self.live is None:
            self._line(f"release {self._place(row)}, {_state(row)}")
        else:
            # Short: the bar and the remaining time have to fit on the line too.
            detail = f"{self.done:,} of {self.total:,}, {_state(row, short=True)}"
            self.live.update(self.task, completed=self.done, detail=detail)

    def _place(self, row: dict[str, Any]) -> str:
        place = f"{row['release'] + 1} of {self.rounds}"
        if self.repeat > 1:
            place += f" (repetition {row['repetition'] + 1} of {self.repeat})"
        return place

    def _line(self, text: str) -> None:
        if self.live is None:
            click.echo(text, err=True)
        else:
            self.live.console.print(text, highlight=False, markup=False)


def _state(row: dict[str, Any], short: bool = False) -> str:
    scores = streams.scores(row)
    # The first score a task names is the one it is about.
    name = " ".join(_words(scores[0]).split()[: 2 if short else None]) if scores else ""
    score = f"{name} {row[scores[0]]:.4g}, " if scores else ""
    return f"{score}epsilon{'' if short else ' so far'} {epsilon(row['epsilon'])}"


def epsilon(value: float) -> str:
    """Say an epsilon; where there is no guarantee, in so many words.

    Example:
        >>> epsilon(0.5), epsilon(float("inf"))
        ('0.5', 'infinite')
    """
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def plan_lines(scenario: Scenario, plan: Plan) -> list[str]:
    """Say a plan, what was found out about the data and, if the run will be useless, so."""
    data = [f"data: {plan.data}"] if plan.data else []
    useless = warning(scenario, plan.prediction)
    return [*data, plan_line(plan), *([useless] if useless else [])]


def plan_line(plan: Plan) -> str:
    """Say a plan in one line.

    Example:
        >>> plan_line(Plan(0, 3 << 20, 0.2, 100, 2.0, 9)).partition(";")[0]
        'plan: one process, 3 MiB, under 1 s'
    """
    place = f"{plan.actors} actors" if plan.actors else "one process"
    loading = f" ({plan.loading:.0f} s of it calibrating)" if plan.loading >= 1.0 else ""
    error = f"{expected_error(plan.prediction, plan.least)}; " if plan.prediction else ""
    return (
        f"plan: {place}, {_size(plan.memory)}, {duration(plan.seconds)}{loading}; "
        f"epsilon {epsilon(plan.epsilon)} for a client in every release; {error}"
        f"{_bits(plan.bits)} per report"
    )


def expected_error(found: Prediction, least: int) -> str:
    """Say what error to expect, of batches of which size."""
    expected, most = found.expected, "" if found.expected.exact else "at most "
    note = f" ({expected.note})" if expected.note else ""
    return (
        f"expected squared error {most}{expected.release:.3g} of a release, {most}"
        f"{expected.run:.3g} of the run{note}; batches of about {found.batch:,.0f}, never below "
        f"{least:,}"
    )


def _size(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{max(1, round(size / 2**20))} MiB"


def _bits(bits: int) -> str:
    return "1 bit" if bits == 1 else f"{bits:,} bits"


def duration(seconds: float) -> str:
    """Say how long something takes, roughly."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 120:
        return f"about {seconds:.0f} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} min" if minutes < 120 else f"about {minutes / 60:.1f} h"


def print_summary(summary: dict[str, Any]) -> None:
    """Print the summary of a finished run as a table."""
    columns = [Column("", right=False, bold=True), Column("", right=False, wraps=True)]
    rows = [Row(fact) for fact in _facts(summary)]
    click.echo()
    tables.fitted(columns, rows, tables.width(_PIPE), headed=False).show(_PIPE)
    print_answer(summary, _PIPE)
    print_groups(summary, _PIPE)
    folder = Path(summary["run_dir"])
    click.echo()
    places = [("run directory", folder), ("picture", folder / "plot.png")]
    models = summary.get("learning", {}).get("models", ())
    places += [(Path(model).stem + " model", folder / model) for model in models]
    for name, path in places:
        click.echo(f"{name:<26}{path}")


def _facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    privacy, sent, timing = (summary[key] for key in ("privacy", "communication", "timing"))
    metrics, errors = dict(summary["metrics"]), summary.get("standard_errors", {})
    counts = {name: metrics.pop(name) for name in ("releases", "withheld", "missing")}
    repeat, rounds = summary.get("repeat", 1), summary["rounds"]
    facts = [
        ("scenario", f"{summary['scenario']} (trust: {summary['trust']}, seed {summary['seed']})"),
        ("clients", f"{summary['clients']:,}"),
        ("releases", _releases(counts, rounds, repeat)),
    ]
    if "ended_early" in summary:
        facts.append(("ended early", summary["ended_early"]))
    for name, value in metrics.items():
        error = f" ± {errors[name]:.2g} (standard error)" if name in errors else ""
        facts.append((_words(name), f"{value:.4g}{error}"))
    if "prediction" in summary:
        facts.append(("expected", _predicted(summary["prediction"])))
    each = privacy["per_client"]
    most, median = epsilon(each["max"]), epsilon(each["median"])
    charged = f"{most} for the client charged most, {median} median"
    facts.append(("epsilon", f"{charged}; planned {epsilon(privacy['planned'])}"))
    if "learning" in summary and privacy.get("epsilon_seed") is not None:
        facts.append(("papers' own bound", epsilon(privacy["epsilon_seed"])))
    if privacy["guarantee"] == "none":
        facts.append(("guarantee", "none: the scenario says privacy.guarantee: none"))
    facts.append(("delta", f"{privacy['delta']:.4g}"))
    if privacy["epsilon_local"] is not None:
        facts.append(("epsilon_local", f"{epsilon(privacy['epsilon_local'])} per report"))
    facts.append(("bound", privacy["bound"]))
    facts.append(("which holds for", privacy["assumption"]))
    if "breakdown" in summary:
        facts.append(("presence", privacy["presence"]))
    if "target" in privacy:
        target = privacy["target"]
        text = f"epsilon {target['epsilon']:g} at delta {target['delta']:g}"
        facts.append(("target", f"{text}; reached {epsilon(target['reached'])}"))
    facts.append(("amplification", _amplification(privacy["amplification"])))
    facts.append(("communication", communication(sent)))
    facts.append(
        (
            "wall time",
            f"{timing['wall_s']:.1f} s, {timing['reports_per_s']:,.0f} reports per second",
        )
    )
    return facts


def communication(sent: dict[str, Any]) -> str:
    """Say what reports take, in bits and in the whole bytes that travel, so that it adds up.

    Example:
        >>> communication({"bits_per_report": 10, "reports": 20000, "wire_bytes": 40000})
        '10 bits per report, sent as 2 bytes; 20,000 reports, 40,000 bytes in all'
    """
    bits, reports, size = sent["bits_per_report"], sent["reports"], sent["wire_bytes"]
    whole = -(-bits // 8)
    each = f"sent as {'1 byte' if whole == 1 else f'{whole:,} bytes'}"
    count = f"{reports:,} {'report' if reports == 1 else 'reports'}, {size:,} bytes in all"
    if size > whole * reports:
        return f"{_bits(bits)} per value, {each}, several values per report; {count}"
    # A task of several stages has smaller reports too.
    most = "" if size == whole * reports else "at most "
    return f"{most}{_bits(bits)} per report, {each}; {count}"


def _predicted(found: dict[str, Any]) -> str:
    """Say what was expected, and what was measured of it.

    Example:
        >>> of = {"expected": 2.0, "measured": 1.5}
        >>> _predicted({"is": "bound", "release": of, "run": of, "note": ""})
        'at most 2 of a release (measured 1.5), at most 2 of the run (measured 1.5)'
    """
    most = "at most " if found["is"] == "bound" else ""
    parts = []
    for name, what in (("release", "a release"), ("run", "the run")):
        seen = found[name]["measured"]
        said = "" if seen is None else f" (measured {seen:.4g})"
        parts.append(f"{most}{found[name]['expected']:.4g} of {what}{said}")
    note = f"; {found['note']}" if found["note"] else ""
    return ", ".join(parts) + note


def _amplification(found: dict[str, Any]) -> str:
    """Say which amplification was counted, and why none of the others.

    Example:
        >>> _amplification({"used": "none", "not_used": {"sampled shuffle": "nothing is shuffled"}})
        'none; no sampled shuffle: nothing is shuffled'
    """
    others = (f"no {name}: {why}" for name, why in found["not_used"].items() if name != "none")
    return "; ".join([found["used"], *others])


def _releases(counts: dict[str, float], rounds: int, repeat: int) -> str:
    text = f"{counts['releases']:g} of {rounds:,}"
    if repeat > 1:
        text += f" in each of {repeat} repetitions"
    if counts["withheld"]:
        text += f"; {counts['withheld']:g} withheld (batch below shuffle.min_batch)"
    if counts["missing"]:
        text += f"; {counts['missing']:g} reports missing"
    return text


def _words(name: str) -> str:
    return name.replace("_", " ")
