"""Random runs for the soundness campaign, and what the oracle says that they cost at least.

A run has one or two kinds of rounds, T = 1 to 4 in all. epsilon0 goes from 0.01 to 12, log-uniform
or, for three of ten, uniform; messages from 1 to 1,000, rates of sampling from 1e-6 to 1 and delta
from 1e-14 to 0.3, log-uniform; each with a share of the ends. Most deltas are below delta(0) of the
run's clone pair, where epsilon > 0.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from raydp_sim.privacy import events as ev
from raydp_sim.privacy.bound import run_bounds
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from tests.privacy.exact_composition import Atoms, Rounds, both_directions, compose, product
from tests.privacy.exact_rounds import (
    beyond,
    blanket,
    clones,
    joined,
    k_rr,
    sampled,
    thinned,
    two_rr,
)

# Beyond, the blanket pair has too many atoms, and the law of k-RR itself stands in for it.
_BLANKET = 60
# What a bound may lack of a value that it is no larger than: it is the root of an equation.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-15


@dataclass(frozen=True)
class Run:
    """Events with their counts, and delta."""

    events: tuple[tuple[Any, int], ...]
    delta: float

    def rounds(self, make: Callable[[Any], Atoms]) -> Rounds:
        """Return each event as atoms, with its count."""
        return [(make(event), times) for event, times in self.events]


# The losses of a client's messages, messages of each index, and the victim's rate of being sampled.
_SHAPES: dict[type, Callable[[Any], tuple[tuple[float, ...], int, float]]] = {
    ev.Shuffle: lambda e: ((e.epsilon0,), e.n, 1.0),
    ev.SubsampledShuffle: lambda e: ((e.epsilon0,), e.sampled, e.sampled / e.clients),
    ev.MultiMessageShuffle: lambda e: (e.losses, e.n, 1.0),
    ev.SubsampledMultiMessage: lambda e: (e.losses, e.sampled, e.sampled / e.clients),
    # Replacing one point, where all other points are equal, is as if points were sampled.
    ev.CldpRound: lambda e: ((e.epsilon0,), e.sampled_clients * e.sampled_points, e.rate),
}


_ONE_MESSAGE = (ev.Shuffle, ev.SubsampledShuffle)


def clone_round(event: Any) -> Atoms:
    """Return the pair that dominates every randomizer."""
    losses, n, rate = _SHAPES[type(event)](event)
    return sampled(reduce(product, (clones(loss, n) for loss in losses)), rate)


def two_rr_round(event: Any) -> Atoms:
    """Return the law of 2RR, which is one randomizer."""
    if isinstance(event, ev.SelfSampledShuffle):
        return joined(event.epsilon0, event.clients, event.probability)
    losses, n, rate = _SHAPES[type(event)](event)
    return thinned(reduce(product, (two_rr(loss, n) for loss in losses)), rate)


def named_round(event: Any) -> Atoms:
    """Return the pair of the event's own randomizer, or its law where that has too many atoms."""
    (epsilon0,), n, rate = _SHAPES[type(event)](event)
    if event.randomizer == "2rr":
        return sampled(clones(epsilon0, n, stronger=True), rate)
    if n <= _BLANKET:
        return sampled(blanket(epsilon0, n, event.alphabet), rate)
    return k_rr(epsilon0, n, event.alphabet, rate)


def law_round(event: Any) -> Atoms:
    """Return the pair of the event's own batch, with or without the victim."""
    (epsilon0,), n, rate = _SHAPES[type(event)](event)
    if event.randomizer == "2rr":
        return clones(epsilon0, n, stronger=True, rate=rate)
    if n <= _BLANKET:
        return blanket(epsilon0, n, event.alphabet, rate)
    return k_rr(epsilon0, n, event.alphabet, rate)


def batch_round(event: Any) -> Atoms:
    """Return the pair of any randomizer's batch, with or without the victim."""
    (epsilon0,), n, rate = _SHAPES[type(event)](event)
    return clones(epsilon0, n, rate=rate)


def noisy_round(event: Any) -> Atoms:
    """Return the law of normal noise along the victim's two inputs, told by a threshold."""
    n, rate = (
        (event.n, 1.0) if isinstance(event, ev.GaussianShuffle) else (event.sampled, event.rate)
    )
    apart = 1.0 / event.noise_multiplier
    return thinned(beyond(apart, max(0.5 * apart, 1.2), n), rate)


def three_rr_round(event: Any) -> Atoms:
    """Return the law of 3-RR where all others hold the third symbol: often worse than 2RR."""
    (epsilon0,), n, rate = _SHAPES[type(event)](event)
    return k_rr(epsilon0, n, 3, rate)


# Which pair a bound is on. Every other one holds for any randomizer, 2RR and 3-RR among them.
_PAIRS = {
    "pld-clones": "clones",
    "fmt_numeric+kov": "clones",
    "rdp-clones": "clones",
    "pld-variation": "named",
    "variation+kov": "named",
    "pld-law": "law",
    "pld-subsampled": "batch",
    "pld-gaussian": "noise",
}
_MAKERS = {
    "clones": clone_round,
    "named": named_round,
    "law": law_round,
    "batch": batch_round,
    "noise": noisy_round,
}


class Floor:
    """What a run costs at least, by the pair or law that a bound is on; found when asked for."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._known: dict[str, float] = {}

    def below(self, bound: str) -> float:
        """Return the oracle's epsilon for the bound of this name."""
        kind = _PAIRS.get(bound, "any")
        if kind not in self._known:
            self._known[kind] = self._find(kind)
        return self._known[kind]

    def _find(self, kind: str) -> float:
        if kind == "noise":
            return both_directions(self.run.rounds(noisy_round), self.run.delta)
        if kind == "any":
            least = both_directions(self.run.rounds(two_rr_round), self.run.delta)
            plain = all(isinstance(event, _ONE_MESSAGE) for event, _ in self.run.events)
            return max(least, self._one_direction(three_rr_round)) if plain else least
        return self._one_direction(_MAKERS[kind])

    def _one_direction(self, make: Callable[[Any], Atoms]) -> float:
        # Of symmetric pairs it says it all, as test_exact_composition.py shows.
        return compose(self.run.rounds(make)).epsilon(self.run.delta)


def faults(run: Run, skipped: frozenset[str] = frozenset()) -> list[str]:
    """Return a line for each proved bound, but those skipped, that is below the oracle."""
    floor, lines = Floor(run), []
    for bound in run_bounds():
        if bound.status != "proved" or bound.name in skipped:
            continue
        try:
            value = bound.epsilon(list(run.events), run.delta).epsilon
        except (NotApplicable, Unsupported):
            continue
        least = floor.below(bound.name)
        if not value >= least * (1.0 - _RELATIVE) - _ABSOLUTE:
            lines.append(f"{bound.name} is {value!r}, exact {least!r}: {run}")
    return lines


def _draw(rng: np.random.Generator, low: float, high: float, ends: float = 0.05) -> float:
    """Draw log-uniformly, and each end itself with probability `ends`."""
    place = rng.random()
    if place < ends:
        return low
    if place > 1.0 - ends:
        return high
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _event(rng: np.random.Generator, name: str | None) -> Any:
    # Large losses have most of the corners and few of the logarithms.
    epsilon0 = _draw(rng, 0.01, 12.0) if rng.random() < 0.7 else rng.uniform(0.01, 12.0)
    n = round(_draw(rng, 1.0, 1000.0))
    alphabet = int(rng.integers(3, 65)) if name == "krr" else None
    rate = _draw(rng, 1e-6, 1.0)
    if rate == 1.0 or rng.random() < 0.2:
        return ev.Shuffle(epsilon0, n, name, alphabet)
    return ev.SubsampledShuffle(epsilon0, max(n, round(n / rate)), n, name, alphabet)


def _other_event(rng: np.random.Generator) -> Any:
    """Draw an event of another kind, with fewer messages: some bounds on them are slow."""
    losses = tuple(_draw(rng, 0.01, 8.0) for _ in range(2))
    n, clients = round(_draw(rng, 1.0, 60.0)), round(_draw(rng, 60.0, 1e6))
    kind = int(rng.integers(4))
    if kind == 0:
        return ev.MultiMessageShuffle(losses, n)
    if kind == 1:
        return ev.SubsampledMultiMessage(losses, clients, n)
    if kind == 2:
        return ev.CldpRound(losses[0], clients, 4, n, int(rng.integers(1, 5)))
    return ev.SelfSampledShuffle(losses[0], max(n, 2), _draw(rng, 1e-3, 1.0))


def _run(rng: np.random.Generator, make: Callable[[], Any], zero: Callable[[Any], Atoms]) -> Run:
    times = int(rng.integers(1, 5))
    first = times if times == 1 or rng.random() < 0.5 else int(rng.integers(1, times))
    events = [(make(), first)]
    if first < times:
        second = make()
        while second.unit != events[0][0].unit:  # items and clients are never composed
            second = make()
        events.append((second, times - first))
    run = Run(tuple(events), _draw(rng, 1e-14, 0.3))
    if rng.random() < 0.2:
        return run
    most = min(0.3, 0.999 * compose(run.rounds(zero)).delta(0.0))
    return Run(run.events, _draw(rng, min(1e-14, 0.1 * most), most, ends=0.02))


def shuffle_runs(seed: tuple[int, int], count: int) -> Iterator[Run]:
    """Draw runs of shuffles, sampled or not, of any randomizer, of 2RR or of k-RR."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        name = (None, None, "2rr", "krr")[int(rng.integers(4))]
        yield _run(rng, lambda name=name: _event(rng, name), clone_round)


def other_runs(seed: tuple[int, int], count: int) -> Iterator[Run]:
    """Draw runs of several messages, of sampled points and of clients that join by coins."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield _run(rng, lambda: _other_event(rng), two_rr_round)


def _noisy_event(rng: np.random.Generator) -> Any:
    noise, n = 0.5 / _draw(rng, 0.02, 1.5), round(_draw(rng, 1.0, 1000.0))
    dimension = int(_draw(rng, 1.0, 300.0)) if rng.random() < 0.5 else 1
    rate = _draw(rng, 1e-4, 1.0)
    if rate == 1.0 or rng.random() < 0.4:
        return ev.GaussianShuffle(noise, n, dimension)
    return ev.SubsampledGaussianShuffle(noise, max(n, round(n / rate)), n, dimension)


def noisy_runs(seed: tuple[int, int], count: int) -> Iterator[Run]:
    """Draw runs of shuffled reports with normal noise, sampled or not."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield _run(rng, lambda: _noisy_event(rng), noisy_round)


def law_runs(seed: tuple[int, int], count: int) -> Iterator[Run]:
    """Draw runs of Laplace noise and of vqSGD, of which the floors know a law."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        name = ("laplace", "vqsgd")[int(rng.integers(2))]
        corners = 2 * round(_draw(rng, 1.0, 500.0)) if name == "vqsgd" else None
        epsilon0, n = _draw(rng, 0.02, 8.0), round(_draw(rng, 1.0, 1e5))
        event = ev.SubsampledShuffle(epsilon0, round(n * _draw(rng, 1.0, 1e3)), n, name, corners)
        yield Run(((event, int(rng.integers(1, 30))),), _draw(rng, 1e-12, 0.1))
