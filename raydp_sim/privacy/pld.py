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

How losses are put on a grid and convolved, erring upwards, is in losses.py.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.optimize import brentq, minimize_scalar

from raydp_sim.privacy.clones import check_batch, clone_pair
from raydp_sim.privacy.losses import LossDistribution, convolve, deviation, discretise
from raydp_sim.privacy.tilted import TiltedCoins
from raydp_sim.privacy.variation import variation_pair

# Grid points per standard deviation of one round's loss: fewer when many rounds average them out.
_FINE, _COARSE = 100.0, 15.0
_MOST_POINTS = 1 << 15


@dataclass(frozen=True)
class Round:
    """Rounds of one kind: a symmetric dominating pair, how often, and the sampling rate before it.

    Attributes:
        pair: of one round without sampling.
        times: rounds, >= 1.
        rate: k/N in (0, 1]; below 1 the sampled clients are secret and uniform.
    """

    pair: TiltedCoins
    times: int = 1
    rate: float = 1.0

    def __post_init__(self) -> None:
        if not (self.times >= 1 and self.times == int(self.times)):
            raise ValueError(f"times is {self.times}; it must be an integer >= 1")
        if not 0.0 < self.rate <= 1.0:
            raise ValueError(f"rate is {self.rate}; it must be in (0, 1]")

    @property
    def most(self) -> float:
        """Largest loss of one round."""
        return math.log1p(self.rate * math.expm1(self.pair.most))

    @property
    def deviation(self) -> float:
        """About the standard deviation of one round's loss."""
        return self.rate * deviation(self.pair)


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
        pair = variation_pair(randomizer, epsilon0, n, alphabet, count=16)
    return Round(pair, times, 1.0 if clients is None else n / clients)


def _parts(rounds: Sequence[Round], tail: float) -> list[tuple[LossDistribution, int]]:
    """Discretise all rounds on one grid, fit for their total."""
    total = sum(r.times for r in rounds)
    spread = math.sqrt(sum(r.times * r.deviation**2 for r in rounds) / total)
    step = spread / max(_COARSE, _FINE / math.sqrt(total))
    step = max(step, max(r.most for r in rounds) / _MOST_POINTS / 64.0)
    return [(discretise(r.pair, step, tail / total, r.rate), r.times) for r in rounds]


def _best_order(
    exponent: Callable[[float], float], parts: Sequence[tuple[LossDistribution, int]]
) -> float:
    """Minimise a Chernoff exponent over the logarithm of the order; any order would be valid.

    Up to 40 over the standard deviation: more helps no delta that a double can hold.
    """
    variance = sum(t * float((law.mass * law.losses**2).sum()) for law, t in parts)
    middle = -0.5 * math.log(variance)
    found = minimize_scalar(
        exponent, bounds=(middle - 7.0, middle + 3.7), method="bounded", options={"xatol": 1e-2}
    )
    return math.exp(float(found.x))


def _lossy(rounds: Sequence[Round]) -> list[Round]:
    return [r for r in rounds if r.pair.most > 0.0]


def compose_delta(rounds: Sequence[Round], epsilon: float) -> float:
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
    parts = _parts(rounds, tail=1e-40)

    def exponent(log_order: float) -> float:
        order = math.exp(log_order)
        return sum(t * law.log_moment(order) for law, t in parts) - order * epsilon

    return convolve(parts, _best_order(exponent, parts)).delta(epsilon)


def compose_epsilon(rounds: Sequence[Round], delta: float) -> float:
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
    most = sum(r.times * r.most for r in rounds)
    parts = _parts(rounds, tail=1e-5 * delta)

    def exponent(log_order: float) -> float:
        order = math.exp(log_order)
        total = sum(t * law.log_moment(order) for law, t in parts)
        return (total - math.log(delta)) / order

    law = convolve(parts, _best_order(exponent, parts))
    if law.delta(0.0) <= delta:
        return 0.0
    if law.delta(most * (1.0 - 1e-12)) > delta:
        return most
    root = float(brentq(lambda e: law.delta(e) - delta, 0.0, most, xtol=1e-9 * most, rtol=1e-9))
    while law.delta(root) > delta:
        root = min(most, root * (1.0 + 1e-9) + 1e-12 * most)
    return root
