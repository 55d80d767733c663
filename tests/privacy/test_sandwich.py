"""Every bound holds what it promises: exact laws over all neighbours, in both directions."""

import math

import pytest

from raydp_sim.privacy.bound import find_rdp, rdp_bounds
from raydp_sim.privacy.bounds.closed_forms import Blanket, balle_log_delta
from raydp_sim.privacy.composition.rounds import cldp_round
from raydp_sim.privacy.composition.theorems import kov_exact
from raydp_sim.privacy.curves.caps import cap_rdp, capped, pure_epsilon
from raydp_sim.privacy.curves.sampling import subsample
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import CldpRound, SelfSampledShuffle, Shuffle, SubsampledShuffle
from tests.privacy import enumeration as oracle

ABOVE = 1 + 1e-10  # rounding of the oracle
CHANNELS = {
    "2RR": lambda e: oracle.randomized_response(e, 2),
    "3RR": lambda e: oracle.randomized_response(e, 3),
    "4RR": lambda e: oracle.randomized_response(e, 4),
    "hadamard": lambda e: oracle.hadamard_response(e, 4),
    "random-1": lambda e: oracle.random_channel(1, e, 3, 3),
    "random-2": lambda e: oracle.random_channel(2, e, 2, 4),
    "random-3": lambda e: oracle.random_channel(3, e, 4, 3),
}
ORDERS = (2, 3, 5, 17)


def proved(event):
    return [b for b in rdp_bounds() if b.status == "proved" and type(event) in b.events]


def assert_above(event, pairs):
    for alpha in ORDERS:
        exact = oracle.worst(pairs, oracle.renyi, alpha)
        assert exact <= cap_rdp(event, alpha) * ABOVE
        for bound in proved(event):
            assert exact <= capped(bound, event, alpha) * ABOVE, (bound.name, alpha)
            try:
                assert exact <= bound.rdp(event, alpha) * ABOVE, (bound.name, alpha)
            except NotApplicable:
                pass


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 2.5])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_shuffle_bounds_are_above_every_channel(name, epsilon0, n):
    pairs = list(oracle.shuffle_pairs(CHANNELS[name](epsilon0), n))
    assert_above(Shuffle(epsilon0, n), pairs)


@pytest.mark.parametrize("epsilon0", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [10, 60])
def test_lower_exact_and_upper_bounds_are_in_order(epsilon0, n):
    event = Shuffle(epsilon0, n)
    pairs = list(oracle.shuffle_pairs(oracle.randomized_response(epsilon0), n))
    assert_above(event, pairs)
    for alpha in (2, 5, 32):
        value = {name: find_rdp(name, event).rdp(event, alpha) for name in NAMES}
        exact = oracle.worst(pairs, oracle.renyi, alpha)
        assert value["simple_lower"] <= value["lower"] * ABOVE
        assert value["lower"] <= exact * ABOVE
        assert exact <= min(value["numeric"], value["clones"]) * ABOVE
        assert value["numeric"] <= value["upper1"] * ABOVE


NAMES = ("simple_lower", "lower", "numeric", "clones", "upper1")


@pytest.mark.parametrize("name", ["2RR", "3RR", "hadamard", "random-1", "random-2"])
@pytest.mark.parametrize(("epsilon0", "n", "k"), [(0.5, 5, 2), (1.0, 4, 4), (2.0, 5, 3), (1, 6, 1)])
def test_subsampled_bounds_are_above_every_channel(name, epsilon0, n, k):
    event = SubsampledShuffle(epsilon0, n, k)
    pairs = list(oracle.subsampled_pairs(CHANNELS[name](epsilon0), n, k))
    assert_above(event, pairs)
    for epsilon in (0.05, 0.2, 0.5):
        delta = oracle.worst(pairs, oracle.hockey_stick, epsilon)
        assert delta <= (0.0 if epsilon >= pure_epsilon(event) else 1.0) + 1e-13


@pytest.mark.parametrize(("epsilon0", "n", "k"), [(0.5, 8, 3), (2.0, 12, 6), (1.0, 10, 10)])
def test_the_subsampled_lower_bound_is_below_2rr(epsilon0, n, k):
    event = SubsampledShuffle(epsilon0, n, k)
    pairs = list(oracle.subsampled_pairs(oracle.randomized_response(epsilon0), n, k))
    for alpha in ORDERS:
        exact = oracle.worst(pairs, oracle.renyi, alpha)
        assert find_rdp("lower", event).rdp(event, alpha) <= exact * ABOVE


@pytest.mark.parametrize("name", ["2RR", "3RR", "random-1"])
@pytest.mark.parametrize(("epsilon0", "rate"), [(1.0, 0.3), (2.0, 0.7), (0.5, 1.0)])
def test_coins_are_bounded_by_the_mixture(name, epsilon0, rate):
    pairs = list(oracle.self_sampled_pairs(CHANNELS[name](epsilon0), 4, rate))
    assert_above(SelfSampledShuffle(epsilon0, 4, rate), pairs)


@pytest.mark.parametrize("name", ["2RR", "random-2"])
@pytest.mark.parametrize(
    "shape",
    [
        (3, 2, 2, 1),
        (2, 3, 1, 1),
        (2, 2, 2, 1),
        (3, 2, 3, 1),
        (2, 3, 1, 2),
        (3, 2, 1, 2),
        (2, 3, 2, 2),
    ],
)
def test_two_stage_rounds_are_bounded(name, shape):
    event = CldpRound(1.0, *shape)
    channel = CHANNELS[name](1.0)
    pairs = list(oracle.two_stage_pairs(channel, *shape))
    assert_above(event, pairs)
    messages = shape[2] * shape[3]
    shuffled = list(oracle.shuffle_pairs(channel, messages))

    def exact_delta(epsilon):
        return oracle.worst(shuffled, oracle.hockey_stick, epsilon)

    for inner in (0.1, 0.4):
        delta = exact_delta(inner)
        epsilon, total = cldp_round(event, delta, lambda e0, n, d, at=inner: at)
        assert oracle.worst(pairs, oracle.hockey_stick, epsilon) <= total * ABOVE + 1e-14


def test_one_message_is_not_hidden_by_shuffling():
    event = Shuffle(1.7, 1)
    for alpha in (2, 5, 60):
        exact = cap_rdp(event, alpha)
        assert find_rdp("lower", event).rdp(event, alpha) == pytest.approx(exact, rel=1e-12)
        assert find_rdp("numeric", event).rdp(event, alpha) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("symbols", [2, 3, 4])
@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 3.0])
def test_the_blanket_is_above_randomized_response(symbols, epsilon0):
    n = {2: 60, 3: 8, 4: 5}[symbols]
    pairs = list(oracle.shuffle_pairs(oracle.randomized_response(epsilon0, symbols), n))
    mass = symbols / (math.exp(epsilon0) + symbols - 1)
    kinds = (Blanket(), Blanket("published", mass), Blanket("tight", mass))
    for share in (0.05, 0.2, 0.5, 0.9):
        exact = oracle.worst(pairs, oracle.hockey_stick, share * epsilon0)
        for blanket in kinds:
            bound = math.exp(balle_log_delta(epsilon0, n, share * epsilon0, blanket))
            assert exact <= bound * ABOVE + 1e-15, blanket


def test_exact_composition_is_that_of_randomized_response():
    """T uses of 2RR on one bit; their joint law is known, so delta is enumerable."""
    epsilon, times, slack = 0.3, 12, 1e-3
    found = kov_exact(epsilon, times, slack)
    p = 1 / (1 + math.exp(-epsilon))
    losses = [((2 * k - times) * epsilon, k) for k in range(times + 1)]

    def delta(at):
        return sum(
            math.comb(times, k) * p**k * (1 - p) ** (times - k) * max(0, 1 - math.exp(at - loss))
            for loss, k in losses
        )

    assert delta(found) <= slack < delta(found * (1 - 1e-9))


def test_sampling_amplifies_as_stated():
    """A pure mechanism on 1 of 2 clients: the exact loss is log(1 + (e^eps - 1)/2)."""
    pairs = list(oracle.subsampled_pairs(oracle.randomized_response(1.0), 2, 1))
    epsilon, _ = subsample(1.0, 0.0, 0.5)
    assert oracle.worst(pairs, oracle.hockey_stick, epsilon) < 1e-15
    assert oracle.worst(pairs, oracle.hockey_stick, epsilon * 0.999) > 1e-5
