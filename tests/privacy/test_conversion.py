"""Conversions invert each other, and the search finds the best whole order."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydp_sim.privacy.bound import find_rdp
from raydp_sim.privacy.composition.conversion import (
    best_order,
    dp_to_delta,
    linear_rdp_simple,
    linear_rdp_to_dp,
    order_grid,
    rdp_to_dp,
    real_order_rdp,
)
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle

deltas = st.floats(-690.0, -1e-3).map(math.exp)


@given(st.floats(0.0, 50.0), st.floats(1.01, 1e5), deltas)
def test_tight_forms_are_inverse_and_below_basic(rdp, alpha, delta):
    epsilon = rdp_to_dp(rdp, alpha, delta)
    assert epsilon <= rdp_to_dp(rdp, alpha, delta, tight=False) * (1 + 1e-12)
    if epsilon > 0.0:
        log = (alpha - 1) * 4e-16 * (1 + rdp + epsilon)
        assert math.log(dp_to_delta(rdp, alpha, epsilon)) == pytest.approx(
            math.log(delta), abs=1e-9 + 10 * log
        )


@given(st.floats(1e-9, 10.0), st.floats(-300.0, -1.0).map(math.exp), st.floats(1.5, 1e4))
def test_linear_forms_are_in_order(rho, delta, alpha_max):
    epsilon = linear_rdp_to_dp(rho, delta)
    L = -math.log(delta)
    assert epsilon == pytest.approx(rho + 2 * math.sqrt(rho * L), rel=1e-12)
    assert epsilon <= linear_rdp_simple(rho, delta) * (1 + 1e-12)
    assert epsilon <= linear_rdp_to_dp(rho, delta, alpha_max) * (1 + 1e-12)


def test_the_simple_linear_form_needs_a_small_delta():
    """000 Lemma 2.1.5 omits it: at delta = 0.9 the simple form would be below the other."""
    rho, delta = 1.0, 0.9
    assert 3 * max(-rho * math.log(delta), math.sqrt(-rho * math.log(delta))) < linear_rdp_to_dp(
        rho, delta
    )
    with pytest.raises(ValueError, match="delta"):
        linear_rdp_simple(rho, delta)


@given(st.floats(1.001, 40.0), st.floats(0.05, 4.0))
def test_real_orders_are_above_the_curve(alpha, epsilon0):
    event = Shuffle(epsilon0, 30)
    curve = find_rdp("lower", event)
    below = curve.rdp(event, max(2, math.floor(alpha)))
    above = curve.rdp(event, math.ceil(alpha))
    assert curve.rdp(event, alpha) <= real_order_rdp(alpha, below, above) * (1 + 1e-9)


def test_between_one_and_two_the_second_order_stands():
    assert real_order_rdp(1.3, 7.0, 0.25) == pytest.approx(0.25, rel=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-3, 2.0, math.nan])
def test_bad_deltas_are_refused(delta):
    for call in (
        lambda: rdp_to_dp(0.1, 2, delta),
        lambda: linear_rdp_to_dp(0.1, delta),
        lambda: best_order(lambda orders: orders, delta),
    ):
        with pytest.raises(ValueError, match="delta"):
            call()


def test_large_deltas_clamp_to_zero():
    assert rdp_to_dp(1e-9, 2, 0.9) == 0.0
    assert best_order(lambda orders: 1e-12 * orders, 0.9).epsilon == 0.0


def test_the_grid_ends_where_stated():
    assert order_grid()[-1] == 83840 and order_grid(20_000)[-1] == 17370
    assert order_grid(5).tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("epsilon0", [0.1, 0.5, 2.0, 8.0])
@pytest.mark.parametrize(("n", "times"), [(20, 1), (10**4, 1), (10**6, 100), (10**6, 10**5)])
def test_the_scan_agrees_with_a_dense_one(epsilon0, n, times):
    dense = np.unique(np.append(np.arange(2, 401), np.geomspace(400, 20_000, 400).round()))
    for event, name in (
        (Shuffle(epsilon0, n), "upper1"),
        (SubsampledShuffle(epsilon0, n, max(1, n // 10)), "upper"),
    ):
        bound = find_rdp(name, event)
        best = best_order(lambda a, b=bound, e=event: times * b.rdp_vector(e, a), 1e-6)
        values = times * bound.rdp_vector(event, dense)
        least = min(rdp_to_dp(v, a, 1e-6) for v, a in zip(values, dense, strict=True))
        assert best.epsilon <= least * (1 + 5e-4)
        assert best.epsilon == pytest.approx(
            rdp_to_dp(times * bound.rdp(event, best.alpha), best.alpha, 1e-6), rel=1e-12
        )


@pytest.mark.slow
def test_no_whole_order_is_missed_on_the_headline_case():
    event = SubsampledShuffle(2.0, 10**6, 1000)
    bound = find_rdp("upper", event)
    best = best_order(lambda a: 1e5 * bound.rdp_vector(event, a), 1e-8)
    every = [rdp_to_dp(1e5 * bound.rdp(event, a), a, 1e-8) for a in range(2, 400)]
    assert best.epsilon == pytest.approx(min(every), rel=1e-13)


def test_the_grid_loses_less_than_two_percent():
    event = SubsampledShuffle(2.0, 10**7, 1000)
    bound = find_rdp("upper", event)

    def curve(orders):
        return 100 * bound.rdp_vector(event, orders)

    exact, grid = best_order(curve, 1e-5), best_order(curve, 1e-5, refine=False)
    assert exact.alpha == 2419
    assert exact.epsilon < grid.epsilon < 1.0185 * exact.epsilon


def test_a_silent_curve_has_no_order():
    assert best_order(lambda orders: np.full(len(orders), math.inf), 1e-6).epsilon == math.inf
