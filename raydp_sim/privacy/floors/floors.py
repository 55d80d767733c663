"""What events cost at least: certified lower bounds that no upper bound may contradict.

For each kind of event one pair of neighbours is chosen and one randomizer that the event allows,
and `questions.py` turns yes-or-no questions about its view into epsilons. Everyone but the victim
holds the same input 0, the victim 0 or 1; any pair of neighbours gives a floor under the worst one.
More rounds never cost less than fewer, and a run never less than the rounds of one of its events.

Which randomizer: a bound that holds for any epsilon0-LDP randomizer holds for binary randomized
response. A bound that makes use of the randomizer that an event names holds for that one only,
which may leak less, so there the floor is of its own law; where its law is not known here, 0.

Nothing of the code that computes upper bounds is used.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import scipy

from raydp_sim.privacy import events as ev
from raydp_sim.privacy.errors import Contradiction
from raydp_sim.privacy.floors.questions import MOST, Questions, answers, counted, shifted
from raydp_sim.privacy.names import parameter_of

Coin = tuple[float, float, float]
"""How likely a message of input 0 says yes, how much likelier one of input 1, and how likely no."""

# Of so many different events in one run the floors are computed; of the others none is needed.
_MOST = 16


def binary(epsilon0: float) -> Coin:
    """Return the coin of binary randomized response: 1/(p+1) and (p-1)/(p+1), p = e^epsilon0.

    Example:
        >>> [round(x, 6) for x in binary(math.log(3.0))]
        [0.25, 0.5, 0.25]
    """
    return one_symbol(epsilon0, 2)


def one_symbol(epsilon0: float, symbols: float) -> Coin:
    """Return the coin of k-ary randomized response: is the message symbol 1?

    It is with probability 1/(p+k-1) for every input but 1, and p/(p+k-1) for that.
    """
    rare = math.exp(-epsilon0)
    scale = 1.0 + (symbols - 1) * rare
    return rare / scale, -math.expm1(-epsilon0) / scale, (symbols - 1) * rare / scale


def _2rr(epsilon0: float, alphabet: int | None) -> list[list[Coin]]:
    return [[binary(epsilon0)]]


def _krr(epsilon0: float, alphabet: int | None) -> list[list[Coin]]:
    return [] if alphabet is None else [[one_symbol(epsilon0, alphabet)]]


def _hadamard(epsilon0: float, alphabet: int | None) -> list[list[Coin]]:
    """Is the output in the set C_1 of category 1?

    Acharya, Sun & Zhang 2019: with B > 1 blocks the categories 0 and 1 are in different ones, and
    C_1 has probability p/(p+2B-1) under 1 and 1/(p+2B-1) under 0. With one block their sets
    overlap in half; C_1 without C_0 has probability p/(2(p+1)) and 1/(2(p+1)). 2B is the least
    power of two that is at least min(p, 2k); where rounding may decide it, both are possible.
    """
    if alphabet is None:
        return []
    log2 = min(epsilon0 / math.log(2.0), math.log2(2 * alphabet))
    sizes = {1 << max(0, math.ceil(log2 + slack) - 1) for slack in (-1e-8, 1e-8)}
    laws = []
    for blocks in sizes:
        yes, lift, miss = one_symbol(epsilon0, 2 * blocks)
        half = (0.5 * yes, 0.5 * lift, 0.5 + 0.5 * miss)
        laws.append([(yes, lift, miss) if blocks > 1 else half])
    return laws


def _laplace(epsilon0: float, alphabet: int | None) -> list[list[Coin]]:
    """Is the report beyond u times the interval?

    Inputs are its ends, and the noise has the interval's length over epsilon0 as its scale: it is
    with probability e^(-u epsilon0)/2 under the lower end, 1 - e^(-(1-u) epsilon0)/2 under the
    upper one.
    """

    def coin(u: float) -> Coin:
        lift = -0.5 * (math.expm1(-u * epsilon0) + math.expm1(-(1.0 - u) * epsilon0))
        return 0.5 * math.exp(-u * epsilon0), lift, 0.5 * math.exp(-(1.0 - u) * epsilon0)

    at = (0.5, 1.0) if epsilon0 < 1.0 else (0.5, 1.0 - 0.45 / epsilon0, 1.0)
    return [[coin(u) for u in at]]


def _rappor(epsilon0: float, alphabet: int | None) -> list[list[Coin]]:
    """Is bit 1 set, of a report whose bits are flipped with probability 1/(s+1), s^2 = e^epsilon0?

    And is bit 1 set, and bit 0 not: with probability s^2/(s+1)^2 under 1 and 1/(s+1)^2 under 0.
    """
    half = math.exp(-0.5 * epsilon0)
    lift, both = -math.expm1(-0.5 * epsilon0) / (1.0 + half), (half / (1.0 + half)) ** 2
    return [[binary(0.5 * epsilon0), (both, lift, both + 2.0 * half / (1.0 + half) ** 2)]]


def _vqsgd(epsilon0: float, alphabet: int | None) -> list[list[Coin]]:
    """Is the report one of the j corners that the victim's second input leans to?

    Of 2d corners an input of j equal coordinates has each of its own j with probability (1 -
    sqrt(j/d))/(2d) + 1/sqrt(j d) if the response tells the truth; with the opposite input they have
    the first term. That is a share s = 1/sqrt(j d) apart, of which m, the most that any corner has,
    makes epsilon0.
    """
    if alphabet is None or alphabet < 2 or alphabet % 2:
        return []
    d = alphabet // 2
    odds = math.expm1(epsilon0) / ((1.0 - 0.5 / d) / math.sqrt(d) + 0.5 / d)
    truth = odds / alphabet / (1.0 + odds / alphabet)

    def coin(j: int) -> Coin:
        yes = (1.0 - truth * math.sqrt(j / d)) * j / alphabet
        lift = truth * math.sqrt(j / d)
        return yes, lift, 1.0 - yes - lift

    return [[coin(j) for j in sorted({1, max(1, round(math.sqrt(d))), d})]]


# The laws that a name may stand for, of each the coins to ask about. R^Bin of complementary blocks
# shows the bit of 2RR beside an index that tells nothing.
_LAWS: dict[str | None, Callable[[float, int | None], list[list[Coin]]]] = {
    None: _2rr,
    "2rr": _2rr,
    "rbin": _2rr,
    "krr": _krr,
    "hadamard": _hadamard,
    "laplace": _laplace,
    "rappor": _rappor,
    "vqsgd": _vqsgd,
}


def _cap(epsilon0: float, mass: float) -> list[list[Coin]]:
    """Is PrivUnit's report in the cap of the victim's second direction? The first is opposite.

    Densities are e^epsilon0 apart and a cap of mass q <= 1/2 is away from the opposite one, so
    this is one of 1/q symbols.
    """
    return [[one_symbol(epsilon0, 1.0 / mass)]]


def _laws(event: Any, epsilon0: float | None = None) -> list[list[Coin]]:
    loss = event.epsilon0 if epsilon0 is None else epsilon0
    kind, parameter = parameter_of(getattr(event, "randomizer", None))
    if kind == "privunit" and parameter is not None and 0.0 < parameter <= 0.5 and loss > 0.0:
        return _cap(loss, parameter)
    known = _LAWS.get(kind)
    if known is None or loss == 0.0:
        return []
    return known(loss, getattr(event, "alphabet", None))


def _normal(noise_multiplier: float) -> list[list[Coin]]:
    """Is the report beyond so many standard deviations, along the victim's two opposite inputs?

    All other reports are about the first one, a distance of 1/noise_multiplier away from the other.
    The lift is a normal probability: a difference, or the distance times the lesser of the
    densities at its ends, where the difference loses its digits.
    """

    def coin(t: float) -> Coin:
        lift = scipy.special.ndtr(apart - t) - scipy.special.ndtr(-t) - 1e-15
        least = apart * math.exp(-0.5 * max(t * t, (t - apart) ** 2)) / math.sqrt(2.0 * math.pi)
        return (
            float(scipy.special.ndtr(-t)),
            float(max(lift, least)),
            float(scipy.special.ndtr(t - apart)),
        )

    apart = 1.0 / noise_multiplier
    return [[coin(t) for t in (0.0, 0.6, 1.2, 1.8, 2.4, 3.2, 0.5 * apart)]]


Asked = list[list[Questions]]
"""By law that the event may have, then by coin: the questions about one round."""


def _batch(event: Any, messages: int, rate: float) -> Asked:
    """Count the yes of a batch that the victim's message is in with probability `rate`."""
    if messages > MOST:
        return []
    return [[counted(*coin, messages).sampled(rate) for coin in law] for law in _laws(event)]


def _noisy_batch(event: Any, messages: int, rate: float) -> Asked:
    """Count the reports of a batch that lie beyond a threshold."""
    if messages > MOST or event.noise_multiplier < 0.05:
        return []
    laws = _normal(event.noise_multiplier)
    return [[counted(*coin, messages).sampled(rate) for coin in law] for law in laws]


def _joined(event: ev.SelfSampledShuffle) -> Asked:
    """Count the yes of those who joined: each client adds one with probability yes x joining."""
    q = event.probability
    if event.clients > MOST:
        return []
    return [
        [counted(q * yes, q * lift, 1.0 - q + q * miss, event.clients) for yes, lift, miss in law]
        for law in _laws(event)
    ]


def _several(event: ev.SubsampledMultiMessage, delta: float) -> Asked:
    """Count the shufflers whose batch has many yes, over messages of equal loss; then sample."""
    within, asked = min(1.0, delta / event.rate), list[Questions]()
    if event.sampled > MOST:
        return []
    for loss, number in Counter(event.losses).items():
        for law in _laws(event, loss)[:1]:  # a law that is not certain needs an alphabet
            each = [counted(*coin, event.sampled) for coin in law]
            if number > 1:
                each += [one.repeated(number, within) for one in each]
            asked += [one.sampled(event.rate) for one in each]
    return [asked] if asked else []


def _guaranteed(event: ev.LocalReport | ev.CentralRelease | ev.EnsembleRelease) -> Asked:
    """Ask the worst mechanism with that guarantee (Kairouz, Oh & Viswanath 2015, Theorem 3.3).

    With probability delta it tells the input, else it is randomized response. A record states no
    more than the guarantee, so what is proved for the record holds for that mechanism.
    """
    yes, lift, miss = binary(event.epsilon)
    kept = 1.0 - event.delta
    return [[answers(kept * yes, event.delta + kept * lift, kept * miss)]]


def _noisy(event: ev.LaplaceRelease | ev.SubsampledLaplace, rate: float = 1.0) -> Asked:
    laws = _laplace(event.epsilon, None) if event.epsilon > 0.0 else []
    return [[answers(*coin).sampled(rate) for coin in law] for law in laws]


def _sampled_noise(
    event: ev.SubsampledGaussianRelease | ev.SelfSampledGaussianRelease,
) -> Asked:
    return [[shifted(1.0 / event.noise_multiplier).sampled(event.rate)]]


# One round's questions, by kind of event and the run's delta.
_ROUNDS: dict[type, Callable[[Any, float], Asked]] = {
    ev.Shuffle: lambda e, delta: _batch(e, e.n, 1.0),
    ev.SubsampledShuffle: lambda e, delta: _batch(e, e.sampled, e.rate),
    # All points but one are 0, so only whether that one is used matters.
    ev.CldpRound: lambda e, delta: _batch(e, e.sampled_clients * e.sampled_points, e.rate),
    ev.SelfSampledShuffle: lambda e, delta: _joined(e),
    ev.SubsampledMultiMessage: _several,
    ev.GaussianShuffle: lambda e, delta: _noisy_batch(e, e.n, 1.0),
    ev.SubsampledGaussianShuffle: lambda e, delta: _noisy_batch(e, e.sampled, e.rate),
    # Neighbours add or remove one record: whoever is not drawn leaves the view without it.
    ev.SubsampledGaussian: lambda e, delta: [[shifted(1.0 / e.noise_multiplier).sampled(e.rate)]],
    # All others hold what is farthest from the victim: unused, it leaves the view of its neighbour.
    ev.SubsampledGaussianRelease: lambda e, delta: _sampled_noise(e),
    ev.SelfSampledGaussianRelease: lambda e, delta: _sampled_noise(e),
    ev.LaplaceRelease: lambda e, delta: _noisy(e),
    ev.SubsampledLaplace: lambda e, delta: _noisy(e, e.rate),
    # What later steps wash out depends on the losses, and nothing is certified of them.
    ev.EpochRelease: lambda e, delta: [],
    ev.SecretEpochRelease: lambda e, delta: [],
    ev.LocalReport: lambda e, delta: _guaranteed(e),
    ev.CentralRelease: lambda e, delta: _guaranteed(e),
    ev.EnsembleRelease: lambda e, delta: _guaranteed(e),
}


@lru_cache(maxsize=4096)
def least_epsilon(event: ev.Release, times: int, delta: float, named: bool = True) -> float:
    """Return an epsilon that this many rounds of an event cost at least, rounded down.

    It is 0 where nothing is certified: below the total variation of the questions asked, and for a
    named randomizer whose law is not known here.

    Args:
        event: what happened.
        times: how often, >= 1.
        delta: in [0, 1).
        named: whether the randomizer that the event names has to be the one that leaks; False for
            bounds that hold for any randomizer of that loss.

    Example:
        >>> round(least_epsilon(ev.Shuffle(1.0, 1000), 1, 1e-6), 3)
        0.126
        >>> round(least_epsilon(ev.SubsampledShuffle(2.0, 10**6, 1000), 10**5, 1e-8), 3)
        0.085
    """
    if not named and getattr(event, "randomizer", None) is not None:
        return least_epsilon(_nameless(event), times, delta)
    if isinstance(event, ev.MultiMessageShuffle):
        parts = Counter(event.losses).items()
        shuffles = [(ev.Shuffle(loss, event.n, event.randomizer), many) for loss, many in parts]
        return max(least_epsilon(shuffle, many * times, delta) for shuffle, many in shuffles)
    if isinstance(event, ev.GaussianRelease | ev.GaussianReport):
        # The sum of the releases, over its standard deviation, tells all there is.
        return shifted(math.sqrt(times) / event.noise_multiplier).epsilon(delta)
    laws = _ROUNDS[type(event)](event, delta)
    return min((_most(law, times, delta) for law in laws), default=0.0)


def _nameless(event: Any) -> Any:
    if hasattr(event, "alphabet"):
        return replace(event, randomizer=None, alphabet=None)
    return replace(event, randomizer=None)


def _most(law: list[Questions], times: int, delta: float) -> float:
    best = max(one.epsilon(delta) for one in law)
    if times > 1:
        best = max(best, *(one.repeated(min(times, MOST), delta).epsilon(delta) for one in law))
    return best


def least_so_far(event: ev.Release, times: int, delta: float) -> float:
    """Return `least_epsilon` of the largest power of two of rounds: no more, and asked for rarely.

    Example:
        >>> event = ev.Shuffle(1.0, 1000)
        >>> least_so_far(event, 1000, 1e-6) == least_epsilon(event, 512, 1e-6)
        True
    """
    return least_epsilon(event, 1 << (times.bit_length() - 1), delta)


def least_of_run(events: Sequence[tuple[ev.Release, int]], delta: float, named: bool) -> float:
    """Return the largest floor of a run's events; of more than sixteen, of the most frequent."""
    often = sorted(events, key=lambda pair: -pair[1])[:_MOST]
    return max((least_epsilon(event, times, delta, named) for event, times in often), default=0.0)


def refuse_below(
    bound: str,
    value: float,
    events: Sequence[tuple[ev.Release, int]],
    delta: float,
    named: bool = True,
) -> None:
    """Raise `Contradiction` if a bound says less than what the events cost at least.

    Args:
        bound: its name.
        value: epsilon that it says; nan contradicts everything.
        events: with their counts >= 1.
        delta: in [0, 1).
        named: see `least_epsilon`.
    """
    floor = least_of_run(events, delta, named)
    if not value >= floor:
        raise Contradiction(bound, value, floor, delta, in_words(events))


def in_words(events: Sequence[tuple[ev.Release, int]]) -> str:
    """Return events with their counts, a few of many.

    Example:
        >>> in_words([(ev.Shuffle(1.0, 10), 3)])
        '3 x Shuffle(epsilon0=1.0, n=10, randomizer=None, alphabet=None)'
    """
    named = " and ".join(f"{times} x {event}" for event, times in events[:3])
    return named + (f" and {len(events) - 3} other events" if len(events) > 3 else "")
