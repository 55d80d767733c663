"""Noise functions against enumeration of subsets, the text's tables and exact worst cases."""

import math
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.ensembles.error import accuracy, error, says_one
from raydp_sim.mechanisms.ensembles.gamma import (
    check_gamma,
    constant,
    double_subsampling,
    subsampling,
)
from raydp_sim.mechanisms.ensembles.program import excess, gain
from raydp_sim.mechanisms.ensembles.votes import tally_law
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble
from raydp_sim.privacy.composition.theorems import compose, total_delta


def test_the_tally_law_is_that_of_all_outcomes() -> None:
    p = np.array([0.1, 0.7, 0.4, 0.95, 0.5])
    law = np.zeros(6)
    for votes in product((0, 1), repeat=5):
        law[sum(votes)] += math.prod(q if v else 1 - q for q, v in zip(p, votes, strict=True))
    np.testing.assert_allclose(tally_law(p), law, atol=1e-15)
    np.testing.assert_allclose(tally_law(np.stack([p, p[::-1]]))[1], law, atol=1e-15)


@pytest.mark.parametrize("asked", range(1, 8))
def test_subsampling_is_the_majority_of_every_subset_with_a_coin_on_ties(asked: int) -> None:
    gamma = subsampling(7, asked)
    for tally in range(8):
        votes = [1] * tally + [0] * (7 - tally)
        subsets = list(combinations(votes, asked))
        wins = sum(1.0 if 2 * sum(s) > asked else 0.5 * (2 * sum(s) == asked) for s in subsets)
        assert says_one(gamma)[tally] == pytest.approx(wins / len(subsets), abs=1e-14)
    # Algorithm 8 sends ties to 1, which no symmetric noise function does.
    if asked % 2 == 0:
        ties_to_one = sum(2 * sum(s) >= asked for s in combinations([1] * 3 + [0] * 4, asked))
        assert ties_to_one / math.comb(7, asked) > says_one(gamma)[3] + 0.1
        np.testing.assert_allclose(gamma, subsampling(7, asked - 1), atol=1e-14)


@pytest.mark.parametrize("voters", [5, 7, 9, 11])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_double_subsampling_is_private_for_unequal_votes_and_tight(
    voters: int, epsilon: float
) -> None:
    for multiple in range(1, voters + 1):
        ensemble = Ensemble(voters, epsilon, 0.0, multiple, 0.0)
        assert excess(ensemble, double_subsampling(voters, multiple)) < 1e-10 * ensemble.limit
        assert excess(ensemble, subsampling(voters, multiple)) < 1e-10 * ensemble.limit
        if 2 * multiple + 1 <= voters:
            assert excess(ensemble, subsampling(voters, 2 * multiple + 1)) > 1e-4
    over = excess(Ensemble(11, 0.1, 0.0, 3, 0.0), subsampling(11, 7))
    assert over == pytest.approx(0.0095, abs=5e-5)


def test_constant_noise_takes_the_failure_of_votes_as_table_b1_shows() -> None:
    voters, epsilon, failure, slack = 35, 0.1, 1e-5, 0.1
    tau = compose(epsilon, voters, slack) / epsilon
    lost = total_delta([(failure, voters)], slack)
    assert round(tau, 4) == 14.0328
    assert round(lost, 4) == 0.1003
    # With delta in place of Delta, as printed, lambda would be far from the table's 0.1003.
    assert total_delta([(0.1001, voters)], slack) > 0.9
    printed = {
        10: (6.4521, 0.1001),
        13: (7.5742, 0.1001),
        15: (8.2708, 0.1001),
        20: (9.8823, 0.1002),
    }
    expected = {10: 0.5903, 13: 0.6597, 15: 0.7014, 20: 0.7935}
    for asked, (multiple, delta) in printed.items():
        m = compose(epsilon, asked, slack) / epsilon
        total = total_delta([(failure, asked)], slack)
        assert (round(m, 4), round(total, 4)) == (multiple, delta)
        gamma = constant(voters, m, epsilon, total, tau, lost)
        assert round(float(gamma[0]), 4) == expected[asked]


def test_constant_noise_is_private_and_golden() -> None:
    for multiple, value in {1: 0.0998129, 3: 0.2974606, 5: 0.4893282, 7: 0.6720519}.items():
        gamma = constant(11, multiple, 0.1, 0.0, 11.0, 0.0)
        assert round(float(gamma[0]), 7) == value
        assert excess(Ensemble(11, 0.1, 0.0, multiple, 0.0), gamma) < 1e-12


def test_less_noise_is_never_worse_and_fair_votes_have_no_error() -> None:
    rng = np.random.default_rng(1)
    p = rng.random((200, 1)) * np.ones(11)
    errors = [error(subsampling(11, m), p) for m in (1, 3, 5, 7, 9, 11)]
    for worse, better in pairwise(errors):
        assert (better <= worse + 1e-15).all()
    assert errors[-1].max() < 1e-15
    # Section B.6 shows an error at p = 1/2; by the definition there is none.
    assert error(subsampling(11, 3), np.full(11, 0.5)) < 1e-16


def test_asking_one_attains_the_lower_bound_which_is_of_the_worst_case_only() -> None:
    p = np.random.default_rng(2).random((50, 7))
    majority = tally_law(p)[:, 4:].sum(axis=1)
    bound = np.abs(majority - p.mean(axis=1))
    np.testing.assert_allclose(error(subsampling(7, 1), p), bound, atol=1e-14)
    # A coin does better where the majority is one: the lemma does not hold dataset by dataset.
    skewed = np.array([0.99, 0.3, 0.3])
    coin = abs(0.5 - tally_law(skewed)[2:].sum())
    assert coin < abs(tally_law(skewed)[2:].sum() - skewed.mean())


def test_errors_of_the_text_by_simulation() -> None:
    # 6,000 draws; five standard errors of 0.8 %.
    p = np.random.default_rng(3).random((6000, 11))
    for m, value in {1: 0.132, 3: 0.0956, 5: 0.0675, 7: 0.0432}.items():
        assert error(subsampling(11, m), p).mean() == pytest.approx(value, rel=0.05)
    assert [round(accuracy(subsampling(11, m), 0.69, 11), 3) for m in (1, 3, 5, 7)] == [
        0.690,
        0.771,
        0.823,
        0.861,
    ]


def test_gains_of_the_text() -> None:
    assert [round(gain(subsampling(11, m)), 8) for m in (1, 3, 5, 7)] == pytest.approx(
        [0.25, 0.34375, 0.39648438, 0.429443], abs=1e-6
    )
    assert [round(gain(double_subsampling(11, m)), 6) for m in (2, 4, 5)] == [
        0.34375,
        0.429443,
        0.451073,
    ]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: subsampling(10, 1), "voters is 10"),
        (lambda: subsampling(11, 0), "multiple is 0"),
        (lambda: subsampling(11, 12), "multiple is 12"),
        (lambda: double_subsampling(11, 2.5), "multiple is 2.5"),
        (lambda: check_gamma([0.5, 1.5, 1.5, 0.5]), "gamma"),
        (lambda: check_gamma([0.5, 0.1, 0.2, 0.5]), "not symmetric"),
        (lambda: check_gamma([0.5, 0.5, 0.5]), "voters is 2"),
        (lambda: tally_law([0.5, 1.5]), "probabilities"),
        (lambda: Ensemble(11, 0.0, 0.0, 3, 0.0), "epsilon is 0"),
        (lambda: Ensemble(11, 0.1, 0.0, 12, 0.0), "multiple is 12"),
        (lambda: Ensemble(11, 0.1, 1e-5, 3, 0.0), "delta is 0"),
        (lambda: Ensemble(11, 0.1, -1.0, 3, 0.0), "failure is -1"),
    ],
)
def test_bad_input_is_refused_by_name(call, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=says):
        call()
