"""What a run costs at least lies below the exact value and every proved bound, and near them."""

import ast
import functools
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from raydp_sim.mechanisms import make
from raydp_sim.privacy import events as ev
from raydp_sim.privacy.bound import run_bounds
from raydp_sim.privacy.composition.theorems import kov_exact
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle
from raydp_sim.privacy.floors import floors
from raydp_sim.privacy.floors.floors import least_epsilon, least_of_run, least_so_far
from tests.privacy import enumeration as oracle

DELTAS = (1e-12, 1e-6, 1e-3, 0.05, 0.3)


def exact_epsilon(pairs, delta):
    """Return the least epsilon that no pair needs more than delta for, rounded up a little."""
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if oracle.worst(pairs, oracle.hockey_stick, middle) > delta:
            low = middle
        else:
            high = middle
    return high + 1e-9


def composed(pairs, times):
    """Return the laws of several independent rounds with the same neighbours, pair by pair."""
    return [
        tuple(
            np.asarray([np.prod(one) for one in itertools.product(law.ravel(), repeat=times)])
            for law in pair
        )
        for pair in pairs
    ]


def all_below(event, pairs, times=1, named=True):
    """Check the floors at several deltas; return those that are not 0 over the exact epsilons."""
    shares = []
    for delta in DELTAS:
        exact = exact_epsilon(pairs, delta)
        found = least_epsilon(event, times, delta, named)
        assert 0.0 <= found <= exact, (event, times, delta)
        if exact > 1e-3:
            shares.append(found / exact)
    return shares


# Against full enumeration: every neighbour, both directions


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_one_shuffle_of_randomized_response_is_nearly_exact(epsilon0, n):
    pairs = list(oracle.shuffle_pairs(oracle.randomized_response(epsilon0), n))
    for name in (None, "2rr", "rbin"):
        shares = all_below(Shuffle(epsilon0, n, name), pairs)
        assert min(shares) > (0.999999 if n == 1 else 0.5)


@pytest.mark.parametrize(("epsilon0", "k"), [(0.5, 3), (2.0, 3), (2.0, 5), (5.0, 4)])
def test_more_symbols_leak_no_less_than_their_floor(epsilon0, k):
    for n in (1, 3):
        pairs = list(oracle.shuffle_pairs(oracle.randomized_response(epsilon0, k), n))
        assert max(all_below(Shuffle(epsilon0, n, "krr", k), pairs)) > 0.7


@pytest.mark.parametrize(("epsilon0", "k"), [(0.5, 2), (0.69, 3), (1.0, 3), (1.5, 4), (2.5, 6)])
def test_hadamard_response_leaks_no_less_than_its_floor(epsilon0, k):
    response = make("hadamard-response", epsilon_local=epsilon0, categories=k)
    channel = response.laws(np.arange(k, dtype=float)[:, None])[0]
    for n in (1, 2):
        pairs = list(oracle.shuffle_pairs(channel, n)) if channel.shape[1] < 9 or n == 1 else []
        if pairs:
            assert max(all_below(Shuffle(epsilon0, n, "hadamard", k), pairs)) > 0.4


@pytest.mark.parametrize(("n", "k"), [(2, 1), (4, 2), (7, 3), (6, 6)])
@pytest.mark.parametrize("epsilon0", [0.5, 3.0])
def test_a_sampled_shuffle_leaks_no_less_than_its_floor(epsilon0, n, k):
    for symbols, name in ((2, None), (3, "krr")):
        channel = oracle.randomized_response(epsilon0, symbols)
        pairs = list(oracle.subsampled_pairs(channel, n, k))
        event = SubsampledShuffle(epsilon0, n, k, name, None if name is None else symbols)
        assert max(all_below(event, pairs)) > 0.5


@pytest.mark.parametrize("rate", [0.05, 0.5, 1.0])
def test_clients_who_join_by_coins_leak_no_less_than_their_floor(rate):
    for epsilon0 in (0.5, 3.0):
        pairs = list(oracle.self_sampled_pairs(oracle.randomized_response(epsilon0), 5, rate))
        assert max(all_below(ev.SelfSampledShuffle(epsilon0, 5, rate), pairs)) > 0.2


@pytest.mark.parametrize("shape", [(3, 2, 2, 1), (2, 3, 2, 2), (3, 1, 1, 1)])
def test_sampled_points_leak_no_less_than_their_floor(shape):
    m, r, k, s = shape
    pairs = list(oracle.two_stage_pairs(oracle.randomized_response(1.5), m, r, k, s))
    assert max(all_below(ev.CldpRound(1.5, m, r, k, s), pairs)) > 0.3


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("epsilon0", [0.3, 2.0, 6.0])
def test_several_rounds_leak_no_less_than_their_floor(epsilon0, times):
    channel = oracle.randomized_response(epsilon0)
    for n, k in ((1, 1), (3, 3), (5, 1), (6, 2)):
        pairs = composed(oracle.subsampled_pairs(channel, n, k), times)
        assert max(all_below(SubsampledShuffle(epsilon0, n, k), pairs, times)) > 0.6


def batch_law(loss, k, x):
    """Return the law of the count of k messages of 2RR: the victim holds x, everyone else 0."""
    row = oracle.randomized_response(loss)
    return oracle.histogram_law(row, [x] + [0] * (k - 1), k).ravel()


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 1), (5, 2)])
@pytest.mark.parametrize("losses", [(1.0, 1.0), (2.0, 2.0, 0.5), (4.0, 4.0, 4.0)])
def test_several_messages_of_a_sample_leak_no_less_than_their_floor(losses, n, k):
    # All shufflers show the victim or none does, and only then does what it holds matter.
    laws = [
        functools.reduce(np.multiply.outer, (batch_law(e, k, x) for e in losses)) for x in (0, 1)
    ]
    mixed = [(1 - k / n) * laws[0] + k / n * law for law in laws]
    event = ev.SubsampledMultiMessage(losses, n, k)
    assert max(all_below(event, [tuple(mixed), tuple(reversed(mixed))])) > 0.8


# Against closed forms


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_a_laplace_number_costs_no_less_than_its_floor(epsilon):
    for delta in (1e-6, 0.01, 0.2):
        # At an epsilon below its own, Laplace noise needs delta = 1 - e^((epsilon' - epsilon)/2).
        exact = max(0.0, epsilon + 2.0 * math.log1p(-delta))
        for event in (ev.LaplaceRelease(epsilon), Shuffle(epsilon, 1, "laplace")):
            found = least_epsilon(event, 1, delta)
            assert found <= exact + 1e-12
            assert found >= 0.7 * exact - 0.01


def test_laplace_coins_are_those_of_the_noise():
    rng = np.random.default_rng(7)
    noise = rng.laplace(scale=1.0 / 3.0, size=400_000)
    for (yes, lift, miss), u in zip(
        floors._laplace(3.0, None)[0], (0.5, 1.0 - 0.45 / 3.0, 1.0), strict=True
    ):
        assert yes + lift + miss == pytest.approx(1.0, abs=1e-15)
        # 400,000 draws: 6 standard errors of at most 0.00079, a false alarm with probability 1e-8.
        assert np.mean(noise > u) == pytest.approx(yes, abs=0.0048)
        assert np.mean(1.0 + noise > u) == pytest.approx(yes + lift, abs=0.0048)


@pytest.mark.parametrize("times", [1, 2, 30, 1000])
def test_local_reports_cost_what_randomized_response_does(times):
    for epsilon in (0.01, 0.5, 3.0):
        for delta in (1e-9, 1e-3):
            exact = kov_exact(epsilon, times, delta)
            for kind in (ev.LocalReport, ev.CentralRelease):
                found = least_epsilon(kind(epsilon), times, delta)
                # Beyond e^690 the rarer answer is smaller than any number.
                assert 0.97 * min(exact, 690.0) - 1e-9 <= found <= exact
    # What is told with probability delta is told.
    told = ev.LocalReport(1.0, 1e-3)
    assert least_epsilon(told, 1, 0.9e-3) > 1.0
    assert least_epsilon(told, 1, 1.1e-3) <= 1.0


@pytest.mark.parametrize("rate", [1.0, 0.1, 1e-3])
def test_a_sampled_gaussian_is_the_mixture(rate):
    for noise in (0.5, 2.0):
        for epsilon in (0.01, 0.3, 1.5):
            # delta of (1-q) N(0,1) + q N(d,1) against N(0,1): a threshold t where the ratio is e^e.
            inside = 1.0 + math.expm1(epsilon) / rate
            t = noise * math.log(inside) + 0.5 / noise
            above = [0.5 * math.erfc((t - shift) / math.sqrt(2.0)) for shift in (1 / noise, 0.0)]
            delta = rate * above[0] - (math.exp(epsilon) - 1.0 + rate) * above[1]
            if not 1e-13 < delta < 1:
                continue
            found = least_epsilon(ev.SubsampledGaussian(noise, rate), 1, delta)
            # Removing the record may need a little more than adding it.
            assert found >= epsilon * 0.98
            if rate == 1.0:
                assert found <= epsilon * (1 + 1e-6)


# Against every proved bound


def corners(seed, points):
    """Draw runs from the corners too; the randomizers in turn."""
    rng = np.random.default_rng(seed)
    names = [(None, None), ("2rr", None), ("krr", 3), ("krr", 60), ("hadamard", 20), ("laplace",)]
    for index in range(points):
        epsilon0 = float(10 ** rng.uniform(-2.0, 1.08))
        clients = int(10 ** rng.uniform(0.0, 6.0))
        sampled = max(1, int(clients * 10 ** rng.uniform(-6.0, 0.0)))
        times = int(10 ** rng.choice([0.0, rng.uniform(0.0, 1.0), rng.uniform(0.0, 5.0)]))
        delta = float(10 ** rng.uniform(-14.0, -0.5))
        name = names[index % len(names)]
        one = (
            Shuffle(epsilon0, sampled, *name),
            SubsampledShuffle(epsilon0, clients, sampled, *name),
            ev.SelfSampledShuffle(epsilon0, clients, sampled / clients, *name),
            ev.CldpRound(epsilon0, clients, 3, sampled, 1 + index % 3),
            ev.SubsampledMultiMessage((epsilon0, epsilon0 / 2, epsilon0), clients, sampled),
            ev.MultiMessageShuffle((epsilon0,) * 5, sampled, name[0]),
            ev.GaussianRelease(1.0 / epsilon0),
            ev.SubsampledGaussian(1.0 / epsilon0, sampled / clients),
            ev.LaplaceRelease(epsilon0),
            ev.LocalReport(epsilon0),
        )
        yield one[int(rng.choice([0, 0, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]))], times, delta


@pytest.mark.parametrize("seed", range(4))
def test_no_proved_bound_lies_below_a_floor(seed):
    told = 0
    for event, times, delta in corners(seed, 10):
        for bound in run_bounds():
            if bound.status != "proved":
                continue
            floor = least_epsilon(event, times, delta, bound.by_name)
            try:
                value = bound.epsilon([(event, times)], delta).epsilon
            except (NotApplicable, Unsupported):
                continue
            assert value >= floor, (bound.name, event, times, delta)
            told += floor > 0.0
    assert told > 20


def test_bounds_that_do_not_go_by_name_say_the_same_of_every_name():
    named = SubsampledShuffle(1.5, 10_000, 500, "krr", 8)
    nameless = SubsampledShuffle(1.5, 10_000, 500)
    told = 0
    for bound in run_bounds():
        try:
            value = bound.epsilon([(named, 7)], 1e-6).epsilon
        except (NotApplicable, Unsupported):
            continue
        told += 1
        if not bound.by_name:
            assert value == bound.epsilon([(nameless, 7)], 1e-6).epsilon, bound.name
    assert told > 8


# Shape


def test_more_rounds_never_cost_less_than_one():
    for event, times, delta in corners(99, 60):
        assert least_epsilon(event, times, delta) >= least_epsilon(event, 1, delta)
        assert least_so_far(event, times, delta) >= least_epsilon(event, 1, delta)


def test_a_run_costs_no_less_than_any_of_its_events():
    one, two = (Shuffle(1.0, 100), 5), (SubsampledShuffle(3.0, 50, 5), 2)
    each = [least_epsilon(event, times, 1e-6) for event, times in (one, two)]
    assert least_of_run([one, two], 1e-6, True) == max(each) > 0.0
    assert least_of_run([], 1e-6, True) == 0.0


def test_a_name_whose_law_is_not_known_has_no_floor_of_its_own():
    event = Shuffle(1.0, 10, "somebody's")
    assert least_epsilon(event, 5, 1e-6) == 0.0
    assert least_epsilon(event, 5, 1e-6, named=False) == least_epsilon(Shuffle(1.0, 10), 5, 1e-6)


def test_nothing_costs_nothing():
    for event in (Shuffle(0.0, 10), ev.LocalReport(0.0), ev.LaplaceRelease(0.0)):
        assert least_epsilon(event, 100, 1e-9) == 0.0


def test_huge_losses_and_batches_are_finite_or_left_out():
    assert least_epsilon(Shuffle(800.0, 10), 3, 1e-6) <= 3 * 800.0
    assert least_epsilon(ev.LocalReport(math.inf), 1, 1e-6) < math.inf
    assert least_epsilon(Shuffle(1.0, 10**13), 3, 1e-12) == 0.0
    assert 0.0 < least_epsilon(Shuffle(1e-6, 1), 10**13, 1e-3) < 6.4


def test_nothing_that_computes_upper_bounds_is_used():
    tree = ast.parse(Path(floors.__file__).read_text(encoding="utf-8"))
    names = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in names if name.startswith("raydp_sim")}
    assert ours == {
        f"raydp_sim.privacy{part}" for part in ("", ".errors", ".floors.questions", ".names")
    }
