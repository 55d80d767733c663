"""Renyi divergences of shuffles of known laws, by enumeration of all neighbours both ways."""

import math

import mpmath
import numpy as np
import pytest

from raydp_sim.privacy.bounds.law import OfLaw
from raydp_sim.privacy.bounds.lower import Lower
from raydp_sim.privacy.composition.law_divergences import log_moments, losses_of, renyi
from raydp_sim.privacy.composition.law_rounds import LawRound
from raydp_sim.privacy.composition.losses import Side
from raydp_sim.privacy.curves.caps import best_vector, cap_rdp
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import (
    MultiMessageShuffle,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.privacy.laws import two_valued
from raydp_sim.privacy.ledger.filter import ORDERS
from raydp_sim.privacy.spent import spent
from tests.privacy import enumeration as exact
from tests.privacy.test_laws import rappor, reports

TRIED = np.array([2.0, 3.0, 5.0, 17.0, 64.0, 300.0])


def worst(pairs) -> np.ndarray:
    """Return the largest divergence over pairs of laws, each given both ways, at each of TRIED."""
    most = np.zeros(len(TRIED))
    for pair in pairs:
        most = np.maximum(most, [exact.renyi(pair, order) for order in TRIED])
    return most


@pytest.mark.parametrize(
    "channel,event",
    [
        (exact.randomized_response(1.0), lambda n: Shuffle(1.0, n, "2rr")),
        (exact.randomized_response(0.01), lambda n: Shuffle(0.01, n, "rbin")),
        (exact.randomized_response(5.0), lambda n: Shuffle(5.0, n, "2rr")),
        (exact.randomized_response(2.0, 3), lambda n: Shuffle(2.0, n, "krr", 3)),
        (exact.hadamard_response(1.0), lambda n: Shuffle(1.0, n, "hadamard", 3)),
        (rappor(2.0, 2), lambda n: Shuffle(2.0, n, "rappor")),
    ],
)
def test_no_neighbours_are_further_apart(channel, event):
    for n in (1, 2, 5) if channel.shape[1] < 4 else (1, 2, 3):
        found = OfLaw().rdp_vector(event(n), TRIED)
        floor = worst(exact.shuffle_pairs(channel, n))
        assert np.all(found >= floor * (1 - 1e-12))
        if n == 1 and event(n).randomizer != "hadamard":  # of which one block is taken for many
            assert np.all(found <= floor * 1.01)


@pytest.mark.parametrize("clients,sampled", [(2, 1), (4, 2), (3, 3)])
def test_no_sampled_neighbours_are_further_apart(clients, sampled):
    for loss, symbols in ((1.0, 2), (3.0, 3)):
        channel = exact.randomized_response(loss, symbols)
        event = SubsampledShuffle(loss, clients, sampled, "krr", symbols)
        floor = worst(exact.subsampled_pairs(channel, clients, sampled))
        assert np.all(OfLaw().rdp_vector(event, TRIED) >= floor * (1 - 1e-12))


def test_several_messages_cost_no_less_than_the_multisets_per_index():
    """Per index the view is a product: exact divergences add up. Whole reports bound them too."""
    losses = (1.0, 0.5)
    for n in (1, 2, 4):
        rows = [worst(exact.shuffle_pairs(exact.randomized_response(e), n)) for e in losses]
        found = OfLaw().rdp_vector(MultiMessageShuffle(losses, n, "rbin"), TRIED)
        assert np.all(found >= sum(rows) * (1 - 1e-12))
        whole = worst(exact.shuffle_pairs(reports(losses), n)) if n < 3 else sum(rows)
        assert np.all(found >= np.minimum(sum(rows), whole) * (1 - 1e-12))
    sampled = OfLaw().rdp_vector(SubsampledMultiMessage(losses, 4, 2, "rbin"), TRIED)
    assert np.all(sampled >= worst(exact.subsampled_pairs(reports(losses), 4, 2)) * (1 - 1e-12))


@pytest.mark.parametrize("n", [50, 2000, 10**6])
@pytest.mark.parametrize("loss", [0.3, 2.0, 5.0])
def test_it_lies_between_one_dataset_and_any_randomizer(n, loss):
    named = best_vector(Shuffle(loss, n, "2rr"), ORDERS)
    assert np.all(named >= Lower().many(Shuffle(loss, n), ORDERS))
    assert np.all(named <= best_vector(Shuffle(loss, n), ORDERS))
    assert best_vector(Shuffle(loss, n), ORDERS)[0] > 1.03 * named[0]


def test_a_run_by_divergences_never_undercuts_its_loss_distributions():
    """Converted, divergences lose a little: below the sharper bound they would be wrong."""
    for event in (Shuffle(1.0, 1000, "2rr"), MultiMessageShuffle((1.0, 1.0), 400, "rbin")):
        for times in (5, 40):
            sharp = spent([(event, times)], 1e-6).epsilon
            offset = np.log1p(-1 / ORDERS) - (np.log(ORDERS) + math.log(1e-6)) / (ORDERS - 1)
            added = float((times * best_vector(event, ORDERS) + offset).min())
            assert sharp <= added <= 1.12 * sharp


def test_psi_and_phi_are_the_moment_of_one_mass():
    """Masses of a true pair of laws give its divergences, by direct summation in both regimes."""
    for loss in (1e-9, 1e-5, 0.01, 1.0, 9.0):
        p = 1.0 / (1.0 + math.exp(-loss))
        side = Side(np.array([loss]), np.array([p]), 0.0)
        for order in (2.0, 3.0, 40.0, 1000.0):
            with mpmath.workdps(60):
                q = mpmath.mpf(1) / (1 + mpmath.exp(-mpmath.mpf(loss)))
                moment = q**order * (1 - q) ** (1 - order) + (1 - q) ** order * q ** (1 - order)
                true = float(mpmath.log(moment - 1))
            found = float(log_moments(side, np.array([order]))[0])
            assert true <= found <= true + 2e-3
            assert found <= true + 1e-8 or (order - 1.0) * loss < 1e-3


def test_nothing_counts_as_infinite_and_orders_reach_far():
    side = losses_of(LawRound(two_valued(2.0, 0.1), 10**4))
    assert side.infinite == 0.0 and side.losses[-1] == 2.0
    found = renyi(side, ORDERS)
    caps = np.array([cap_rdp(Shuffle(2.0, 10**4), order) for order in ORDERS])
    assert np.all(np.diff(found) > 0.0) and np.all(found <= caps * (1 + 1e-9))


def test_unknown_laws_are_refused():
    for event in (Shuffle(1.0, 9), Shuffle(1.0, 9, "other"), MultiMessageShuffle((1.0,), 9)):
        assert not OfLaw().worth(event)
        with pytest.raises(NotApplicable, match="is known of"):
            OfLaw().rdp(event, 2)
        assert np.isinf(OfLaw().rdp_vector(event, TRIED)).all()
    with pytest.raises(NotApplicable):
        OfLaw().rdp(Shuffle(1.0, 9, "krr"), 2)
    assert not renyi(Side(np.ones(1), np.zeros(1), 0.0), TRIED).any()
