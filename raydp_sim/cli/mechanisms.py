"""`raydp-sim mechanisms`: every mechanism at one privacy budget."""

import json
from itertools import groupby

import click

from raydp_sim.cli import accounting, tables
from raydp_sim.cli.counts import integer
from raydp_sim.cli.pictures import picture_file
from raydp_sim.cli.tables import Column, Row
from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.compare import Budget, Entry, Offer, catalogue

_EPILOG = """\b
Example:
  raydp-sim mechanisms
  raydp-sim mechanisms --dimension 1 --epsilon 0.5
  raydp-sim mechanisms --dimension 300 --clients 100000 --plot mechanisms.png
"""
_PIPE = 130  # pipes have no width; a wide one keeps a mechanism on its line
_WORDS = 12
_MOST = {"--dimension": 100_000, "--clients": 10**8}


@click.command("mechanisms", epilog=_EPILOG)
@click.option(
    "--dimension",
    type=int,
    default=100,
    show_default=True,
    help="Of the vectors, and number of categories.",
)
@click.option("--clients", type=integer, default=10_000, show_default=True, help="In the mean.")
@click.option(
    "--epsilon",
    type=float,
    default=1.0,
    show_default=True,
    help="Of a report in the local model, of the release behind a shuffler.",
)
@click.option(
    "--delta",
    type=float,
    default=1e-6,
    show_default=True,
    help="Of the release behind a shuffler, and for Gaussian noise.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--plot", metavar="FILE.png", help="Draw error against bits in both models.")
def command(
    dimension: int, clients: int, epsilon: float, delta: float, as_json: bool, plot: str | None
) -> None:
    """Compare all mechanisms: what a report takes on the wire and how far off the mean is.

    Inputs have radius 1. The error is the worst-case mean squared error of the mean of all clients.
    Errors compare within one domain only; each is sorted by its error in the local model. Behind a
    shuffler each gets the largest local guarantee that numerical accounting allows.
    """
    for option, value in (("--dimension", dimension), ("--clients", clients)):
        accounting.counted(option, value)
        if value > _MOST[option]:
            raise bad_field(option, value, f"it must be at most {_MOST[option]:g}")
    accounting.positive("--epsilon", epsilon)
    if not 1e-4 <= epsilon <= 20.0:
        raise bad_field("--epsilon", epsilon, "it must lie between 0.0001 and 20")
    accounting.proper("--delta", delta)
    path = picture_file(plot)
    budget = Budget(dimension, clients, epsilon, delta)
    with accounting.waiting("comparing") as say:
        entries = catalogue(budget, progress=say)
    if path is not None:
        # Matplotlib is slow to import.
        from raydp_sim.cli.mechanisms_plot import draw

        draw(entries, budget, path)
    if as_json:
        click.echo(json.dumps([entry.document() for entry in entries], indent=2))
        return
    _show(entries, budget)
    if path is not None:
        click.echo(f"picture: {path}")


def _show(entries: list[Entry], budget: Budget) -> None:
    title = f"Mean of {budget.clients:,} clients at epsilon {budget.epsilon:g}"
    tables.say(f"{title}; behind a shuffler at delta {budget.delta:g}")
    columns = [
        Column("", right=False),
        *(Column("bits"), Column("MSE"), Column("", right=False)),
        *(Column("shuffled eps"), Column("bits"), Column("MSE"), Column("", right=False)),
        *(Column(head, right=False) for head in ("unbiased", "guarantee")),
        Column("source", right=False, wraps=True),
    ]
    rows = []
    for domain, group in groupby(entries, key=lambda entry: (entry.domain, entry.dimension)):
        if domain[0]:
            rows.append(Row((_title(*domain),)))
            rows.extend(Row(tuple(_cells(entry))) for entry in group)
    room = tables.width(_PIPE) - _WORDS
    laid = tables.fitted(columns, rows, room, ("source",), ruled=True)
    if laid.left_out:
        room = tables.width(_PIPE)
        laid = tables.fitted(columns, rows, room, ("source", "unbiased", "guarantee"), ruled=True)
    laid.show(_PIPE)
    laid.explain()
    for text in _reasons(entries):
        tables.say(text, otherwise=_PIPE, dim=True)
    tables.say(
        "MSE: worst case of the mean, radius 1; ~ marks a bound that no input need attain. "
        "Compare within a domain only. Trust differs: local guarantees hold against everyone, "
        "shuffled ones if the shuffler and the other clients are honest, central ones if the "
        "aggregator is.",
        otherwise=_PIPE,
    )


def _title(domain: str, dimension: int) -> str:
    if domain == "category":
        return f"{dimension:,} categories"
    return domain if domain in ("scalar", "bit") else f"{domain}, d = {dimension:,}"


def _cells(entry: Entry) -> list[str]:
    shuffled = entry.shuffled or Offer()
    loss = "" if shuffled.epsilon_local is None else f"{shuffled.epsilon_local:.4g}"
    guarantee = {"local": entry.guarantee, "shuffle": "shuffled only", "central": "central"}
    return [
        f"  {entry.kind}",
        *_numbers(entry.own),
        loss,
        *_numbers(shuffled),
        "yes" if entry.unbiased else "no",
        guarantee[entry.trust],
        entry.source,
    ]


def _numbers(offer: Offer) -> list[str]:
    if offer.mse is None or offer.bits is None:
        return ["", "", ""]
    return [f"{offer.bits:,}", f"{offer.mse:.4g}", "~" if offer.mse_is == "bound" else ""]


def _reasons(entries: list[Entry]) -> list[str]:
    """Group the kinds without numbers by what they say."""
    reasons: dict[str, list[str]] = {}
    for entry in entries:
        # That central noise is not the clients' is clear without words.
        shuffled = None if entry.trust == "central" else entry.shuffled
        own = "central" if entry.trust == "central" else "local"
        for model, offer in ((own, entry.own), ("shuffled", shuffled)):
            if offer is not None and offer.why:
                why = offer.why.replace(f"'{entry.kind}'", "it")
                reasons.setdefault(f"{model}: {why}", []).append(entry.kind)
        if entry.bias:
            reasons.setdefault(f"biased: {entry.bias}", []).append(entry.kind)
    return [f"{', '.join(kinds)}, {why}" for why, kinds in reasons.items()]
