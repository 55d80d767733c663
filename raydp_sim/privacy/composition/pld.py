"""Composition of shuffle rounds by the privacy-loss distributions of their dominating pairs.

What is proved. A pair (P, Q) dominates a round if its hockey-stick divergence is at least that of
every two neighbours at every real epsilon. The product of dominating pairs dominates the adaptive
composition of the rounds (Zhu, Dong & Wang 2022, "Optimal accounting of differential privacy via
characteristic function", composition theorem). The pairs of clones.py and variation.py are
symmetric mixtures of tilted coins, so one direction is enough. Neighbours replace one client's
data, in all rounds.

Sampling. In a round k of N clients, uniform without replacement and secret, are shuffled. Let
delta(e) belong to the shuffle of k messages under replace-one and g = k/N. By advanced joint
convexity (Balle, Barthe & Gaboardi 2018, "Privacy amplification by subsampling", Theorem 2), at
e' = log(1 + g (e^e - 1)) >= 0 the round's delta is g times the divergence at e of the "sampled" law
from a mixture of "sampled, replaced" and "not sampled". A batch with the victim and the same
batch with another client in its place are neighbours too, so both parts are at most delta(e), and
the round's delta is at most g delta(e): their bound for sampling without replacement under
substitution. It holds in both directions, hence also for e' < 0, as H_-e(P|Q) = 1 - e^-e + e^-e
H_e(Q|P). The pair with exactly this profile has, for each point of loss l > 0 of the base pair with
masses a and a e^-l, the masses a (g + (1-g) e^-l) and a e^-l; the mirror image of these; and the
rest without loss. The rest is not negative, because the profile is convex in c = e^e: at c = 1 that
asks that twice its right derivative is at least its value - 1, which the symmetric base pair
satisfies, and the sampled profile has the same derivative and a smaller value there. (The same pair
as in Zhu, Dong & Wang 2022 for subsampling under replace-one.)

Points of clients. If k of N clients are sampled, and one of the R points of each (`CldpRound`),
the victim is a point, used with probability g = k/(N R). Given that it is not used, either its
client is sampled with another point, or another client is in its place; both ways the batch is one
with the victim's message replaced by that of other data, after a suitable choice of the rest. So
the law given "not used" is a mixture of neighbours of the law given "used", and the argument above
holds at rate g with k messages. law_rounds.py's does NOT: its batch without the victim has k
messages of others, and here it may have one of the victim's own client, whose rest is seen. At
N = R = k = 3 and epsilon0 = 3 it would state a thirteenth of the true delta, and for a named law a
hundredth (tests/privacy/test_points.py).

Several points. If s > 1 of the R points of each are used, another client in the place of the
victim's changes s messages, so the argument holds given that the victim's client is drawn, at rate
s/R and with k s messages: its s points without the victim are, one of them left out at random, the
s - 1 others that are drawn with the victim, so that here too one message is replaced. Given that
the client is not drawn the two laws are equal, and whether it is does not depend on the data; by
joint convexity the round's delta is k/N of that of the pair at rate s/R: the pair that is that one
with chance k/N, and else says nothing.

How losses are put on knots, erring upwards, is in losses.py. They are composed twice, directly
(direct.py) and, where rounds are many, by a Fourier transform (fourier.py). Both are upper bounds
on the same delta, so the smaller one is taken.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from raydp_sim.privacy.composition.direct import compose, spaced
from raydp_sim.privacy.composition.fourier import Composed, transform
from raydp_sim.privacy.composition.losses import LossLaw, connect
from raydp_sim.privacy.curves.binomials import Floats
from raydp_sim.privacy.curves.clones import check_batch, clone_pair
from raydp_sim.privacy.curves.tilted import TiltedCoins
from raydp_sim.privacy.curves.variation import variation_pair

# Knots of a law: more where few steps are needed, or none, as it costs their square a step.
_KNOTS, _LOOKS = 400, 61
_KNOTS_STEPS = {8: 400, 14: 250, 10**9: 120}
# Below so many rounds a uniform grid has no advantage; above, the rounding of the transform, which
# grows with the rounds, would cost more than the knots do.
_MANY, _TOO_MANY = 12, 10**8


@dataclass(frozen=True)
class Round:
    """Rounds of one kind: a symmetric dominating pair, how often, and the sampling rate before it.

    Attributes:
        pair: of one round without sampling.
        times: rounds, >= 1.
        rate: k/N in (0, 1]; below 1 the sampled clients are secret and uniform.
        drawn: chance that the round has anything of the victim's client; else it says nothing.
    """

    pair: TiltedCoins
    times: int = 1
    rate: float = 1.0
    drawn: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        if not (self.times >= 1 and self.times == int(self.times)):
            raise ValueError(f"times is {self.times}; it must be an integer >= 1")
        if not 0.0 < self.rate <= 1.0:
            raise ValueError(f"rate is {self.rate}; it must be in (0, 1]")
        if not 0.0 < self.drawn <= 1.0:
            raise ValueError(f"drawn is {self.drawn}; it must be in (0, 1]")

    @property
    def most(self) -> float:
        """Largest loss of one round, rounded up."""
        if self.rate == 1.0:
            return self.pair.most
        return math.log1p(self.rate * math.expm1(self.pair.most)) * (1.0 + 1e-14)

    def law(self, floor: float) -> LossLaw:
        """Return a law of losses whose profile is at least the round's; below `floor` infinite.

        Example:
            >>> shuffle_round(1.0, 10).law(1e-9).infinite < 1e-9
            True
        """
        part, rare = self.pair.significant(0.1 * floor / self.rate)
        # Rounded up; 1 stays 1, so that nothing changes where everyone is drawn.
        chance = self.rate * (1.0 + 1e-14) * (self.drawn * (1.0 + 1e-14) if self.drawn < 1.0 else 1)

        def profile(epsilons: Floats) -> Floats:
            # Rounded down, as the divergence falls; components left out count as infinite losses.
            base = np.log1p(np.expm1(epsilons) / self.rate) * (1.0 - 1e-14)
            base = np.where(epsilons < self.most, base, math.inf)
            return chance * (part.profile(base) + rare)

        exact = part.losses(_KNOTS)
        if exact is not None:
            inner = np.log1p(self.rate * np.expm1(exact))
            inner = inner[(np.diff(inner, prepend=0.0) > 1e-12 * inner) & (inner < self.most)]
            knots = np.append(inner[inner < (1.0 - 1e-12) * self.most], self.most)
            return connect(knots, profile(np.append(0.0, knots)))
        # Many components cost time, but smooth the law.
        count = _KNOTS if len(part.coins) < 400 else _KNOTS // 2
        knots = spaced(profile, self.most, floor, count, _LOOKS)
        return connect(knots, profile(np.append(0.0, knots)))


def shuffle_round(
    epsilon0: float,
    n: int,
    times: int = 1,
    randomizer: str | None = None,
    alphabet: int | None = None,
    clients: int | None = None,
) -> Round:
    """Return rounds that shuffle n messages of an epsilon0-LDP randomizer.

    Args:
        epsilon0: >= 0.
        n: messages per round, >= 1.
        times: rounds.
        randomizer: a name known to variation.py, for its smaller pair; None: any epsilon0-LDP one.
        alphabet: of that randomizer.
        clients: N >= n if the n are a secret uniform sample of N, without replacement.

    Example:
        >>> shuffle_round(0.5, 1000, times=10, clients=100_000).rate
        0.01
    """
    check_batch(epsilon0, n)
    if clients is not None and clients < n:
        raise ValueError(f"clients is {clients}; it must be at least n, which is {n}")
    if randomizer is None:
        pair = clone_pair(float(epsilon0), int(n) - 1, math.exp(-epsilon0), count=160)
    else:
        # Few messages differ most in how many of them hide the victim; many average that out.
        pair = variation_pair(randomizer, epsilon0, n, alphabet, count=60 if n <= 500 else 16)
    return Round(pair, times, 1.0 if clients is None else n / clients)


class Composable(Protocol):
    """Rounds of one kind, as far as composing them has to know."""

    @property
    def times(self) -> int:
        """Rounds, >= 1."""
        ...

    @property
    def most(self) -> float:
        """The largest loss of one of them; inf where none is."""
        ...

    def law(self, floor: float) -> LossLaw:
        """Return a law whose profile is at least one round's; what is below `floor` infinite."""
        ...


@dataclass(frozen=True)
class _Way:
    """One direction of a composition: all rounds composed directly, and the laws themselves."""

    direct: LossLaw
    parts: list[tuple[LossLaw, int]]
    tail: float

    def delta(self, epsilon: float) -> float:
        """Return delta by the direct way."""
        return min(1.0, float(self.direct.profile(np.array([epsilon]))[0]) * (1.0 + 1e-11))

    def by_transform_at(self, epsilon: float) -> Composed:
        """Return the composition by the transform, best near this epsilon."""
        order = self._best_order(lambda order: self._log_moment(order) - order * epsilon)
        return transform(self.parts, order, self.tail)

    def by_transform_for(self, delta: float) -> Composed:
        """Return the composition by the transform, best near this delta."""
        log = math.log(delta)
        order = self._best_order(lambda order: (self._log_moment(order) - log) / order)
        return transform(self.parts, order, self.tail)

    def _log_moment(self, order: float) -> float:
        return sum(times * law.log_moment(order) for law, times in self.parts)

    def _best_order(self, exponent: Callable[[float], float]) -> float:
        """Minimise over the logarithm of the order of Chernoff's bound; any order is valid."""
        from scipy.optimize import minimize_scalar  # here: most actors never search

        variance = sum(times * float(law.atoms[1] @ law.atoms[0] ** 2) for law, times in self.parts)
        # From 1e-3 to 150 over the standard deviation: more helps no delta that a double can hold.
        middle = -0.5 * math.log(variance)
        found = minimize_scalar(
            lambda log_order: exponent(math.exp(log_order)),
            bounds=(middle - 7.0, middle + 5.0),
            method="bounded",
            options={"xatol": 1e-2},
        )
        return math.exp(float(found.x))


class _Composition:
    """Laws of the rounds, composed in their one or two directions, for deltas about `delta`.

    The victim's data is exchanged in the same direction in all rounds, so delta is the larger of
    two compositions; symmetric laws have one.
    """

    def __init__(self, rounds: Sequence[Composable], delta: float) -> None:
        total = sum(r.times for r in rounds)
        # A power of two, so that runs of nearly one length share their laws.
        floor = 2.0 ** math.floor(math.log2(max(1e-5 * delta / total, 1e-320)))
        tail = 1e-5 * delta
        parts = [(_law(_once(r), floor), r.times) for r in rounds]
        steps = sum(2 * r.times.bit_length() - 1 for r in rounds)
        count = next(knots for most, knots in _KNOTS_STEPS.items() if steps <= most)
        direct = compose(parts, floor, count)
        self.ways = [_Way(direct, parts, tail)]
        if direct.back is not None:
            back = [(law.swapped(), times) for law, times in parts]
            self.ways.append(_Way(direct.swapped(), back, tail))
        self.many = _MANY <= total <= _TOO_MANY


def _once(rounds: Any) -> Any:
    """Return one round of these."""
    return replace(rounds, times=1)


@lru_cache(maxsize=256)
def _law(once: Any, floor: float) -> LossLaw:
    law: LossLaw = once.law(floor)
    return law


def _lossy(rounds: Sequence[Composable]) -> list[Composable]:
    return [r for r in rounds if r.most > 0.0]


def compose_delta(rounds: Sequence[Composable], epsilon: float) -> float:
    """Return an upper bound on delta at epsilon >= 0 of the composition of all rounds.

    Example:
        >>> 0.0 < compose_delta([shuffle_round(1.0, 1000, times=20)], 1.0) < 1e-3
        True
    """
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon is {epsilon}; it must be >= 0")
    rounds = _lossy(rounds)
    if epsilon >= sum(r.times * r.most for r in rounds):
        return 0.0
    found = 1e-35
    # Knots are chosen for a delta: first for a very small one, then for the one found.
    for _ in range(2):
        composed, most = _Composition(rounds, found), 0.0
        for way in composed.ways:
            delta = way.delta(epsilon)
            if composed.many:
                delta = min(delta, way.by_transform_at(epsilon).delta(epsilon))
            most = max(most, delta)
        found = max(most, 1e-100)
    return most


def compose_epsilon(rounds: Sequence[Composable], delta: float) -> float:
    """Return an epsilon at which the composition of all rounds needs at most delta.

    Args:
        rounds: of any sizes, local losses, pairs and sampling rates; in any, even adaptive, order.
        delta: in (0, 1).

    Example:
        >>> round(compose_epsilon([shuffle_round(0.5, 1_000_000, times=100_000)], 1e-8), 2)
        1.02
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}; it must be in (0, 1)")
    rounds = _lossy(rounds)
    if not rounds:
        return 0.0
    pure = sum(r.times * r.most for r in rounds)
    composed, most = _Composition(rounds, delta), 0.0
    for way in composed.ways:
        # No loss is larger than the last knot, except what counts as infinite.
        reach = min(pure, float(way.direct.losses[-1]))
        found = _root(way.delta, delta, reach, pure)
        if composed.many and found > most:
            # Where even the direct root is not enough, the direct one stands.
            found = _root(way.by_transform_for(delta).delta, delta, min(found, reach), found)
        most = max(most, found)
    return most


def _root(delta_at: Callable[[float], float], delta: float, reach: float, pure: float) -> float:
    """Return an epsilon in [0, reach] at which delta_at is at most delta; else `pure`, where it is.

    `pure` is the sum of the largest losses, at which delta is 0; it may be inf.
    """
    from scipy.optimize import brentq  # here: most actors never search

    if delta_at(0.0) <= delta:
        return 0.0
    if delta_at(reach * (1.0 - 1e-12)) > delta:
        return pure
    target = math.log(delta)

    def excess(epsilon: float) -> float:
        # In logarithms, which are nearly straight: each look is costly.
        return math.log(max(delta_at(epsilon), 1e-320)) - target

    root = float(brentq(excess, 0.0, reach, xtol=1e-8 * reach, rtol=1e-8))
    step = 1e-12 * reach
    while root < reach and delta_at(root) > delta:
        root, step = min(reach, root * (1.0 + 1e-9) + step), 2.0 * step
    return root
