"""The views of several analysts as a table for a terminal."""

import textwrap
from typing import Any

import click

from raydp_sim.cli import tables
from raydp_sim.cli.phrases import epsilon
from raydp_sim.cli.tables import Column, Row

_ROUNDING = 1e-12  # what sums of shares are off by, of estimates that are exact


def print_views(summary: dict[str, Any], otherwise: int) -> None:
    """Print what each analyst may have learned, how far off it is, and what keys it was handed.

    Args:
        summary: of the run; nothing is printed where it has no views.
        otherwise: columns of characters where there is no terminal.
    """
    found = summary.get("views")
    if found is None:
        return
    heads = ("level", "a report's", "proved", "l1 error", "l2 error", "expected l2")
    columns = [Column("view", right=False, bold=True), *map(Column, heads), Column("key bits")]
    columns.append(Column("shuffling", right=False))
    click.echo()
    what = f"epsilon{_delta(found['rows'])}"
    _say(
        f"What each view may tell of a client ({what}), how far off it is, and its keys", otherwise
    )
    click.echo()
    rows = [Row(_cells(row)) for row in found["rows"]]
    tables.fitted(columns, rows, tables.width(otherwise)).show(otherwise)
    for why in dict.fromkeys(row["shuffling"] for row in found["rows"] if ":" in row["shuffling"]):
        word, _, reason = why.partition(": ")
        names = ", ".join(row["view"] for row in found["rows"] if row["shuffling"] == why)
        count = "not" if word == "no" else word
        _say(f"shuffling counts {count} for {names}: {reason}", otherwise)
    keys = found["keys"]
    lines = [
        f"keys: {keys['drawn']:,.0f} bits of entropy drawn ({keys['entropy_per_report']:.4g} per "
        f"report), {keys['delivered']:,.0f} bits delivered, {found['path']}; ids of records "
        f"{keys['record_ids']:,.0f} bits",
        "a view is that of a reader who is shown nothing that the others have computed",
        "errors are means over releases: l1 of distributions, l2 squared, of raw estimates",
        *(_found(row["view"], row["errors"]) for row in found["rows"] if "errors" in row),
    ]
    if "promotions" in found:
        lines.append(_promoted(found["promotions"]))
    for line in lines:
        _say(line, otherwise)


def _delta(rows: list[dict[str, Any]]) -> str:
    """Say at which delta epsilons hold; nothing where all are of pure guarantees.

    Example:
        >>> _delta([{"delta": 1e-6}, {"delta": 0.0}, {}])
        ' at delta 1e-06 where shuffling counts'
    """
    largest = max(row.get("delta", 0.0) for row in rows)
    return f" at delta {largest:g} where shuffling counts" if largest else ""


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    level = str(row["level"])
    if "promoted_to" in row:
        level += f" to {row['promoted_to']}"
    proved = "none" if row["epsilon"] is None else epsilon(row["epsilon"])
    errors = row.get("errors", {})
    measured = tuple(_number(errors.get(name)) for name in ("l1_simplex", "l2_raw"))
    bits = "" if "key_bits" not in row else f"{row['key_bits']:,.0f}"
    alone = epsilon(row["epsilon_local"])
    expected = _number(errors.get("predicted_l2_raw"))
    return (
        row["view"],
        level,
        alone,
        proved,
        *measured,
        expected,
        bits,
        row["shuffling"].partition(":")[0],
    )


def _found(name: str, errors: dict[str, Any]) -> str:
    """Say which heavy hitters a reader has found, and whether it has recovered every record.

    Example:
        >>> _found("public", {"hitters": 4.0, "precision": 1.0, "recall": 0.5})
        'public: 4 heavy hitters a release, precision 1, recall 0.5'
    """
    text = f"{name}: {errors['hitters']:.3g} heavy hitters a release, precision "
    text += f"{errors['precision']:.3g}, recall {errors['recall']:.3g}"
    if "recovered" in errors:
        whole = "every record recovered" if errors["recovered"] else "RECORDS RECOVERED WRONGLY"
        text += f"; {whole} (each compared with what was held)"
    return text


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) > _ROUNDING else "0"


def _say(line: str, otherwise: int) -> None:
    """Print a line within the width that there is."""
    click.echo(textwrap.fill(line, tables.width(otherwise), subsequent_indent="  "))


def _promoted(found: dict[str, Any]) -> str:
    """Say what a promotion did for earlier releases.

    Example:
        >>> found = {"releases": 2, "promoted": 5, "missing": 1, "l2_before": 0.5, "l2_after": 0.25}
        >>> _promoted(found)
        'promotion: 5 earlier reports of 2 releases opened further, 1 missing; l2 error 0.5 to 0.25'
    """
    opened = f"{found['promoted']:,} earlier reports of {found['releases']} releases opened further"
    error = f"l2 error {found['l2_before']:.3g} to {found['l2_after']:.3g}"
    return f"promotion: {opened}, {found['missing']:,} missing; {error}"
