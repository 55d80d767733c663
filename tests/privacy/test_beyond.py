"""The bounds beyond the seeds as bounds on runs, sampled multi-message rounds, and collusion."""

import itertools
import math

import numpy as np
import pytest

from raydp_sim.privacy import events as ev
from raydp_sim.privacy.accountant import account, calibrate
from raydp_sim.privacy.bound import find_rdp, find_run, run_bounds
from raydp_sim.privacy.composition.search import largest_within
from raydp_sim.privacy.curves.caps import cap_rdp, pure_epsilon
from raydp_sim.privacy.curves.collusion import among_honest
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import Shuffle, SubsampledMultiMessage, SubsampledShuffle
from tests.privacy import enumeration as oracle

ABOVE = 1 + 1e-10


def run(name, *events, delta=1e-8):
    return find_run(name).epsilon(list(events), delta).epsilon


def test_loss_distributions_are_the_best_of_the_default_tables():
    sampled = account([(SubsampledShuffle(2.0, 10**6, 1000), 10**5)], 1e-8)
    assert sampled["pld-clones"].value == pytest.approx(0.2083, rel=1e-3)
    assert sampled.best == "pld-subsampled"
    assert sampled.epsilon == pytest.approx(0.1964, rel=1e-3)
    whole = account([(Shuffle(0.5, 10**6), 10**5)], 1e-8)
    assert whole.best == "pld-clones"
    assert whole.epsilon == pytest.approx(1.0156, rel=1e-3)


@pytest.mark.parametrize("name", ["pld-variation", "variation+kov"])
def test_bounds_on_named_randomizers_refuse_all_others(name):
    for randomizer in (None, "privunit", "gaussian"):
        with pytest.raises(Unsupported, match="2rr, krr, hadamard, rbin, laplace, rappor only"):
            run(name, (Shuffle(1.0, 100, randomizer), 3))
    with pytest.raises(Unsupported, match="SelfSampledShuffle"):
        run(name, (ev.SelfSampledShuffle(1.0, 100, 0.5, "2rr"), 3))
    with pytest.raises(NotApplicable, match="alphabet"):
        run(name, (Shuffle(1.0, 100, "krr"), 3))
    with pytest.raises(NotApplicable, match="alphabet"):
        run(name, (Shuffle(1.0, 100, "laplace", 7), 3))


@pytest.mark.parametrize(
    ("randomizer", "alphabet"),
    [("2rr", None), ("krr", 20), ("hadamard", 50), ("rbin", None), ("laplace", None)],
)
def test_knowing_the_randomizer_never_costs(randomizer, alphabet):
    named = Shuffle(2.0, 10_000, randomizer, alphabet)
    for times in (1, 50):
        known, generic = run("pld-variation", (named, times)), run("pld-clones", (named, times))
        assert known <= generic * (1 + 1e-3)
        assert run("variation+kov", (named, times)) >= known


def test_unequal_events_and_messages_compose():
    one, two = Shuffle(0.5, 1000), SubsampledShuffle(1.0, 5000, 500)
    both = run("pld-clones", (one, 10), (two, 20))
    assert max(run("pld-clones", (one, 10)), run("pld-clones", (two, 20))) < both
    assert both < run("pld-clones", (one, 10)) + run("pld-clones", (two, 20)) + 1.0
    many = ev.MultiMessageShuffle((0.5, 0.25, 0.5), 1000, "rbin")
    parts = [(Shuffle(0.5, 1000, "rbin"), 6), (Shuffle(0.25, 1000, "rbin"), 3)]
    for name in ("pld-clones", "pld-variation", "rdp-best"):
        assert run(name, (many, 3)) == run(name, *parts)
    with pytest.raises(NotApplicable, match="one randomizer"):
        run("variation+kov", (Shuffle(1.0, 9, "2rr"), 1), (Shuffle(1.0, 9, "krr", 3), 1))


@pytest.mark.parametrize(("clients", "sampled"), [(3, 1), (4, 2), (4, 4)])
@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_a_single_sampled_release_is_never_below_the_exact_value(clients, sampled, epsilon0):
    for symbols, event in (
        (2, SubsampledShuffle(epsilon0, clients, sampled, "2rr")),
        (3, SubsampledShuffle(epsilon0, clients, sampled, "krr", 3)),
    ):
        channel = oracle.randomized_response(epsilon0, symbols)
        pairs = list(oracle.subsampled_pairs(channel, clients, sampled))
        for delta in (1e-4, 0.03, 0.2):
            for name in ("pld-clones", "pld-variation"):
                epsilon = run(name, (event, 1), delta=delta)
                assert oracle.worst(pairs, oracle.hockey_stick, epsilon) <= delta * (1 + 1e-9)


def sampled_multi_pairs(channels, clients, sampled):
    """Yield the laws of one histogram per shuffler when the same k of n clients send to all."""
    shared = [list(itertools.product(*(range(len(c)) for c in channels)))][0]
    subsets = list(itertools.combinations(range(clients), sampled))

    def law(data):
        total = 0.0
        for chosen in subsets:
            joint = np.ones(1)
            for i, channel in enumerate(channels):
                inputs = [data[client][i] for client in chosen]
                part = oracle.histogram_law(channel, inputs, sampled).ravel()
                joint = np.outer(joint, part).ravel()
            total = total + joint / len(subsets)
        return total

    for others in itertools.combinations_with_replacement(shared, clients - 1):
        yield from itertools.permutations([law((mine, *others)) for mine in shared], 2)


@pytest.mark.parametrize("losses", [(1.0, 1.0), (0.3, 2.0)])
@pytest.mark.parametrize(("clients", "sampled"), [(2, 1), (3, 2), (4, 2), (4, 3), (3, 3)])
def test_sampled_multi_message_rounds_are_bounded(losses, clients, sampled):
    channels = [oracle.randomized_response(loss, 2) for loss in losses]
    event = SubsampledMultiMessage(losses, clients, sampled)
    pairs = [
        tuple(side[(p + q) > 0] for side in (p, q))
        for p, q in sampled_multi_pairs(channels, clients, sampled)
    ]
    bound = find_rdp("wbk_multi", event)
    for alpha in (2, 3, 5, 17):
        exact = oracle.worst(pairs, oracle.renyi, alpha)
        assert exact <= bound.rdp(event, alpha) * ABOVE
        assert exact <= cap_rdp(event, alpha) * ABOVE
    assert oracle.worst(pairs, oracle.hockey_stick, pure_epsilon(event)) <= 1e-12
    for delta in (1e-3, 0.1):
        epsilon = account([(event, 1)], delta).epsilon
        assert oracle.worst(pairs, oracle.hockey_stick, epsilon) <= delta * (1 + 1e-9)


def test_a_sampled_multi_message_round_is_more_than_each_of_its_messages():
    one, both = SubsampledShuffle(1.0, 10**6, 1000), SubsampledMultiMessage((1.0, 0.5), 10**6, 1000)
    single = SubsampledMultiMessage((1.0,), 10**6, 1000)
    for alpha in (2, 20, 200):
        alone = find_rdp("wbk_clones", one).rdp(one, alpha)
        multi = find_rdp("wbk_multi", both)
        assert multi.rdp(single, alpha) <= alone * (1 + 1e-12)
        assert multi.rdp(both, alpha) > multi.rdp(single, alpha)
    assert multi.rdp(SubsampledMultiMessage((0.0, 0.0), 100, 10), 5) == 0.0


def test_clients_that_join_by_coins_have_no_multi_message_record():
    with pytest.raises(Unsupported, match="SubsampledMultiMessage"):
        run("rdp-mixture", (SubsampledMultiMessage((1.0,), 10, 5), 1))
    with pytest.raises(ValueError, match="losses"):
        SubsampledMultiMessage((), 10, 5)
    with pytest.raises(ValueError, match="sampled is 11"):
        SubsampledMultiMessage((1.0,), 10, 11)


def test_losses_beyond_the_digits_of_a_tilt_are_left_to_other_bounds():
    event = Shuffle(40.0, 100, "2rr")
    for name in ("pld-clones", "pld-variation"):
        with pytest.raises(NotApplicable, match="up to epsilon0 27"):
            run(name, (event, 3))
        assert 0.0 < run(name, (Shuffle(26.0, 100, "2rr"), 3)) <= 3 * 26.0


def test_collusion_costs_and_is_charged_upwards():
    for event in (
        Shuffle(1.0, 1000),
        ev.SelfSampledShuffle(1.0, 10_000, 0.1),
        SubsampledShuffle(1.0, 100_000, 5000),
    ):
        costs = []
        for fraction in (1.0, 0.8, 0.5, 0.0):
            charged, delta = among_honest(event, fraction, 10, 1e-6)
            assert 0.98e-6 < delta <= 1e-6
            costs.append(account([(charged, 10)], delta).epsilon)
        assert costs == sorted(costs)
    same, delta = among_honest(SubsampledShuffle(1.0, 100, 10), 1.0, 10, 1e-6)
    assert (same, delta) == (SubsampledShuffle(1.0, 100, 10), 1e-6)
    with pytest.raises(Unsupported, match="GaussianRelease"):
        among_honest(ev.GaussianRelease(1.0), 0.5, 1, 1e-6)


def test_a_sample_with_colluders_is_within_its_mixture():
    """Condition on how many honest clients are sampled: the charge covers the exact mixture."""
    clients, sampled, honest, epsilon0, delta = 40, 30, 20, 1.0, 0.2
    charged, left = among_honest(SubsampledShuffle(epsilon0, clients, sampled), 0.5, 1, delta)
    epsilon = find_run("pld-clones").epsilon([(charged, 1)], left).epsilon
    total = 0.0
    for j in range(max(1, honest + sampled - clients), min(honest, sampled) + 1):
        weight = math.comb(honest, j) * math.comb(clients - honest, sampled - j)
        pairs = oracle.subsampled_pairs(oracle.randomized_response(epsilon0), honest, j)
        total += (
            weight
            / math.comb(clients, sampled)
            * max(oracle.hockey_stick(pair, epsilon) for pair in itertools.islice(pairs, 40))
        )
    assert total <= delta


@pytest.mark.parametrize("times", [1, 1000])
@pytest.mark.parametrize("target", [0.05, 1.0])
def test_calibration_by_the_best_bound_never_exceeds_its_target(times, target):
    def make(epsilon0):
        return SubsampledShuffle(epsilon0, 10**5, 1000)

    epsilon0 = calibrate(target, 1e-6, make, times)
    assert account([(make(epsilon0), times)], 1e-6).epsilon <= target
    if epsilon0 < 20.0:
        assert account([(make(1.001 * epsilon0), times)], 1e-6).epsilon > target


def test_the_search_ends_at_its_limits():
    assert largest_within(lambda x: x, 5.0, 1e-3, 2.0) == pytest.approx(2.0, rel=1e-12)
    assert largest_within(lambda x: x, 1e-4, 1e-3, 2.0) == 0.0
    for step in (0.7, 3.1):
        found = largest_within(lambda x, s=step: 0.0 if x <= s else math.inf, 1.0, 1e-6, 20.0)
        assert step * (1 - 3e-6) <= found <= step


def test_the_search_takes_few_evaluations_also_where_a_grid_point_is_the_answer():
    """From 1 it climbs by factors of e^0.7, so that at these targets it meets the root itself."""
    for target in (1.0, math.exp(0.7), math.exp(1.4), 0.9999, 3.0):
        tried = []

        def epsilon(x, tried=tried):
            tried.append(x)
            return x

        found = largest_within(epsilon, target, 1e-6, 20.0)
        assert target * (1 - 3e-6) <= found <= target * (1 + 1e-12)
        assert found in tried and len(tried) < 60


def test_every_run_bound_has_its_own_name_and_a_source():
    names = [bound.name for bound in run_bounds()]
    assert len(set(names)) == len(names)
    assert all(bound.source for bound in run_bounds())
