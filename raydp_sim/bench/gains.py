"""What knowing a mechanism's law gains: epsilon before and after, as a table in Markdown."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.shuffled import shuffled_event
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.curves.caps import pure_epsilon
from raydp_sim.privacy.curves.gaussian import gaussian_epsilon, gaussian_sigma
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import GaussianShuffle, MultiMessageShuffle, Release, Shuffle
from raydp_sim.privacy.floors.floors import least_epsilon

DELTA = 1e-8
CLIENTS = (10**4, 10**6)
LOSSES = (1.0, 2.0, 4.0)
ROUNDS = (1, 1000)
_AFTER = ("pld-variation", "pld-law", "pld-gaussian")
# Of one report with Gaussian noise, beside its epsilon0.
DELTA0 = 1e-6


def _single(kind: str, **settings: Any) -> Callable[[float, int], Release]:
    def event(epsilon0: float, n: int) -> Release:
        one = make(kind, epsilon_local=epsilon0, **settings)
        return shuffled_event(one, n)

    return event


def _gaussian(dimension: int) -> Callable[[float, int], Release]:
    def event(epsilon0: float, n: int) -> Release:
        return GaussianShuffle(gaussian_sigma(epsilon0, DELTA0), n, dimension)

    return event


def _reports(epsilon0: float, n: int) -> Release:
    return MultiMessageShuffle((epsilon0 / 8,) * 8, n, "rbin")


# One row per law; mechanisms with the same law share it.
EVENTS: dict[str, Callable[[float, int], Release]] = {
    "2rr, rbin, hadamard-bit, duchi-linf, r1, rinf, r2, priv": _single("2rr"),
    "krr, privacy-blanket over 16": _single("krr", categories=16),
    "hadamard-response over 100": _single("hadamard-response", categories=100),
    "rappor": _single("rappor", categories=100),
    "privunit, dimension 100": _single("privunit", dimension=100, radius=1.0),
    "sqkr, dimension 100": _single("sqkr", dimension=100, radius=1.0),
    "vqsgd, dimension 100": _single("vqsgd", dimension=100, radius=1.0),
    "vqsgd, dimension 100, tight": _single("vqsgd", dimension=100, radius=1.0, calibration="tight"),
    "laplace, any dimension": _single("laplace", dimension=100, radius=1.0),
    "gaussian, a number": _gaussian(1),
    "gaussian, dimension 10": _gaussian(10),
    "gaussian, dimension 100": _gaussian(100),
    "linf, l2: 8 equal messages": _reports,
}


@dataclass(frozen=True)
class Gain:
    """Epsilon of one run by what holds for any randomizer of its loss, and by its law."""

    mechanism: str
    n: int
    epsilon0: float
    rounds: int
    before: float
    after: float
    floor: float


def gains(progress: Callable[[str], None] = lambda line: None) -> Iterator[Gain]:
    """Yield every entry of the table."""
    for mechanism, make_event in EVENTS.items():
        for n in CLIENTS:
            for epsilon0 in LOSSES:
                progress(f"{mechanism}, n = {n:g}, epsilon0 = {epsilon0:g}")
                event = make_event(epsilon0, n)
                for rounds in ROUNDS:
                    before = _before(event, epsilon0, n, rounds)
                    after = _least(_AFTER, event, rounds)
                    floor = least_epsilon(event, rounds, DELTA)
                    yield Gain(mechanism, n, epsilon0, rounds, before, min(before, after), floor)


def _before(event: Release, epsilon0: float, n: int, rounds: int) -> float:
    if isinstance(event, GaussianShuffle):
        # Nothing holds for any randomizer of an approximate guarantee but that guarantee.
        return gaussian_epsilon(DELTA, event.noise_multiplier / math.sqrt(rounds))
    return _least(["pld-clones"], Shuffle(epsilon0, n), rounds)


def _least(names: tuple[str, ...] | list[str], event: Release, rounds: int) -> float:
    found = rounds * pure_epsilon(event)
    for name in names:
        try:
            found = min(found, find_run(name).epsilon([(event, rounds)], DELTA).epsilon)
        except (NotApplicable, Unsupported):
            continue
    return found


def markdown(found: list[Gain]) -> str:
    """Return the table, one line per mechanism, number of clients and rounds."""
    heads = [f"{head}, {loss:g}" for loss in LOSSES for head in ("before", "after", "floor")]
    lines = [
        "| mechanism | n | rounds | " + " | ".join(heads) + " |",
        "| --- | --- | --- |" + " --- |" * len(heads),
    ]
    keys = dict.fromkeys((one.mechanism, one.n, one.rounds) for one in found)
    for mechanism, n, rounds in keys:
        row = [one for one in found if (one.mechanism, one.n, one.rounds) == (mechanism, n, rounds)]
        cells = [_short(x) for one in row for x in (one.before, one.after, one.floor)]
        lines.append(
            f"| {mechanism} | 10^{round(math.log10(n))} | {rounds} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def _short(value: float) -> str:
    return f"{value:.3g}"
