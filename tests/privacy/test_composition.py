"""Composition theorems are in order, agree with each other, and refuse nonsense."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.privacy.composition.theorems import (
    compose,
    compose_unequal,
    kov_exact,
    total_delta,
)
from raydp_sim.privacy.curves.sampling import subsample

epsilons = st.floats(1e-6, 3.0)
slacks = st.floats(-80.0, -1.0).map(math.exp)


@settings(deadline=None)
@given(epsilons, st.integers(1, 2000), slacks)
def test_exact_is_below_closed_is_below_dwork(epsilon, times, slack):
    exact, closed = kov_exact(epsilon, times, slack), compose(epsilon, times, slack)
    assert exact <= closed * (1 + 1e-9)
    assert closed <= compose(epsilon, times, slack, "dwork") * (1 + 1e-12)
    assert closed <= compose(epsilon, times, slack, "basic") * (1 + 1e-12)


@settings(deadline=None)
@given(epsilons, st.integers(1, 500), st.integers(1, 500), slacks)
def test_more_rounds_cost_more_and_equal_ones_may_be_split(epsilon, times, more, slack):
    for kind in ("basic", "dwork", "kov", "kov_exact"):
        less = compose(epsilon, times, slack, kind)
        assert less <= compose(epsilon, times + more, slack, kind) * (1 + 1e-9)
    for kind in ("basic", "dwork", "kov"):
        parts = compose_unequal([(epsilon, times), (epsilon, more)], slack, kind)
        assert parts == pytest.approx(compose(epsilon, times + more, slack, kind), rel=1e-12)


def test_nothing_costs_nothing():
    for kind in ("basic", "dwork", "kov", "kov_exact"):
        assert compose(0.5, 0, 1e-6, kind) == 0.0
        assert compose(0.0, 10, 1e-6, kind) == 0.0


@pytest.mark.parametrize(("epsilon", "times"), [(1e-4, 10**6), (10.0, 10**6), (0.01, 10**5)])
def test_large_runs_neither_overflow_nor_lose_the_order(epsilon, times):
    exact = kov_exact(epsilon, times, 1e-8)
    assert 0.0 < exact <= compose(epsilon, times, 1e-8) * (1 + 1e-9) < math.inf


@given(st.floats(0.0, 60.0), st.floats(1e-9, 1.0))
def test_sampling_lowers_the_loss(epsilon, rate):
    sampled, delta = subsample(epsilon, 1e-6, rate)
    assert 0.0 <= sampled <= epsilon * (1 + 1e-12) and delta == rate * 1e-6


def test_total_delta_is_less_than_the_sum():
    assert total_delta([(1e-3, 100)], 1e-3) < 0.101
    assert total_delta([(1e-12, 10**5)], 1e-8) == pytest.approx(1.1e-7, rel=1e-6)
    assert total_delta([(1.0, 1)]) == 1.0 and total_delta([]) == 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: compose(-1.0, 3, 1e-6),
        lambda: compose(math.nan, 3, 1e-6),
        lambda: compose(1.0, -1, 1e-6),
        lambda: compose(1.0, 2.5, 1e-6),
        lambda: compose(1.0, 3, 0.0),
        lambda: kov_exact(1.0, 3, 1.0),
        lambda: compose_unequal([(1.0, 3)], 1e-6, "kov_exact"),
        lambda: subsample(1.0, 0.0, 0.0),
        lambda: subsample(-1.0, 0.0, 0.5),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(ValueError):
        call()
