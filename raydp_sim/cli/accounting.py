"""What `raydp-sim account` checks, builds and says."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console

from raydp_sim.cli import tables
from raydp_sim.cli.tables import Column, Row
from raydp_sim.errors import InputError, bad_field
from raydp_sim.privacy.accountant import Account, Line
from raydp_sim.privacy.bound import run_bounds
from raydp_sim.privacy.curves.collusion import among_honest
from raydp_sim.privacy.curves.gaussian import gaussian_sigma
from raydp_sim.privacy.curves.variation import BLANKETS
from raydp_sim.privacy.events import (
    GaussianShuffle,
    Release,
    SelfSampledShuffle,
    Shuffle,
    SubsampledGaussianShuffle,
    SubsampledShuffle,
)

GAUSSIAN = "gaussian"
MECHANISMS = (*BLANKETS, "vqsgd", GAUSSIAN)
_PIPE = 100
_ALPHABET = ("krr", "hadamard", "vqsgd")
_LARGEST = {"--epsilon0": 20.0, "--clients": 10**12, "--rounds": 10**12}


def positive(option: str, value: float) -> None:
    """Refuse a real number that is not above 0, or so large that nothing is protected."""
    if not 0.0 < value < math.inf:
        raise bad_field(option, value, "it must be > 0")
    if value > _LARGEST.get(option, math.inf):
        raise bad_field(option, value, f"it must be at most {_LARGEST[option]:g}")


def counted(option: str, value: int) -> None:
    """Refuse a count below 1 or beyond what is meant by one."""
    if value < 1:
        raise bad_field(option, value, "it must be at least 1")
    if value > _LARGEST.get(option, math.inf):
        raise bad_field(option, value, f"it must be at most {_LARGEST[option]:g}")


def proper(option: str, value: float, closed: bool = False) -> None:
    """Refuse what lies outside of (0, 1), or (0, 1] if closed."""
    if not (0.0 < value < 1.0 or (closed and value == 1.0)):
        raise bad_field(option, value, f"it must lie in (0, 1{']' if closed else ')'}")


@dataclass(frozen=True)
class Run:
    """A run as the options describe it, all but the local loss.

    Attributes:
        clients: eligible.
        sampled: of them uniformly per round; None: all take part.
        probability: with which each joins by its own coin; None: no coins.
        rounds: how many.
        delta: of the run.
        mechanism: a randomizer's name; None: any.
        alphabet: of that randomizer.
        honest: fraction of the clients that do not collude.
        delta0: that goes with the local loss of Gaussian noise.
        dimension: of the vectors that have it.
    """

    clients: int
    sampled: int | None = None
    probability: float | None = None
    rounds: int = 1
    delta: float = 1e-6
    mechanism: str | None = None
    alphabet: int | None = None
    honest: float = 1.0
    delta0: float | None = None
    dimension: int | None = None

    def __post_init__(self) -> None:
        counted("--clients", self.clients)
        counted("--rounds", self.rounds)
        proper("--delta", self.delta)
        if self.sampled is not None:
            counted("--sampled", self.sampled)
            if self.sampled > self.clients:
                remedy = f"it must be at most --clients, {self.clients}"
                raise bad_field("--sampled", self.sampled, remedy)
        if self.probability is not None:
            proper("--self-sampling", self.probability, closed=True)
            if self.sampled is not None:
                raise bad_field("--self-sampling", self.probability, "give it or --sampled")
        if not 0.0 <= self.honest <= 1.0:
            raise bad_field("--honest-fraction", self.honest, "it must lie in [0, 1]")
        self._check_alphabet()
        self._check_noise()

    def _check_noise(self) -> None:
        if self.mechanism == GAUSSIAN:
            if self.delta0 is None:
                raise InputError(f"--delta0 is missing; --mechanism {GAUSSIAN} needs it")
            proper("--delta0", self.delta0)
            counted("--dimension", 1 if self.dimension is None else self.dimension)
            if self.probability is not None:
                remedy = f"nothing is proved for it with --mechanism {GAUSSIAN}; leave it out"
                raise bad_field("--self-sampling", self.probability, remedy)
            return
        for option, value in (("--delta0", self.delta0), ("--dimension", self.dimension)):
            if value is not None:
                raise bad_field(option, value, f"leave it out unless --mechanism is {GAUSSIAN}")

    def _check_alphabet(self) -> None:
        if self.mechanism in _ALPHABET:
            if self.alphabet is None:
                raise InputError(f"--alphabet is missing; --mechanism {self.mechanism} needs it")
            if self.alphabet < 2:
                raise bad_field("--alphabet", self.alphabet, "it must be at least 2")
            if self.mechanism == "vqsgd" and self.alphabet % 2:
                remedy = "vqsgd has two corners per dimension; it must be even"
                raise bad_field("--alphabet", self.alphabet, remedy)
        elif self.alphabet is not None:
            remedy = f"leave it out unless --mechanism is {' or '.join(_ALPHABET)}"
            raise bad_field("--alphabet", self.alphabet, remedy)

    def event(self, epsilon0: float) -> Release:
        """Return one round as if all clients were honest."""
        if self.mechanism == GAUSSIAN:
            noise = gaussian_sigma(epsilon0, self.delta0 or 0.0)
            dimension = self.dimension or 1
            if self.sampled is None:
                return GaussianShuffle(noise, self.clients, dimension)
            return SubsampledGaussianShuffle(noise, self.clients, self.sampled, dimension)
        named = (self.mechanism, self.alphabet)
        if self.sampled is not None:
            return SubsampledShuffle(epsilon0, self.clients, self.sampled, *named)
        if self.probability is not None:
            return SelfSampledShuffle(epsilon0, self.clients, self.probability, *named)
        return Shuffle(epsilon0, self.clients, *named)

    def charged(self, epsilon0: float) -> tuple[Release, float]:
        """Return one round of the honest clients, and the delta left for it."""
        return among_honest(self.event(epsilon0), self.honest, self.rounds, self.delta)

    def assumption(self, bound: str) -> str:
        """Say of which view, against whom and under which assumption a bound holds."""
        rounds = "the round" if self.rounds == 1 else f"all {self.rounds:,} rounds"
        clients = "the clients"
        if self.sampled is not None:
            who = (
                f"{self.sampled:,} of {self.clients:,} clients are drawn per round uniformly, in "
                "secret and independently of the data; charged to every eligible client"
            )
        elif self.probability is not None:
            who = (
                f"each of {self.clients:,} clients joins with probability {self.probability:g} by "
                "its own secret coin, how many do is seen; charged to every eligible client"
            )
        else:
            who = f"all {self.clients:,} clients take part, which is no secret, and are charged"
        by_name = {known.name for known in run_bounds() if known.by_name}
        specific = self.mechanism is not None and bound in by_name
        what = f"every client runs {self.mechanism}" if specific else "any epsilon0-LDP randomizer"
        if self.mechanism == GAUSSIAN:
            where = f"a vector of {self.dimension} dimensions" if self.dimension else "a number"
            what = f"every client adds Gaussian noise to {where}, by itself epsilon0 at "
            what += f"delta {self.delta0:g}"
        if self.honest < 1.0:
            clients = f"at least {self.honest:.4g} of the clients"
        return (
            f"{bound} holds against whoever sees the shuffled messages of {rounds} but not who "
            f"sent which; neighbours replace one client's data; {who}; {what}; the shuffler and "
            f"{clients} are honest."
        )


@contextmanager
def waiting(what: str) -> Iterator[Any]:
    """Show on a terminal what is being computed; elsewhere say so only after two seconds."""
    console, start, said = Console(stderr=True), time.monotonic(), False
    with console.status(what) as status:

        def say(step: str) -> None:
            nonlocal said
            if console.is_terminal:
                status.update(f"{what}: {step}")
            elif not said and time.monotonic() - start > 2.0:
                said = True
                click.echo(f"{what}: {step} ...", err=True)

        yield say


def ranked(lines: list[Line]) -> list[Line]:
    """Return those with a value: proved ones first, each kind from its least value."""
    answered = [line for line in lines if line.value is not None]
    return sorted(answered, key=lambda line: (line.status != "proved", line.value))


def document(found: Account, what: str) -> dict[str, Any]:
    """Return the table as a document: values, statuses, seconds and refusals by name."""
    lines = ranked(list(found.lines))
    made: dict[str, Any] = {
        what: {line.name: line.value for line in lines},
        "status": {line.name: line.status for line in lines},
    }
    if found.best is not None:
        made["best"] = {"bound": found.best, what: found[found.best].capped}
    made["order"] = {line.name: line.alpha for line in lines if line.alpha is not None}
    made["note"] = {line.name: line.note for line in lines if line.note}
    made["seconds"] = {line.name: round(line.seconds, 6) for line in lines}
    made["refused"] = {line.name: line.refused for line in found.lines if line.refused}
    return made


def show(found: Account, what: str, title: str, sentence: str) -> None:
    """Print the table, what was refused and why, and for whom the best one holds."""
    tables.say(title, otherwise=_PIPE)
    lines = ranked(list(found.lines))
    orders = any(line.alpha is not None for line in lines)
    columns = [Column("bound", right=False), Column(what)]
    columns += [Column("order")] if orders else []
    columns += [Column("status", right=False), Column("CPU s")]
    rows = []
    for line in lines:
        cells = [line.name, f"{line.value:.5g}"]
        if orders:
            cells.append("" if line.alpha is None else f"{line.alpha:,}")
        cells += [line.status, f"{line.seconds:.3f}"]
        first, proved = line.name == found.best, line.status == "proved"
        style = "bold green" if first else ("" if proved else "yellow")
        rows.append(Row(tuple(cells), style))
    laid = tables.fitted(columns, rows, tables.width(_PIPE), ("CPU s", "order"), ruled=True)
    laid.show(_PIPE)
    laid.explain()
    for text in _remarks(lines) + _refusals(found):
        tables.say(text, otherwise=_PIPE, dim=True)
    click.echo()
    tables.say(sentence, otherwise=_PIPE)


def _remarks(lines: list[Line]) -> list[str]:
    return [f"{line.name}: {line.note}" for line in lines if line.note]


def _refusals(found: Account) -> list[str]:
    """Group the bounds that refused by their reason, in a few words."""
    reasons: dict[str, list[str]] = {}
    for line in found.lines:
        if line.refused:
            why = line.refused.removeprefix(f"{line.name} is ").removeprefix(line.name).strip()
            reasons.setdefault(why.split(", only for")[0], []).append(line.name)
    return [f"refused, {why}: {', '.join(names)}" for why, names in reasons.items()]
