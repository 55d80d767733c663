"""What 004 prints of private majorities and does not hold (FIX 7 to 14): printed forms fail."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import erfc

from raydp_sim.mechanisms.ensembles.error import error, says_one
from raydp_sim.mechanisms.ensembles.gamma import constant, double_subsampling, subsampling
from raydp_sim.mechanisms.ensembles.gnmax import data_dependent_rdp, least_sigma
from raydp_sim.mechanisms.ensembles.program import excess, gain, optimal
from raydp_sim.mechanisms.ensembles.votes import tally_law
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble
from raydp_sim.privacy.composition.theorems import compose, total_delta


def test_7_lambda_is_made_of_the_votes_delta() -> None:
    tau = compose(0.1, 35, 0.1) / 0.1
    multiple, delta = compose(0.1, 10, 0.1) / 0.1, total_delta([(1e-5, 10)], 0.1)
    right = total_delta([(1e-5, 35)], 0.1)
    printed = total_delta([(delta, 35)], 0.1)
    assert round(right, 4) == 0.1003 and printed > 0.9
    # With the printed lambda the constant would be two thirds of what is private.
    share = [constant(35, multiple, 0.1, delta, tau, each)[0] for each in (right, printed)]
    assert round(float(share[0]), 4) == 0.5903 and share[1] < 0.7 * share[0]


def test_8_ties_need_a_coin() -> None:
    """Algorithm 8 says 1 on ties: a law that no symmetric noise function has."""
    says = []
    for tally in range(8):
        votes = [1] * tally + [0] * (7 - tally)
        subsets = list(combinations(votes, 4))
        says.append(sum(2 * sum(s) >= 4 for s in subsets) / len(subsets))
    printed = np.array(says)
    assert np.abs(printed + printed[::-1] - 1.0).max() > 0.2
    lemma = says_one(subsampling(7, 4))
    np.testing.assert_allclose(lemma + lemma[::-1], 1.0, atol=1e-15)


def test_9_the_lower_bound_is_of_the_worst_case() -> None:
    """Pointwise, a coin has a smaller error than the bound |Pr[g = 1] - mean p| at some data."""
    p = np.array([0.99, 0.3, 0.3])
    majority = tally_law(p)[2:].sum()
    assert abs(0.5 - majority) < abs(majority - p.mean())
    assert error(np.zeros(4), p) < error(subsampling(3, 1), p)


def test_10_corners_are_eight_where_votes_fail_and_rows_are_multisets() -> None:
    corners = Ensemble(3, 0.1, 1e-3, 1, 1e-3).corners
    assert len(corners) == 8 and len(np.unique(corners, axis=0)) == 8
    # Whether delta > 0 does not matter: with Delta = 0 there are four.
    assert len(Ensemble(3, 0.1, 0.0, 1, 0.1).corners) == 4
    cases = list(product(range(8), repeat=3))
    assert len(cases) == 8**3 != 3**8  # "K^8" is printed
    assert len({tuple(sorted(case)) for case in cases}) == len(Ensemble(3, 0.1, 1e-3, 1, 1e-3).rows)
    # Four corners would call private what is not.
    ensemble = Ensemble(3, 0.1, 0.05, 1, 0.05)
    pure = optimal(Ensemble(3, 0.1, 0.0, 1, 0.05))
    assert excess(ensemble, pure) > 0.01


def test_11_the_printed_objective_is_zero_for_every_function() -> None:
    law = tally_law(np.full(11, 0.5))  # of independent p with mean 1/2, in expectation
    lean = law[6:] - law[:6][::-1]
    for gamma in (subsampling(11, 1), subsampling(11, 7), double_subsampling(11, 3), np.ones(12)):
        assert abs(lean @ gamma[6:]) < 1e-16
        assert gain(gamma) > 0.2


@pytest.mark.parametrize(("epsilon", "printed"), [(0.2676, 34.31), (0.2556, 35.74)])
def test_12_printed_orders_ask_for_far_more_noise(epsilon: float, printed: float) -> None:
    sigma, order = least_sigma(epsilon, 3e-4)
    there = math.sqrt(printed / (epsilon + math.log(3e-4) / (printed - 1.0)))
    assert there > 1.7 * sigma and order > 1.8 * printed


def printed_bound(votes: list[float], sigma: float, order: float) -> float:
    """Algorithm 11 of 004, letter by letter; nan where it leaves the numbers."""
    counts = np.sort(np.asarray(votes, dtype=np.float64))
    q = 0.5 * float(erfc((counts[-1] - counts[:-1]) / (2.0 * sigma)).sum())
    mu2 = sigma * math.sqrt(-math.log(q))
    mu1 = mu2 + 1.0
    loss1, loss2 = mu1 / sigma**2, mu2 / sigma**2
    most = (
        math.exp(min((mu2 - 1.0) ** loss2, 700.0)) / (mu1 / (mu1 - 1.0) * mu2 / (mu2 - 1.0)) ** mu2
    )
    if not (q < 1.0 and mu1 >= order and mu2 > 1.0 and q <= most):
        return order / sigma**2
    a = (1.0 - q) / (1.0 - q * math.exp(loss2) ** ((mu2 - 1.0) / mu2))
    b = math.exp(loss1) / q ** (1.0 / (mu1 - 1.0))
    return ((1.0 - q) * a ** (order - 1.0) + q * b ** (order - 1.0)) / (order - 1.0)


def test_13_algorithm_11_as_printed_is_no_divergence() -> None:
    """Without the logarithm it tends to 1/(lambda - 1) where votes are all but certain."""
    sigma, order = 40.0, 5.0
    for agreed in (300.0, 400.0, 600.0):
        printed, right = (
            bound([agreed, 0.0], sigma, order) for bound in (printed_bound, data_dependent_rdp)
        )
        assert printed >= 1.0 / (order - 1.0) > order / sigma**2 > right
    # The last is next to nothing, as nearly certain votes should cost.
    assert data_dependent_rdp([600.0, 0.0], sigma, order) < 1e-20


def test_14_fair_votes_have_no_error() -> None:
    fair = np.full(11, 0.5)
    for gamma in (subsampling(11, 3), optimal(Ensemble(11, 0.1, 0.0, 3, 0.0), mean=0.85)):
        assert error(gamma, fair) < 1e-16
        assert error(gamma, np.full(11, 0.6)) > 0.01
