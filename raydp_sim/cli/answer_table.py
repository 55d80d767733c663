"""What was learned, and by whom, as short tables for a terminal."""

import math
from typing import Any

import click

from raydp_sim.cli import tables
from raydp_sim.cli.tables import Column, Row

_ROWS = 8
_LONGEST = 26


def print_answer(summary: dict[str, Any], otherwise: int) -> None:
    """Print what was estimated, with standard errors and the truth.

    The largest categories, the best actions or the first coordinates.
    Nothing where a run has no answer, or one too long for its summary.

    Args:
        summary: of the run.
        otherwise: columns of characters where there is no terminal.
    """
    found = summary.get("estimate", {})
    if "values" not in found:
        return
    values, errors = found["values"], found["standard_error"]
    shown = list(range(len(values)))
    heads = {"histogram": "category", "actions": "action"}
    if found["kind"] in heads:
        shown.sort(key=lambda each: -values[each])
    truth = summary.get("truth")
    columns = [_first(heads.get(found["kind"], "coordinate"))]
    columns += [Column("estimate"), Column("std. error")]
    if truth is not None:
        columns.append(Column("truth (simulation only)"))
    rows = []
    for each in shown[:_ROWS]:
        cells = [_name(found["names"][each]), f"{values[each]:.4g}", _number(errors[each], ".2g")]
        if truth is not None:
            cells.append(f"{truth['population'][each]:.4g}")
        rows.append(Row(tuple(cells)))
    click.echo()
    tables.fitted(columns, rows, tables.width(otherwise)).show(otherwise)
    if len(values) > _ROWS:
        click.echo(f"... {len(values) - _ROWS:,} more")


def print_groups(document: dict[str, Any], otherwise: int, estimated: bool = True) -> None:
    """Print device classes or regions side by side; nothing where there are none.

    Args:
        document: with the section `breakdown`.
        otherwise: columns of characters where there is no terminal.
        estimated: whether it also says how far the estimate is from each of them.
    """
    found = document.get("breakdown")
    if found is None:
        return
    heads = ["clients", "reports", "never", "epsilon", "most"]
    columns = [_first(found["by"]), *map(Column, [*heads, *(["error"] if estimated else [])])]
    rows = []
    for row in found["groups"]:
        shares = [row[name] for name in ("share_of_clients", "share_of_reports", "never")]
        spent = [row["epsilon"][name] for name in ("median", "max")]
        cells = [*(f"{share:.1%}" for share in shares), *(_number(each, ".3g") for each in spent)]
        if estimated:
            cells.append(_number(row.get("squared_error"), ".2g"))
        rows.append(Row((_name(row["group"]), *cells)))
    click.echo()
    tables.fitted(columns, rows, tables.width(otherwise)).show(otherwise)
    tables.say(
        "clients, reports: shares of all. never: of the group's clients that are in no release. "
        "epsilon, most: of the median client and the one charged most."
        + (
            " error: squared, of the estimate against the group's own mean (simulation)."
            if estimated
            else ""
        ),
        otherwise,
    )


def print_accountants(summary: dict[str, Any], otherwise: int) -> None:
    """Print what each accountant of shuffled gradients says; nothing for other runs.

    Args:
        summary: of the run.
        otherwise: columns of characters where there is no terminal.
    """
    found = summary.get("gradients", {}).get("accountants")
    if not found:
        return
    columns = [_first("accountant"), Column("epsilon"), Column("charged", right=False)]
    columns.append(Column("if", right=False, wraps=True))
    rows = [
        Row(
            (
                row["accountant"],
                _number(row["epsilon"], ".4g"),
                "yes" if row["charged"] else "no",
                row["assumes"],
            )
        )
        for row in found
    ]
    click.echo()
    tables.fitted(columns, rows, tables.width(otherwise)).show(otherwise)


def _first(head: str) -> Column:
    return Column(head, right=False, bold=True)


def _name(text: str) -> str:
    """Shorten a long name of a user's; numbers are never cut."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _number(value: float | None, form: str) -> str:
    if value is None or math.isnan(value):
        return "unknown"
    return "infinite" if math.isinf(value) else f"{value:{form}}"
