"""The accountants of noise inside local steps: reference values, and what is no bound."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from raydp_sim.privacy.curves.adaped import Noise, adaped_rdp, without_replacement_rdp
from raydp_sim.privacy.curves.gaussian import gaussian_delta, gaussian_epsilon
from raydp_sim.privacy.events import GaussianRelease, GaussianReport, LocalReport
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.personal import (
    Personal,
    calibrated_aggregate,
    linear_epsilon,
    linear_rho,
)
from raydp_sim.privacy.spent import spent

NOISES = (Noise(1.0, 5.0), Noise(0.1, 0.5))


def renyi(alpha: float, shift: float, sigma: float) -> float:
    """D_alpha of two normal laws by quadrature, which knows no formula of it."""

    def integrand(x: float) -> float:
        return math.exp(
            alpha * norm.logpdf(x, shift, sigma) + (1.0 - alpha) * norm.logpdf(x, 0.0, sigma)
        )

    centre, reach = alpha * shift, 12.0 * sigma
    return math.log(quad(integrand, centre - reach, centre + reach)[0]) / (alpha - 1.0)


def test_all_clients_in_every_round_have_the_reference_values() -> None:
    run = Personal(100, 10, 50, 50, NOISES)
    found = run.seed(1e-4), run.aggregate(1e-4, "add-remove"), run.aggregate(1e-4, "replace-one")
    assert found == pytest.approx((6.154, 5.516, 12.994), abs=5e-4)
    assert run.local(1e-4) == pytest.approx(234.23, abs=5e-3)


def test_sampled_clients_have_the_reference_values() -> None:
    run = Personal(100, 10, 66, 22, NOISES)
    found = run.seed(1e-4), run.aggregate(1e-4, "add-remove"), run.aggregate(1e-4, "replace-one")
    assert found == pytest.approx((2.743, 2.556, 14.551), abs=5e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        (1.0, 1e-4, 0.0406327),
        (3.35, 1e-4, 0.342743),
        (13.16, 1e-4, 3.26401),
        (27.30, 1e-4, 9.75850),
        (3.35, 1e-5, 0.272845),
        (13.16, 1e-5, 2.78815),
        (27.30, 1e-5, 8.64610),
    ],
)
def test_an_epsilon_is_the_reference_rho(epsilon: float, delta: float, rho: float) -> None:
    assert linear_rho(epsilon, delta) == pytest.approx(rho, rel=5e-6)
    assert linear_epsilon(linear_rho(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("sampled", [50, 20])
def test_noise_for_an_aggregate_epsilon_gives_it_back(sampled: int) -> None:
    made = calibrated_aggregate(3.35, 1e-4, (30, 10, 50, sampled), (0.5, 0.05), (0.9, 0.1))
    found = Personal(30, 10, 50, sampled, made).aggregate(1e-4, "replace-one")
    assert found == pytest.approx(3.35, rel=1e-6) and found <= 3.35 * (1 + 1e-9)
    share = (0.5 / made[0].sigma) ** 2 / ((0.5 / made[0].sigma) ** 2 + (0.05 / made[1].sigma) ** 2)
    assert share == pytest.approx(0.9, rel=1e-9)


def test_without_noise_nothing_holds() -> None:
    run = Personal(10, 10, 50, 50, (Noise(1.0, 5.0), Noise(0.1, 0.0)))
    assert not run.private
    assert math.inf == run.seed(1e-4) == run.local(1e-4) == run.aggregate(1e-4, "replace-one")


@pytest.mark.parametrize("alpha", [2.0, 8.0])
@pytest.mark.parametrize("steps", [1, 3, 4, 10, 13])
def test_the_source_theorem_is_no_bound_from_four_steps_on(steps: int, alpha: float) -> None:
    # One client of two constant directions, +C and -C: the steps of a round align.
    clip, sigma = 1.0, 5.0
    stated = adaped_rdp(alpha, 1, 1, 1, (clip,), (sigma,))
    replaced = renyi(alpha, 2.0 * steps * clip, math.sqrt(steps) * sigma)
    removed = renyi(alpha, steps * clip, math.sqrt(steps) * sigma)
    above = stated * (1.0 + 1e-9)  # at three steps, and at twelve, they are equal
    assert (replaced > above) == (steps >= 4)
    assert (removed > above) == (steps >= 13)
    # The proved one is attained by just these.
    run = Personal(1, steps, 1, 1, (Noise(clip, sigma),))
    assert replaced == pytest.approx(2.0 * alpha * steps * (clip / sigma) ** 2, rel=1e-6)
    assert run.local(1e-4) == pytest.approx(linear_epsilon(replaced / alpha, 1e-4), rel=1e-6)


def test_averages_are_no_proof_once_psi_reads_its_own_clients_noise() -> None:
    """Two clients, one noisy step: the released pair tells more than two Gaussians would.

    y_i = h_i + N_i is client i's noisy direction, k_i(y_i) what its psi step then reports. Released
    are y_1 + y_2 and k_1 + k_2 + noise. Client 1 is replaced: h_1 from -C to C and k_1 from -K to
    K. Given y_1 + y_2 the law of y_2, and so of k_2 = -K sign(y_2), changes as well.
    """
    c, k, sigma, tau, alpha = 1.0, 0.3, 1.5, 1.0, 2.0
    grid = np.linspace(-14.0, 14.0, 1401)
    a, b = np.linspace(-14.0, 14.0, 561), np.linspace(-9.0, 9.0, 721)

    def joint(sign: float) -> np.ndarray:
        y2 = grid[None, :]
        density = norm.pdf(a[:, None] - y2, sign * c, sigma) * norm.pdf(y2, 0.0, sigma)
        below = (density * (y2 < 0)).sum(axis=1) + 0.5 * (density * (y2 == 0)).sum(axis=1)
        above = density.sum(axis=1) - below
        shift = grid[1] - grid[0]
        low = norm.pdf(b, sign * k - k, math.sqrt(2.0) * tau)
        high = norm.pdf(b, sign * k + k, math.sqrt(2.0) * tau)
        return (above[:, None] * low + below[:, None] * high) * shift

    one, other = joint(1.0), joint(-1.0)
    cell = (a[1] - a[0]) * (b[1] - b[0])
    assert one.sum() * cell == pytest.approx(1.0, abs=1e-6)
    found = math.log((one**alpha * other ** (1.0 - alpha)).sum() * cell) / (alpha - 1.0)
    stated = 2.0 * alpha * ((c / sigma) ** 2 + (k / tau) ** 2) / 2.0  # `aggregate`, K = 2
    proved = 2.0 * alpha * ((c / sigma) ** 2 + (k / tau) ** 2)
    assert stated * 1.01 < found < proved


def test_sampling_never_costs_more_than_none() -> None:
    for order in (2, 5, 40):
        whole = without_replacement_rdp(order, 1.0, 3.0)
        values = [without_replacement_rdp(order, rate, 3.0) for rate in (0.01, 0.1, 0.5)]
        assert values == sorted(values) and values[-1] <= whole


def test_the_ledger_bound_of_reports_is_that_of_one_gaussian() -> None:
    exact = gaussian_epsilon(1e-5, 4.0 / math.sqrt(30))
    assert gaussian_delta(exact, 4.0 / math.sqrt(30)) <= 1e-5
    found = spent([(GaussianReport(4.0), 30)], 1e-5)
    assert exact <= found.epsilon <= exact * 1.001
    assert found == spent([(GaussianRelease(4.0), 30)], 1e-5)
    # A little below what divergences prove.
    local = Personal(30, 1, 9, 9, (Noise(1.0, 8.0),)).local(1e-5)
    assert found.epsilon < local < found.epsilon * 1.1


def test_of_reports_that_a_shuffler_collects_only_released_ones_are_spoken_of():
    """What it withholds is not charged."""
    said = {}
    for collector in ("server", "shuffler"):
        ledger = Ledger(3, 1e-6, collector=collector, rule="laws")
        ledger.charge(LocalReport(90.0, 1e-9), range(3), GaussianReport(4.0))
        said[collector] = ledger.guarantee().assumption
    assert "used or not" in said["server"] and "used or not" not in said["shuffler"]
    assert "dropped unseen" in said["shuffler"] and "the server included" in said["shuffler"]
