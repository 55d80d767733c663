"""The summary of a finished run as a table on standard output."""

from pathlib import Path
from typing import Any

import click

from raydp_sim.cli import tables
from raydp_sim.cli.answer_table import print_accountants, print_answer, print_groups
from raydp_sim.cli.phrases import bits_of, epsilon, spaced
from raydp_sim.cli.tables import Column, Row
from raydp_sim.cli.view_table import print_views

_PIPE = 100  # pipes have no width; a wide one keeps the words of the assumption together


def print_summary(summary: dict[str, Any]) -> None:
    """Print the summary of a finished run as a table."""
    columns = [Column("", right=False, bold=True), Column("", right=False, wraps=True)]
    rows = [Row(fact) for fact in facts(summary)]
    click.echo()
    tables.fitted(columns, rows, tables.width(_PIPE), headed=False).show(_PIPE)
    print_answer(summary, _PIPE)
    print_groups(summary, _PIPE)
    print_views(summary, _PIPE)
    print_accountants(summary, _PIPE)
    folder = Path(summary["run_dir"])
    click.echo()
    places = [("run directory", folder), ("picture", folder / "plot.png")]
    models = summary.get("learning", {}).get("models", ())
    places += [(Path(model).stem + " model", folder / model) for model in models]
    for name, path in places:
        click.echo(f"{name:<26}{path}")


def facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what is said of a finished run, each by its name."""
    privacy, sent, timing = (summary[key] for key in ("privacy", "communication", "timing"))
    metrics, errors = dict(summary["metrics"]), summary.get("standard_errors", {})
    counts = {name: metrics.pop(name) for name in ("releases", "withheld", "missing")}
    repeat, rounds = summary.get("repeat", 1), summary["rounds"]
    found = [
        ("scenario", f"{summary['scenario']} (trust: {summary['trust']}, seed {summary['seed']})"),
        ("clients", f"{summary['clients']:,}"),
        ("releases", _releases(counts, rounds, repeat)),
    ]
    if "bandit" in summary:
        # Of contextual bandits the certificate is about the linear one, and not about chance.
        lost = "linear regret" if "linear_regret" in summary["metrics"] else "regret"
        found += _recommended(summary["bandit"], lost)
    if "gradients" in summary:
        said = summary["gradients"]
        names = {"algorithm": "algorithm", "shown": "released", "order": "order"}
        names |= {"accountant": "accountant", "public": "public records", "tuning": "step size"}
        found += [(name, said[key]) for key, name in names.items() if key in said]
    if "ended_early" in summary:
        found.append(("ended early", summary["ended_early"]))
    learning = summary.get("learning", {})
    for name in ("stopped", "best"):
        if name in learning:
            found.append((name, learning[name]))
    for name, value in metrics.items():
        error = f" ± {errors[name]:.2g} (standard error)" if name in errors else ""
        found.append((spaced(name), f"{value:.4g}{error}"))
    if "prediction" in summary:
        found.append(("expected", _predicted(summary["prediction"])))
    each = privacy["per_client"]
    most, median = epsilon(each["max"]), epsilon(each["median"])
    charged = f"{most} for the client charged most, {median} median"
    found.append(("epsilon", f"{charged}; planned {epsilon(privacy['planned'])}"))
    last = summary.get("views", {}).get("rows", [{}])[-1]
    if last.get("epsilon") is not None and last["epsilon"] < privacy["epsilon"]:
        proved = f"{epsilon(last['epsilon'])} at delta {last['delta']:g}"
        found.append(("epsilon, shuffled", f"{proved} for {last['view']}, by views below"))
    own = "learning" in summary or "gradients" in summary
    if own and privacy.get("epsilon_seed") is not None:
        found.append(("papers' own bound", epsilon(privacy["epsilon_seed"])))
    if privacy["guarantee"] == "none":
        found.append(("guarantee", "none: the scenario says privacy.guarantee: none"))
    found.append(("delta", f"{privacy['delta']:.4g}"))
    if privacy["epsilon_local"] is not None:
        found.append(("epsilon_local", f"{epsilon(privacy['epsilon_local'])} per report"))
    found.append(("bound", privacy["bound"]))
    found.append(("which holds for", privacy["assumption"]))
    if "breakdown" in summary:
        found.append(("presence", privacy["presence"]))
    if "target" in privacy:
        target = privacy["target"]
        text = f"epsilon {target['epsilon']:g} at delta {target['delta']:g}"
        found.append(("target", f"{text}; reached {epsilon(target['reached'])}"))
    found.append(("amplification", _amplification(privacy["amplification"])))
    found.append(("communication", communication(sent) + _beside(sent)))
    found.append(
        (
            "wall time",
            f"{timing['wall_s']:.1f} s, {timing['reports_per_s']:,.0f} reports per second",
        )
    )
    return found


def _recommended(found: dict[str, Any], lost: str) -> list[tuple[str, str]]:
    """Say which action to play, how surely, and what learning may have cost at most."""
    action = found["name"]
    if found["radius"] is not None:
        action += f", which earns {found['estimate']:.4g} within {found['radius']:.3g}"
    left = f"{found['active']:,} of {found['actions']:,} actions are left"
    played = f"{found['rounds']:,} of {found['horizon']:,} rounds in {found['batches']} batches"
    void = f", {found['void']} void and played again" if found["void"] else ""
    certificate = "withheld: the table of policies is a sample, and may lack the best"
    if found["certificate"] is not None:
        sure = "if the text's own radii hold, which is not proved"
        if found["confidence"] is not None:
            sure = f"with probability {found['confidence']:.7g}"
        certificate = f"{found['certificate']:.4g}: the {lost} is no larger, {sure}"
    return [
        ("recommended", f"{action}; {left}"),
        ("played", f"{played}{void}; the others play what is recommended and report nothing"),
        ("certificate", certificate),
        ("protected", found["protects"]),
    ]


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
        shorter = sent.get("bits_per_client_as_histogram", 0)
        if 0 < shorter < sent["bits_per_client"]:
            each += f", {bits_of(sent['bits_per_client'])} per client ({shorter:,} as a histogram)"
        return f"{bits_of(bits)} per value, {each}, several values per report; {count}"
    # A task of several stages has smaller reports too.
    most = "" if size == whole * reports else "at most "
    return f"{most}{bits_of(bits)} per report, {each}; {count}"


def _beside(sent: dict[str, Any]) -> str:
    """Say what goes with reports where analysts hold keys.

    Example:
        >>> _beside({"record_id_bits": 64, "key_bits_per_report": 3})
        '; besides, 64 bits of record id and 3 bits of keys per report'
    """
    if "record_id_bits" not in sent:
        return ""
    ids, keys = sent["record_id_bits"], sent["key_bits_per_report"]
    return f"; besides, {bits_of(ids)} of record id and {bits_of(keys)} of keys per report"


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
        text += f"; {counts['withheld']:,.10g} withheld (batch too small)"
    if counts["missing"]:
        text += f"; {counts['missing']:,.10g} reports missing"
    return text
