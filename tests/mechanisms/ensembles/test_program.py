"""The best noise function against golden values, brute force and its own worst cases."""

import math

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.ensembles.error import error, says_one
from raydp_sim.mechanisms.ensembles.gamma import double_subsampling, mirrored, subsampling
from raydp_sim.mechanisms.ensembles.program import (
    excess,
    gain,
    objective_weights,
    optimal,
    verified,
)
from raydp_sim.mechanisms.ensembles.votes import tally_law
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble

GOLDEN = {
    (0.0, 1): (0.25000000, 0.25000000),
    (0.0, 2): (0.36761013, 0.36749544),
    (0.0, 3): (0.42436647, 0.42421644),
    (0.0, 4): (0.45106773, 0.45044657),
    (0.0, 5): (0.46315682, 0.46285959),
    (0.0, 7): (0.46567249, 0.46567249),
    (1e-5, 3): (0.42440301, 0.42424223),
    (1e-5, 5): (0.46320750, 0.46291901),
    (1e-5, 7): (0.46567249, 0.46567249),
}


def eleven(failure: float, multiple: float) -> Ensemble:
    delta = -math.expm1(multiple * math.log1p(-failure))
    return Ensemble(11, 0.1, failure, multiple, delta)


@pytest.mark.parametrize(("failure", "multiple"), GOLDEN)
def test_golden_values(failure: float, multiple: int) -> None:
    ensemble = eleven(failure, multiple)
    full, monotone = optimal(ensemble), optimal(ensemble, "monotone")
    assert (round(gain(full), 8), round(gain(monotone), 8)) == GOLDEN[failure, multiple]
    # Both hold against all 364 or 31,824 rows, the monotone one too, which was solved with 78.
    assert len(ensemble.rows) == (math.comb(18, 7) if failure else math.comb(14, 3))
    assert len(ensemble.rising_rows) == 78
    assert excess(ensemble, full) <= 1e-12
    assert excess(ensemble, monotone) <= 1e-12


@pytest.mark.parametrize(
    ("multiple", "value"),
    [(10, 0.49937756), (20, 0.49999747), (30, 0.49999992), (40, 0.49999997), (60, 0.49999997)],
)
def test_a_hundred_and_one_voters(multiple: int, value: float) -> None:
    ensemble = Ensemble(101, 0.1, 0.0, multiple, 0.0)
    gamma = optimal(ensemble, "monotone")
    assert gain(gamma) == pytest.approx(value, abs=1e-8)
    assert len(ensemble.rising_rows) == 5253
    assert excess(ensemble, gamma, rising=True) <= 1e-12
    assert gain(gamma) >= gain(double_subsampling(101, multiple)) - 1e-12


@pytest.mark.parametrize("failure", [0.0, 0.02])
def test_rows_are_the_worst_of_all_admissible_votes(failure: float) -> None:
    """No pair of neighbours in a grid of 3 voters is worse than the corners say."""
    ensemble = Ensemble(3, 0.5, failure, 1.5, 0.05)
    steps = np.linspace(0.0, 1.0, 51)
    p, q = (side.reshape(-1) for side in np.meshgrid(steps, steps))
    grown = math.exp(0.5)
    allowed = (
        (p <= grown * q + failure)
        & (q <= grown * p + failure)
        & (1 - p <= grown * (1 - q) + failure)
        & (1 - q <= grown * (1 - p) + failure)
    )
    p, q = p[allowed], q[allowed]
    picked = np.random.default_rng(4).integers(0, len(p), (200_000, 3))
    for gamma in (optimal(ensemble), mirrored([0.3, 0.9]), mirrored([0.8, 0.2])):
        one = says_one(gamma)
        here, there = tally_law(p[picked]) @ one, tally_law(q[picked]) @ one
        # What delta is needed at all, in f's units of 2 delta over e^(m epsilon) - 1.
        worst = 2.0 * (here - math.exp(0.75) * there).max() + math.expm1(0.75)
        bound = excess(ensemble, gamma) + ensemble.limit
        assert worst <= bound + 1e-12
        assert worst >= bound - 0.15
    gamma = optimal(ensemble)
    one = says_one(gamma)
    for side, other in ((p, q), (1 - p, 1 - q)):
        gap = tally_law(side[picked]) @ one - math.exp(0.75) * (tally_law(other[picked]) @ one)
        assert gap.max() <= 0.05 + 1e-12


def test_order_of_the_ways() -> None:
    p = np.random.default_rng(5).random((6000, 11))
    for multiple, best in {3: 0.0378, 5: 0.0010}.items():
        ways = [
            optimal(eleven(0.0, multiple)),
            double_subsampling(11, multiple),
            subsampling(11, multiple),
        ]
        gains = [gain(gamma) for gamma in ways]
        assert gains[0] > gains[1] > gains[2]
        errors = [error(gamma, p).mean() for gamma in ways]
        assert errors[0] < errors[1] < errors[2]
        assert errors[0] == pytest.approx(best, rel=0.06)
    one = [optimal(eleven(0.0, 1)), double_subsampling(11, 1), subsampling(11, 1)]
    for gamma in one:
        np.testing.assert_allclose(gamma, np.abs(2 * np.arange(12) - 11) / 11, atol=1e-9)


def test_large_delta_tells_the_majority() -> None:
    gamma = optimal(Ensemble(35, 0.1, 1e-5, 6.4521, 0.1001), "monotone")
    assert (gamma == 1.0).all()


def test_the_prior_decides_where_noise_is_saved() -> None:
    uniform, polar = optimal(eleven(0.0, 3)), optimal(eleven(0.0, 3), mean=0.85)
    rng = np.random.default_rng(6)
    wide, narrow = rng.random((6000, 11)), 0.1 * rng.random((6000, 11))
    assert error(uniform, wide).mean() == pytest.approx(0.0378, rel=0.06)
    assert error(polar, wide).mean() == pytest.approx(0.0455, rel=0.06)
    assert error(uniform, narrow).mean() == pytest.approx(0.0041, rel=0.06)
    assert error(polar, narrow).mean() == pytest.approx(0.0007, abs=0.0001)


def test_weights_are_the_expected_lean_and_vanish_for_the_printed_prior() -> None:
    # 20,000 draws: entries below 1 have standard error below 0.004.
    p = 0.5 + 0.5 * np.random.default_rng(7).random((20_000, 11))
    law = tally_law(p).mean(axis=0)
    np.testing.assert_allclose(objective_weights(11, 0.75), law[6:] - law[:6][::-1], atol=0.01)
    # The printed prior has mean 1/2: without the absolute value nothing is left to maximise.
    fair = tally_law(np.full(11, 0.5))
    assert np.abs(fair[6:] - fair[:6][::-1]).max() < 1e-16
    with pytest.raises(InputError, match=r"mean is 0\.5"):
        objective_weights(11, 0.5)


def test_a_noise_function_of_the_user_is_shrunk_to_what_is_private() -> None:
    ensemble = eleven(0.0, 3)
    everything = np.ones(12)
    assert excess(ensemble, everything) > 0.05
    kept = verified(ensemble, everything)
    assert excess(ensemble, kept) <= 1e-15
    assert kept.max() == pytest.approx(kept.min())
    np.testing.assert_array_equal(verified(ensemble, kept), kept)
