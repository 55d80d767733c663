"""Corrections 15 to 21 of the fourth seed: what is printed fails, what is used here holds."""

import math
from itertools import permutations

import numpy as np
import pytest

from raydp_sim.datasets.shifted_standin import ShiftedStandin
from raydp_sim.errors import InputError
from raydp_sim.privacy.curves.iteration import iterated_rdp, secret_rdp
from raydp_sim.random import Stream
from raydp_sim.tasks.shuffled_gradients import losses, regularisers, trials
from raydp_sim.tasks.shuffled_gradients.accounting import (
    check_step,
    divergence,
    epsilon,
    secret_divergence,
    sigma_for,
)
from raydp_sim.tasks.shuffled_gradients.objective import Problem, ceiling
from raydp_sim.tasks.shuffled_gradients.plan import epochs
from tests.tasks.shuffled_gradients.test_accounting import gaussian_mixture_divergence


def exact_quadratics(curvatures, step, sigma, place):
    """Return c of the exact divergence c alpha of one epoch, G = 1, if record `place` is replaced.

    f_i = L_i (x - q)^2/2, of which q moves the gradient by 2: all iterates are normal.
    """
    shrink = [1.0 - step * curvature for curvature in curvatures]
    after = [math.prod(shrink[j + 1 :]) for j in range(len(shrink))]
    variance = sum((step * sigma * factor) ** 2 for factor in after)
    return (2.0 * step * after[place]) ** 2 / (2.0 * variance)


def test_15_a_step_of_one_over_the_average_smoothness_breaks_the_bound() -> None:
    curvatures = [0.01, 10.0, 0.01, 0.01, 10.0]
    average, largest = float(np.mean(curvatures)), max(curvatures)
    printed, here = 1.0 / average, 2.0 / largest
    n = len(curvatures)
    # The first record, which the bound says is hidden by the noise of all n steps.
    assert exact_quadratics(curvatures, printed, 1.0, 0) > divergence(1.0, 1.0, 1, n)
    for place in range(n):
        charged = divergence(1.0, 1.0, 1, n - place)
        assert exact_quadratics(curvatures, here, 1.0, place) <= charged * (1.0 + 1e-12)
    with pytest.raises(InputError, match="step_size"):
        check_step(printed, largest)
    check_step(here, largest)


@pytest.mark.parametrize("kind", ["ball", "l2", "l1"])
def test_16_maps_at_the_ends_of_epochs_do_not_expand(kind) -> None:
    rng = np.random.default_rng(16)
    pairs = 3.0 * rng.normal(size=(500, 2, 4))
    after = regularisers.prox(kind, 0.7, pairs, 0.1, 5)
    before = np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1)
    assert (np.linalg.norm(after[:, 0] - after[:, 1], axis=1) <= before * (1.0 + 1e-12)).all()
    one_by_one = [regularisers.prox(kind, 0.7, point, 0.1, 5) for point in pairs[:, 0]]
    np.testing.assert_allclose(after[:, 0], one_by_one, rtol=1e-14)


def test_17_the_printed_order_needs_more_than_its_epsilon() -> None:
    sigma, delta, target = sigma_for(10.0, 1e-6, 10.0, 50, 1), 1e-6, 10.0
    c, log_inverse = divergence(10.0, sigma, 50, 1), -math.log(delta)
    printed = sigma * math.sqrt(log_inverse) / (10.0 * math.sqrt(100.0))
    assert c * printed + log_inverse / (printed - 1.0) > 1.05 * target
    assert epsilon(c, delta) == pytest.approx(target)


def test_18_the_printed_approximation_is_no_divergence() -> None:
    order, clip, sigma, n = 6.0, 10.0, 161.0, 1000
    printed = 2.0 * order * clip**2 / sigma**2 - math.log(n)
    assert printed < 0.0  # which no divergence is
    found = secret_divergence(order, clip, sigma, n, n)
    assert 0.0 < found < 0.01 * 2.0 * order * clip**2 / sigma**2  # "marginal" is a hundredfold


def test_19_the_printed_tail_hides_less_than_it_says() -> None:
    """The record of the last of n = 3 steps with eta = 1: of earlier noise nothing is left."""
    n, private = 3, 3
    exact = exact_quadratics([1.0] * n, 1.0, 1.0, n - 1)
    printed, here = divergence(1.0, 1.0, 1, n - 1 + private), divergence(1.0, 1.0, 1, 1)
    assert exact > 4.9 * printed
    assert exact == pytest.approx(here)
    sigma = sigma_for(5.0, 1e-6, 10.0, 50, 1000 - 1 + 500)
    assert epsilon(divergence(10.0, sigma, 50, 1000 + 1 - 500), 1e-6) > 9.0


def test_20_labels_of_plus_and_minus_one_have_no_least_loss() -> None:
    row, far = np.ones((1, 1)), np.array([-1000.0])
    assert losses.values("logistic", far, row, np.array([-1.0]))[0] < -900.0
    assert losses.values("logistic", far, row, np.array([0.0]))[0] >= 0.0
    with pytest.raises(InputError, match="labels 0 and 1"):
        losses.check_records("logistic", row, [-1.0])


def test_21_a_thousand_records_of_ten_classes_are_a_hundred_each() -> None:
    private, public, _ = ShiftedStandin(like="cifar-10").pair()
    assert 200 * 10 != len(private) == 1000
    assert np.unique(private[:, -1], return_counts=True)[1].tolist() == [100] * 10
    assert np.unique(public[:, -1], return_counts=True)[1].tolist() == [250] * 4


# Exact divergences of secret orders, by quadrature.


def last(order, rows, step, used, times):
    """Return where the mean of a run without noise ends, all public records 0."""
    x = 0.0
    for _ in range(times):
        for i in order[:used]:
            x -= step * (x - rows[i])
        for _ in order[used:]:
            x -= step * x
    return x


@pytest.mark.parametrize("order", [1.5, 4.0, 8.0])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("used", [2, 3])
def test_a_secret_order_costs_no_more_than_is_charged(order, times, used) -> None:
    """n = 3, of which some are used; one order for one epoch, or shared by two (shuffle once)."""
    step, sigma, n = 0.3, 2.0, 3
    records, other = [1.0, 0.3, -0.2], [-1.0, 0.3, -0.2]
    sd = math.sqrt(sum((step * sigma) ** 2 * (1.0 - step) ** (2 * j) for j in range(times * n)))
    all_orders = list(permutations(range(n)))
    means = tuple(
        [last(each, rows, step, used, times) for each in all_orders] for rows in (records, other)
    )
    exact = gaussian_mixture_divergence(order, means, sd)  # type: ignore[arg-type]
    charged = secret_rdp(order, sigma / 2.0, n, used, times)
    known = times * iterated_rdp(order, sigma / 2.0, n + 1 - used)
    assert 0.0 < exact <= charged * (1.0 + 1e-9)
    assert charged < known


def test_epochs_that_share_an_order_cost_less_if_there_are_fewer() -> None:
    whole = secret_rdp(5.0, 3.0, 20, 10, 8)
    parts = [secret_rdp(5.0, 3.0, 20, 10, k) for k in range(1, 9)]
    assert all(part <= k / 8 * whole * (1 + 1e-12) for k, part in enumerate(parts, 1))
    assert secret_rdp(5.0, 3.0, 20, 0) == 0.0


# Corollary 4.5.1.


def test_the_corollary_is_a_ceiling_on_a_quadratic() -> None:
    """n = 20, d = 3, K = 10; 200 runs. The slack is manifold, so chance plays no part."""
    rng = np.random.default_rng(45)
    problem = Problem("mean", "ball", 100.0, rng.normal(size=(20, 3)), np.zeros(20))
    n, count = 20, 10
    step, sigma = 1.0 / (2 * n * math.sqrt(10.0 * (1.0 + math.log(count)))), 100.0
    start = np.full((200, 3), 2.0)
    plan = epochs("private", count, n)
    course = trials.play(
        problem, None, plan, "rr", np.array([step]), math.inf, sigma, start, 200, Stream(1)
    )
    excess = float(course.values[-1].mean()) - problem.least()[1]
    most = ceiling(problem, start[0], step, count, sigma)
    assert 0.0 < excess < 0.5 * most
    # Without the noise term it is none.
    assert excess > ceiling(problem, start[0], step, count, 0.0)
