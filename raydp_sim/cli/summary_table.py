"""The summary of a finished run as a table on standard output."""

from pathlib import Path
from typing import Any

import click

from raydp_sim.cli import tables
from raydp_sim.cli.answer_table import print_answer, print_groups
from raydp_sim.cli.phrases import bits_of, epsilon, spaced
from raydp_sim.cli.tables import Column, Row

_PIPE = 100  # pipes have no width; a wide one keeps the words of the assumption together


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
        facts.append((spaced(name), f"{value:.4g}{error}"))
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
        return f"{bits_of(bits)} per value, {each}, several values per report; {count}"
    # A task of several stages has smaller reports too.
    most = "" if size == whole * reports else "at most "
    return f"{most}{bits_of(bits)} per report, {each}; {count}"


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
    text = f"{counts['releases']:,.10g} of {rounds:,}"
    if repeat > 1:
        text += f" in each of {repeat} repetitions"
    if counts["withheld"]:
        text += f"; {counts['withheld']:,.10g} withheld (batch below shuffle.min_batch)"
    if counts["missing"]:
        text += f"; {counts['missing']:,.10g} reports missing"
    return text
