"""Laws of randomizers and the bounds made of them, by enumeration of all neighbours both ways."""

import itertools
import math

import numpy as np
import pytest

from raydp_sim.mechanisms import make
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.composition.law_rounds import LawRound
from raydp_sim.privacy.curves import excess
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import (
    MultiMessageShuffle,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.privacy.floors.floors import least_epsilon
from raydp_sim.privacy.laws import Law, clones, coins, interval, law_of, two_valued
from tests.privacy import enumeration as exact

EPSILONS = np.array([0.0, 0.03, 0.1, 0.3, 0.7, 1.3, 1.9])


def divergences(pairs) -> np.ndarray:
    """Return the largest hockey-stick divergence over pairs of laws at each of EPSILONS."""
    worst = np.zeros(len(EPSILONS))
    for first, second in pairs:
        for i, epsilon in enumerate(EPSILONS):
            value = float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())
            worst[i] = max(worst[i], value)
    return worst


def rappor(epsilon: float, categories: int) -> np.ndarray:
    flip = 1.0 / (math.exp(0.5 * epsilon) + 1.0)
    rows = []
    for own in range(categories):
        bits = [[1 - flip, flip] if j != own else [flip, 1 - flip] for j in range(categories)]
        rows.append([math.prod(b) for b in itertools.product(*bits)])
    return np.array(rows)


def reports(losses) -> np.ndarray:
    """All pairs of bits, each flipped by its own coin: two messages in one report."""
    rows = []
    for bits in itertools.product((0, 1), repeat=len(losses)):
        p = [1.0 / (1.0 + math.exp(-loss)) for loss in losses]
        outcomes = itertools.product((0, 1), repeat=len(losses))
        rows.append(
            [
                math.prod(q if a == b else 1 - q for a, b, q in zip(bits, o, p, strict=True))
                for o in outcomes
            ]
        )
    return np.array(rows)


def caps(epsilon: float, share: int) -> np.ndarray:
    """PrivUnit on a circle of 2 share arcs: a cap is two of them, towards every arc's end."""
    arcs = 2 * share
    rows = np.ones((arcs, arcs))
    for own in range(arcs):
        rows[own, [own, (own + 1) % arcs]] = math.exp(epsilon)
    return rows / rows.sum(axis=1, keepdims=True)


def laplace(epsilon: float, cells: int) -> np.ndarray:
    """A number with Laplace noise, told in cells: its divergences are no larger than the true."""
    edges = np.concatenate([[-np.inf], np.linspace(0.0, 1.0, cells - 1), [np.inf]])
    rows = []
    for x in (0.0, 0.3, 0.5, 1.0):
        z = epsilon * (edges - x)
        below = np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0)))
        rows.append(np.diff(below))
    return np.array(rows)


CASES = {
    "2rr": (exact.randomized_response(1.5), law_of("2rr", 1.5), 5, True),
    "krr over 3": (exact.randomized_response(1.5, 3), law_of("krr", 1.5, 3), 4, True),
    "krr over 4": (exact.randomized_response(3.0, 4), law_of("krr", 3.0, 4), 3, True),
    "hadamard, one block": (exact.hadamard_response(0.6), law_of("hadamard", 0.6, 3), 4, True),
    "rappor over 2": (rappor(2.0, 2), law_of("rappor", 2.0), 4, False),
    "rappor over 3": (rappor(1.0, 3), law_of("rappor", 1.0), 2, False),
    "whole reports": (reports((1.0, 0.5)), coins((1.0, 0.5)), 4, True),
    "equal coins": (reports((0.8, 0.8)), coins((0.8, 0.8)), 4, True),
    "privunit": (caps(2.0, 3), law_of("privunit(0.3333333333333333)", 2.0), 3, True),
    "laplace": (laplace(1.5, 6), law_of("laplace", 1.5), 3, False),
}


@pytest.mark.parametrize("name", CASES)
def test_no_neighbours_of_a_shuffle_are_further_apart_than_its_law_says(name):
    channel, law, n, tight = CASES[name]
    for size in range(1, n + 1):
        found = LawRound(law, size).profile(EPSILONS)
        worst = divergences(exact.shuffle_pairs(channel, size))
        assert np.all(worst <= found * (1.0 + 1e-12))
        if size == 1 and tight:
            # One message alone: nothing is lost but the lattice's step.
            assert np.all(found <= worst * 1.001 + 1e-9)
    assert found[0] <= 2.5 * worst[0]


@pytest.mark.parametrize("name", CASES)
def test_no_neighbours_of_a_sampled_shuffle_are_further_apart_than_its_law_says(name):
    channel, law, n, _ = CASES[name]
    for clients, sampled in ((n, 1), (n, n - 1), (max(2, n - 1), 1)):
        found = LawRound(law, sampled, rate=sampled / clients).profile(EPSILONS)
        worst = divergences(exact.subsampled_pairs(channel, clients, sampled))
        assert np.all(worst <= found * (1.0 + 1e-12))


@pytest.mark.parametrize("seed", range(8))
def test_clones_of_a_sample_hold_for_any_randomizer(seed):
    epsilon0 = (0.3, 1.0, 2.0, 4.0)[seed % 4]
    channel = exact.random_channel(seed, epsilon0)
    for clients, sampled in ((4, 1), (4, 2), (4, 3), (3, 2), (5, 3)):
        found = LawRound(clones(epsilon0), sampled, rate=sampled / clients).profile(EPSILONS)
        worst = divergences(exact.subsampled_pairs(channel, clients, sampled))
        assert np.all(worst <= found * (1.0 + 1e-12))


@pytest.mark.parametrize("epsilon0", [0.5, 3.0, 6.0])
def test_clones_of_a_sample_hold_for_three_symbols_of_which_one_is_everybody_elses(epsilon0):
    # The worst case of few hiding others: the victim's two symbols are nobody else's.
    channel = exact.randomized_response(epsilon0, 3)
    for clients, sampled in ((6, 1), (6, 3), (6, 5)):
        found = LawRound(clones(epsilon0), sampled, rate=sampled / clients).profile(EPSILONS)
        worst = divergences(exact.subsampled_pairs(channel, clients, sampled))
        assert np.all(worst <= found * (1.0 + 1e-12))


def laplace_ratio(x: float, y: np.ndarray, epsilon: float) -> np.ndarray:
    density = np.exp(-epsilon * np.abs(y - x))
    return density / np.exp(-epsilon * np.maximum(np.abs(y), np.abs(1.0 - y)))


@pytest.mark.parametrize("epsilon0", [0.5, 2.0, 5.0])
def test_the_ends_of_an_interval_are_the_worst_inputs_in_convex_order(epsilon0):
    law = interval(epsilon0)
    y = np.linspace(-12.0 / epsilon0, 1.0 + 12.0 / epsilon0, 200_001)
    blanket = np.exp(-epsilon0 * np.maximum(np.abs(y), np.abs(1.0 - y)))
    blanket /= blanket.sum()
    for level in np.exp(np.linspace(0.0, epsilon0, 7)):
        listed = float(law.weights @ np.maximum(law.first - level, 0.0))
        by_input = [
            float(blanket @ np.maximum(laplace_ratio(x, y, epsilon0) - level, 0.0))
            for x in (0.0, 0.1, 0.25, 0.5, 0.8, 1.0)
        ]
        assert max(by_input) <= listed * (1.0 + 1e-4) + 1e-4
        assert by_input[0] == pytest.approx(max(by_input), rel=1e-3, abs=1e-4)
        assert listed <= by_input[0] * 1.002 + 2e-3  # cells cost no more than that


def multinomial_excess(values, weights, n, k):
    """Return E (S/n - k)_+ exactly, over all counts of the values."""
    rest, total = 1.0 - sum(weights), 0.0
    for counts in itertools.product(range(n + 1), repeat=len(values)):
        left = n - sum(counts)
        if left < 0:
            continue
        ways = math.factorial(n) / math.factorial(left)
        probability = rest**left
        for count, weight in zip(counts, weights, strict=True):
            ways /= math.factorial(count)
            probability *= weight**count
        mean = sum(c * v for c, v in zip(counts, values, strict=True)) / n
        total += ways * probability * max(mean - k, 0.0)
    return total


@pytest.mark.parametrize("seed", range(5))
def test_excess_is_above_the_exact_sum_and_close_to_it(seed):
    draw = np.random.default_rng(seed)
    values = np.concatenate([draw.uniform(0.2, 3.0, 1), draw.uniform(-3.0, 1.0, 2)])
    weights = draw.dirichlet(np.ones(4))[:3]
    for n in (1, 2, 3, 7, 20):
        for k in (0.0, 0.3 * values[0], 0.8 * values[0]):
            truth = multinomial_excess(values, weights, n, k)
            found = excess.mean_excess(values[None], weights, n, np.array([k]))[0]
            assert truth <= found * (1.0 + 1e-12)
            assert found <= truth * 1.02 + 1e-12


@pytest.mark.parametrize("n", [10_000, 10**6, 10**7])
def test_excess_of_many_coins_is_within_a_few_percent_far_into_the_tail(n):
    # S is twice a binomial minus n: its excess is a sum of binomial tails.
    from scipy.stats import binom

    deviations = np.array([0.0, 2.0, 4.0, 6.0])
    k = deviations / math.sqrt(n)
    found = excess.mean_excess(np.tile([1.0, -1.0], (4, 1)), np.array([0.5, 0.5]), n, k)
    for threshold, value in zip(k, found, strict=True):
        first = math.floor(n * (1.0 + threshold) / 2.0) + 1
        # E (2X - n - nk)_+ over n, by E[X; X >= a] = (n/2) Pr[Bin(n - 1) >= a - 1].
        above = binom.sf(first - 1, n, 0.5)
        mean = binom.sf(first - 2, n - 1, 0.5) - (1.0 + threshold) * above
        assert mean * (1.0 - 1e-6) <= value <= 1.1 * mean


def test_rounding_of_convolutions_is_within_what_is_added():
    # Direct sums of positive numbers are right to 1e-13 of themselves.
    draw = np.random.default_rng(1)
    law = excess._Copy(np.array([[1.7, -0.4]]), np.array([0.3, 0.6]), np.array([0.2]))
    one = law.law(np.array([0.01]))
    one = excess.replace(one, mass=draw.dirichlet(np.full(400, 0.1), 1))
    found = excess._sum(one, one)
    true = np.convolve(one.mass[0], one.mass[0])
    assert np.all(found.mass[0] >= true)
    assert np.all(found.mass[0] <= true + 2.0 * found.noise[0])


RUNS = [
    (Shuffle(2.0, 10_000, "rappor"), 1),
    (Shuffle(4.0, 10_000, "privunit(0.1)"), 1),
    (Shuffle(2.0, 10_000, "laplace"), 1000),
    (SubsampledShuffle(2.0, 10**6, 1000, "krr", 100), 10**5),
    (SubsampledShuffle(6.0, 10**6, 1000), 2),
    (SubsampledShuffle(3.0, 10**5, 100), 2),
    (SubsampledMultiMessage((1.0, 1.0), 10_000, 1000, "rbin"), 20),
]


@pytest.mark.parametrize(("event", "times"), RUNS)
def test_runs_lie_above_their_floor_and_below_what_was_known(event, times):
    delta = 1e-6
    named = event.randomizer is not None
    found = find_run("pld-law" if named else "pld-subsampled").epsilon([(event, times)], delta)
    assert found.epsilon >= least_epsilon(event, times, delta)
    # Of several messages per client, per-index bounds may be smaller than those of whole reports.
    several = isinstance(event, SubsampledMultiMessage)
    for name in ("pld-reports",) if several else ("pld-clones", "pld-variation"):
        try:
            assert found.epsilon <= 1.01 * find_run(name).epsilon([(event, times)], delta).epsilon
        except Unsupported:
            continue


def test_the_sample_hides_what_few_clones_do_not():
    event = [(SubsampledShuffle(6.0, 10**6, 1000), 2)]
    assert find_run("pld-subsampled").epsilon(event, 1e-6).epsilon < 0.006
    assert find_run("pld-clones").epsilon(event, 1e-6).epsilon > 0.3


def test_unknown_laws_are_refused_and_say_so():
    bound = find_run("pld-law")
    for event in (
        Shuffle(1.0, 10),
        Shuffle(1.0, 10, "somebodys"),
        SubsampledMultiMessage((1.0, 1.0), 100, 10, "laplace"),
    ):
        with pytest.raises(Unsupported, match="law"):
            bound.epsilon([(event, 1)], 1e-6)
    for event in (Shuffle(1.0, 10, "krr"), Shuffle(1.0, 10, "privunit"), Shuffle(25.0, 10, "2rr")):
        with pytest.raises(NotApplicable):
            bound.epsilon([(event, 1)], 1e-6)


@pytest.mark.parametrize(
    ("kind", "settings", "share"),
    [
        ("privunit", {"dimension": 20, "radius": 1.0}, None),
        ("sqkr", {"dimension": 8, "radius": 1.0, "coordinates": 3}, 1 / 8),
        ("krr", {"categories": 7}, 1 / 7),
        ("rappor", {"categories": 7}, None),
        ("duchi-linf", {"dimension": 5, "radius": 1.0}, 1 / 2),
        ("vqsgd", {"dimension": 4, "radius": 1.0}, None),
    ],
)
def test_mechanisms_state_a_law_that_is_known(kind, settings, share):
    mechanism = make(kind, epsilon_local=2.0, **settings)
    law = law_of(mechanism.randomizer(), mechanism.losses()[0], mechanism.alphabet())
    assert float(law.weights @ law.first) * law.mass == pytest.approx(1.0)
    if share is not None:
        assert law.weights[0] == pytest.approx(share)
    if kind == "privunit":
        cap = mechanism.cap
        assert law.mass == pytest.approx((1 - cap.probability) / (1 - cap.mass), rel=1e-9)


def test_reports_of_many_ratios_are_put_on_a_lattice_that_errs_upwards():
    losses = tuple(0.1 + 0.05 * i for i in range(8))
    law = coins(losses)
    assert len(law.weights) == 200
    subsets = [sum(part) for r in range(9) for part in itertools.combinations(losses, r)]
    y, total = np.array(subsets), sum(losses)
    full = Law(law.mass, np.full(256, 2.0**-8), np.exp(y), np.exp(total - y), total)
    for n in (1, 30):
        true, found = (LawRound(one, n).profile(EPSILONS) for one in (full, law))
        assert np.all(found >= true * (1.0 - 2e-3))
        assert np.all(found <= true * 1.02 + 1e-12)
    with pytest.raises(NotApplicable, match="too many"):
        coins(tuple(0.1 + 0.01 * i for i in range(20)))


def test_whole_reports_of_known_messages_are_hidden_better_than_any_of_their_loss():
    event = MultiMessageShuffle((0.5,) * 8, 10_000, "rbin")
    whole = LawRound(coins(event.losses), event.n).epsilon(1e-6)
    assert whole < 0.8 * LawRound(clones(4.0), event.n).epsilon(1e-6)


def test_more_messages_hide_no_less():
    law = two_valued(2.0, 0.2)
    found = [LawRound(law, n).epsilon(1e-6) for n in (10, 100, 1000, 10_000)]
    assert found == sorted(found, reverse=True)
