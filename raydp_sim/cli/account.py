"""`raydp-sim account`: the privacy calculator, every bound side by side."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from raydp_sim.cli import accounting, tables
from raydp_sim.cli.accounting import MECHANISMS, Run
from raydp_sim.cli.counts import integer
from raydp_sim.cli.pictures import picture_file
from raydp_sim.errors import InputError, bad_field
from raydp_sim.privacy.accountant import Account, account, calibrate, rdp_table
from raydp_sim.privacy.composition.search import watched
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import (
    GaussianRelease,
    Release,
    SelfSampledGaussianRelease,
    SelfSampledShuffle,
    SubsampledGaussian,
    SubsampledGaussianRelease,
)

_EPILOG = """\b
Example:
  raydp-sim account shuffle --epsilon0 2 --clients 1000000 --sampled 1000 --rounds 100000 \\
    --delta 1e-8
  raydp-sim account calibrate --epsilon 1 --delta 1e-8 --clients 1000000 --sampled 1000
"""
_SHUFFLE = """\b
Example:
  raydp-sim account shuffle --epsilon0 2 --clients 1000000 --sampled 1000 --rounds 100000 \\
    --delta 1e-8
  raydp-sim account shuffle --epsilon0 3 --clients 100000 --delta 1e-6 --mechanism krr \\
    --alphabet 100
  raydp-sim account shuffle --epsilon0 2 --clients 10000 --delta 1e-8 --mechanism gaussian \\
    --delta0 1e-6 --dimension 10
  raydp-sim account shuffle --epsilon0 0.5 --clients 1000000 --rounds 100000 --delta 1e-8 \\
    --plot epsilon.png --over T
"""
_RDP = """\b
Example:
  raydp-sim account rdp --epsilon0 0.1 --clients 10000 --alpha 100
  raydp-sim account rdp --epsilon0 2 --clients 1000000 --sampled 1000 --alpha 28 --json
"""
_CALIBRATE = """\b
Example:
  raydp-sim account calibrate --epsilon 1 --delta 1e-8 --clients 1000000 --sampled 1000 \\
    --rounds 100000
"""
_GAUSSIAN = """\b
Example:
  raydp-sim account gaussian --noise-multiplier 1.1 --rate 0.01 --rounds 10000 --delta 1e-5
  raydp-sim account gaussian --noise-multiplier 1.1 --clients 60000 --sampled 600 --rounds 100 \\
    --delta 1e-5
"""
_LARGEST_ORDER = 1e6

Command = TypeVar("Command", bound=Callable[..., Any])


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_CLIENTS = click.option("--clients", type=integer, required=True, help="Eligible clients.")
_SAMPLED = click.option(
    "--sampled",
    type=integer,
    help="Clients drawn per round, uniformly and in secret; default: all.",
)
_RUN = _options(
    click.option("--rounds", type=integer, default=1, show_default=True, help="Rounds of the run."),
    click.option("--delta", type=float, required=True, help="Of the whole run, in (0, 1)."),
    click.option(
        "--mechanism",
        type=click.Choice(MECHANISMS),
        help="The randomizer, for smaller bounds; gaussian has no others.",
    ),
    click.option("--alphabet", type=int, help="Symbols, for krr, hadamard and vqsgd (corners)."),
    click.option("--delta0", type=float, help="With --epsilon0 of one report, for gaussian."),
    click.option("--dimension", type=int, help="Of the vectors, for gaussian.  [default: 1]"),
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_EPSILON0 = click.option(
    "--epsilon0", type=float, required=True, help="Local loss of one message, > 0."
)


@click.group("account", epilog=_EPILOG)
def command() -> None:
    """Account for privacy: what a run costs, by every bound there is."""


@command.command("shuffle", epilog=_SHUFFLE)
@_EPSILON0
@_CLIENTS
@_SAMPLED
@click.option(
    "--self-sampling", "probability", type=float, help="Each client joins with this probability."
)
@_RUN
@click.option(
    "--honest-fraction",
    "honest",
    type=float,
    default=1.0,
    help="Of the clients; the others tell the observer what they sent.",
)
@_JSON
@click.option("--plot", metavar="FILE.png", help="Draw epsilon against --over.")
@click.option(
    "--over",
    type=click.Choice(["n", "T", "epsilon0"]),
    help="What --plot varies: clients, rounds or the local loss.  [default: T]",
)
def shuffle(
    epsilon0: float, as_json: bool, plot: str | None, over: str | None, **given: Any
) -> None:
    """Print every bound on a run of shuffles, best first.

    Each client sends one message of an epsilon0-LDP randomizer per round in which it takes part.
    """
    accounting.positive("--epsilon0", epsilon0)
    run = Run(**given)
    path = _picture(plot, over)
    event, delta = run.charged(epsilon0)
    with accounting.waiting("accounting") as say:
        found = account([(event, run.rounds)], delta, progress=say)
    assert found.best is not None
    sentence = run.assumption(found.best)
    if path is not None:
        # Matplotlib is slow to import.
        from raydp_sim.cli.account_plot import draw

        with accounting.waiting("drawing") as say:
            draw(run, epsilon0, over or "T", found, path, say)
    if as_json:
        made = accounting.document(found, "epsilon") | {"assumption": sentence}
        click.echo(json.dumps(made, indent=2))
        return
    title = f"epsilon at delta {run.delta:g}, epsilon0 {epsilon0:g}, {_rounds(run)}"
    accounting.show(found, "epsilon", title, sentence)
    if path is not None:
        click.echo(f"picture: {path}")


def _rounds(run: Run) -> str:
    return "one round" if run.rounds == 1 else f"{run.rounds:,} rounds"


def _picture(plot: str | None, over: str | None) -> Path | None:
    if plot is None and over is not None:
        raise bad_field("--over", over, "it needs --plot FILE.png")
    return picture_file(plot)


@command.command("rdp", epilog=_RDP)
@_EPSILON0
@_CLIENTS
@_SAMPLED
@click.option("--alpha", type=float, required=True, help="Order of the divergence, > 1.")
@_JSON
def rdp(epsilon0: float, clients: int, sampled: int | None, alpha: float, as_json: bool) -> None:
    """Print every bound on the Renyi divergence of one round.

    With --sampled, poisson_mixture is of another sampling: every client joins with probability
    sampled/clients by its own coin.
    """
    accounting.positive("--epsilon0", epsilon0)
    if not 1.0 < alpha < float("inf"):
        raise bad_field("--alpha", alpha, "it must be > 1")
    if alpha > _LARGEST_ORDER:
        raise bad_field("--alpha", alpha, f"it must be at most {_LARGEST_ORDER:g}")
    run = Run(clients, sampled)
    with accounting.waiting("accounting"):
        found = rdp_table(run.event(epsilon0), alpha)
        if sampled is not None:
            found = _with_coins(found, epsilon0, clients, sampled, alpha)
    sentence = "No proved bound applies." if found.best is None else run.assumption(found.best)
    if as_json:
        made = accounting.document(found, "rdp") | {"assumption": sentence}
        click.echo(json.dumps(made, indent=2))
        return
    title = f"Renyi divergence of order {alpha:g} of one round, epsilon0 {epsilon0:g}"
    accounting.show(found, "rdp", title, sentence)


def _with_coins(
    found: Account, epsilon0: float, clients: int, sampled: int, alpha: float
) -> Account:
    """Add the bound on clients that join by their own coins; it is not of the same sampling."""
    coins = rdp_table(SelfSampledShuffle(epsilon0, clients, sampled / clients), alpha)
    note = f"for clients that join with probability {sampled / clients:g} by their own coins"
    mixture = replace(coins["poisson_mixture"], note=note)
    lines = [line for line in found.lines if line.name != mixture.name]
    return Account((*lines, mixture), found.best)


@command.command("calibrate", epilog=_CALIBRATE)
@click.option("--epsilon", type=float, required=True, help="Of the whole run, > 0.")
@_CLIENTS
@_SAMPLED
@_RUN
@_JSON
def calibration(epsilon: float, as_json: bool, **given: Any) -> None:
    """Print the largest epsilon0 that a run within (epsilon, delta) allows, up to 20."""
    accounting.positive("--epsilon", epsilon)
    run = Run(**given)
    with accounting.waiting("calibrating") as say:
        tries = itertools.count(1)

        def tell(loss: float, spent: float) -> None:
            say(f"try {next(tries)}, epsilon0 {loss:.4g} gives epsilon {spent:.4g}")

        try:
            with watched(tell):
                epsilon0 = calibrate(epsilon, run.delta, run.event, run.rounds)
        except NotApplicable:
            remedy = "no epsilon0 of at least 2e-5 meets it; ask for more, or for fewer rounds"
            raise bad_field("--epsilon", epsilon, remedy) from None
        found = account([(run.event(epsilon0), run.rounds)], run.delta)
    assert found.best is not None
    if found.epsilon > epsilon:  # the search has evaluated this very value
        raise InputError(f"--epsilon is {epsilon}; no epsilon0 was found that meets it")
    sentence = run.assumption(found.best)
    if as_json:
        made = {"epsilon0": epsilon0, "epsilon": found.epsilon, "bound": found.best}
        click.echo(json.dumps(made | {"delta": run.delta, "assumption": sentence}, indent=2))
        return
    click.echo(f"epsilon0  {epsilon0:.6g}" + (", the largest tried" if epsilon0 >= 20.0 else ""))
    click.echo(f"epsilon   {found.epsilon:.6g} at delta {run.delta:g}, {_rounds(run)}")
    click.echo(f"bound     {found.best}\n")
    tables.say(sentence)


@command.command("gaussian", epilog=_GAUSSIAN)
@click.option(
    "--noise-multiplier",
    "noise",
    type=float,
    required=True,
    help="Standard deviation over l2 sensitivity.",
)
@click.option("--rate", type=float, help="Poisson sampling rate in (0, 1]; default: no sampling.")
@click.option("--clients", type=integer, help="Eligible clients, of whom some are sampled.")
@click.option("--sampled", type=integer, help="Clients sampled uniformly, in secret.")
@click.option("--probability", type=float, help="Of each client's own secret coin, in (0, 1].")
@click.option("--rounds", type=integer, default=1, show_default=True, help="Releases.")
@click.option("--delta", type=float, required=True, help="Of all releases, in (0, 1).")
@_JSON
def gaussian(
    noise: float,
    rate: float | None,
    clients: int | None,
    sampled: int | None,
    probability: float | None,
    rounds: int,
    delta: float,
    as_json: bool,
) -> None:
    """Print epsilon of a trusted aggregator's releases with Gaussian noise.

    With --rate neighbours add or remove one record of a Poisson sample; with --clients, and
    --sampled or --probability, they replace one client's data, and how many take part is known.
    """
    accounting.positive("--noise-multiplier", noise)
    accounting.counted("--rounds", rounds)
    accounting.proper("--delta", delta)
    event: Release = GaussianRelease(noise)
    sentence = "holds against whoever sees the releases; the aggregator is trusted"
    if rate is not None:
        if (clients, sampled, probability) != (None, None, None):
            raise bad_field("--rate", rate, "it is of records; leave out what is of clients")
        accounting.proper("--rate", rate, closed=True)
        event = SubsampledGaussian(noise, rate)
        sentence += (
            f"; each record is used with probability {rate:g}, in secret; neighbours add or remove "
            "one record; charged to everyone eligible."
        )
    elif (clients, sampled, probability) != (None, None, None):
        event = _of_a_sample(noise, clients, sampled, probability)
        sentence += (
            "; who takes part is secret, how many is not; neighbours replace one client's data; "
            "charged to everyone eligible."
        )
    else:
        sentence += "; neighbours are those of the sensitivity; charged to everyone in the data."
    with accounting.waiting("accounting") as say:
        found = account([(event, rounds)], delta, progress=say)
    sentence = f"{found.best} {sentence}"
    if as_json:
        made = accounting.document(found, "epsilon") | {"assumption": sentence}
        click.echo(json.dumps(made, indent=2))
        return
    title = f"epsilon at delta {delta:g}, noise multiplier {noise:g}, {rounds:,} releases"
    accounting.show(found, "epsilon", title, sentence)


def _of_a_sample(
    noise: float, clients: int | None, sampled: int | None, probability: float | None
) -> Release:
    """Return a release of a secret sample of clients; refuse half of what says how it is drawn."""
    if clients is None:
        raise bad_field("--clients", clients, "say how many are eligible")
    accounting.counted("--clients", clients)
    if (sampled is None) == (probability is None):
        raise bad_field("--sampled", sampled, "give either --sampled or --probability")
    if probability is not None:
        accounting.proper("--probability", probability, closed=True)
        return SelfSampledGaussianRelease(noise, clients, probability)
    assert sampled is not None
    accounting.counted("--sampled", sampled)
    if sampled > clients:
        raise bad_field("--sampled", sampled, f"at most --clients, which is {clients}")
    return SubsampledGaussianRelease(noise, clients, sampled)
