"""Core sets and nets: Kiefer and Wolfowitz's optimum, deficient ranks, guards."""

import math

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits.checks import Floats
from raydp_sim.tasks.bandits.design import Design, core_set, spanned, uniform_design
from raydp_sim.tasks.bandits.instance import random_instance
from raydp_sim.tasks.bandits.net import circle_net, greedy_net, net_bound
from raydp_sim.tasks.bandits.regression import regression


def sphere(k: int, d: int, *place: int) -> Floats:
    return random_instance(k, d, Stream(3).at(*place)).actions


def largest_leverage(actions: Floats, design: Design) -> float:
    """By pseudo-inverse in the whole space, which the design does not use."""
    chosen = actions[design.index]
    inverse = np.linalg.pinv((chosen * design.weights[:, None]).T @ chosen, hermitian=True)
    return float(np.einsum("ki,ij,kj->k", actions, inverse, actions).max())


@pytest.mark.parametrize("factor", [2.0, 1.01])
@pytest.mark.parametrize(("k", "d"), [(2, 2), (10, 2), (1000, 2), (50, 5), (1000, 8)])
def test_the_largest_leverage_is_near_the_optimum(k: int, d: int, factor: float) -> None:
    actions = sphere(k, d, k, d)
    design = core_set(actions, factor)
    m = min(k, d)
    assert design.rank == m
    found = largest_leverage(actions, design)
    assert m - 1e-9 <= found <= factor * m + 1e-6
    assert found == pytest.approx(design.leverage)
    assert design.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(design.index) > 0).all()


def test_a_core_set_is_small() -> None:
    sizes = {(d, r): len(core_set(sphere(1000, d, d, r)).index) for d in (2, 8) for r in range(20)}
    assert {size for (d, _), size in sizes.items() if d == 2} <= {2, 3}
    assert {size for (d, _), size in sizes.items() if d == 8} <= set(range(8, 13))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_actions_that_do_not_span_the_space(rank: int) -> None:
    flat = sphere(40, rank, rank) if rank > 1 else np.linspace(-1.0, 1.0, 40)[:, None]
    basis = np.linalg.qr(Stream(4).generator().standard_normal((6, rank)))[0]
    actions = flat @ basis.T
    assert spanned(actions).shape == (6, rank)
    for design in (core_set(actions), uniform_design(actions)):
        assert design.rank == rank
        assert largest_leverage(actions, design) == pytest.approx(design.leverage, rel=1e-6)
    assert core_set(actions).leverage <= 2.0 * rank + 1e-12
    tight = core_set(actions, 1.01)
    assert rank - 1e-9 <= largest_leverage(actions, tight) <= 1.01 * rank + 1e-6


def test_duplicates_and_the_zero_vector_are_harmless() -> None:
    actions = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert core_set(actions).index.tolist() == [1, 3]
    assert core_set(actions[:3]).index.tolist() == [1]


@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-7, 3e-9])
def test_actions_that_are_close_stay_apart(apart: float) -> None:
    angles = apart * np.arange(5)
    actions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for design in (core_set(actions), uniform_design(actions)):
        assert design.rank == 2
        # The affine hull of five points on a line: as (1, j) for j = 0, ..., 4.
        plain = np.stack([np.ones(5), np.arange(5.0)], axis=1)
        assert design.leverage == pytest.approx(largest_leverage(plain, design), rel=1e-5)
        slots = np.full(len(design.index), 7)
        fit = regression(actions[design.index], slots)
        assert fit.spans(actions)
        by_slots = Design(design.index, np.full(len(slots), 1 / len(slots)), 0.0, 2)
        planned = largest_leverage(plain, by_slots) / slots.sum()
        assert fit.leverage(actions) == pytest.approx(planned, rel=1e-5)
        # What fits exactly is found again, whatever the slope.
        values = 0.5 + 0.25 * np.arange(5)
        found = actions @ fit.estimate(slots * values[design.index])
        assert found == pytest.approx(values, abs=1e-5)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="all zero"):
        core_set(np.zeros((3, 2)))
    with pytest.raises(InputError, match="factor is 1"):
        core_set(np.eye(2), 1.0)
    for zeta in (0.0, -1.0, 1.5, math.nan):
        with pytest.raises(InputError, match="zeta is"):
            circle_net(zeta)


@pytest.mark.parametrize("zeta", [1.0, 0.3, 0.01])
def test_a_net_of_the_circle_covers_it(zeta: float) -> None:
    net = circle_net(zeta)
    assert np.allclose(np.linalg.norm(net, axis=1), 1.0)
    assert len(net) <= net_bound(zeta, 2)
    between = np.linalg.norm(net - np.roll(net, 1, axis=0), axis=1)
    assert between.max() <= zeta + 1e-12


def test_a_greedy_net_covers_packs_and_keeps_the_span() -> None:
    cloud = sphere(3000, 3, 1) * Stream(5).generator().random((3000, 1)) ** (1 / 3)
    net = greedy_net(cloud, 0.3)
    apart = np.linalg.norm(net[:, None] - net[None], axis=2)
    assert apart[~np.eye(len(net), dtype=bool)].min() > 0.3
    assert np.linalg.norm(cloud[:, None] - net[None], axis=2).min(axis=1).max() <= 0.3
    thin = np.array([[0.5, 0.0, 0.0], [0.5, 0.01, 0.0], [0.5, 0.0, 0.001]])
    assert len(greedy_net(thin, 0.3)) == 3
    assert len(greedy_net(np.array([[0.0, 0.0], [0.1, 0.0]]), 0.5)) == 2


def test_a_net_that_is_too_large_is_refused_with_its_size() -> None:
    with pytest.raises(InputError, match=r"max_net_size is 1000; .* needs 6,284 points"):
        circle_net(1e-3, max_net_size=1000)
    with pytest.raises(InputError, match="max_net_size is 10"):
        greedy_net(sphere(500, 3, 2), 0.1, max_net_size=10)
