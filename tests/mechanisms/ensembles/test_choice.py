"""Every noise function is private by enumeration before it is used, and others are refused."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.ensembles.choice import Noise, chosen
from raydp_sim.mechanisms.ensembles.error import says_one
from raydp_sim.mechanisms.ensembles.program import excess
from raydp_sim.mechanisms.ensembles.votes import tally_law
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble


def allowed(epsilon: float, failure: float, steps: int) -> np.ndarray:
    """Pairs (p, p') on a grid, and at the corners, that an (epsilon, Delta)-DP vote may have."""
    grid = np.linspace(0.0, 1.0, steps)
    p, q = (side.reshape(-1) for side in np.meshgrid(grid, grid))
    grown = math.exp(epsilon)
    kept = (
        (p <= grown * q + failure)
        & (q <= grown * p + failure)
        & (1 - p <= grown * (1 - q) + failure)
        & (1 - q <= grown * (1 - p) + failure)
    )
    corners = Ensemble(1, epsilon, failure, 1, max(failure, 0.5)).corners
    return np.concatenate([np.stack([p, q], axis=1)[kept], corners])


def worst_delta(gamma: np.ndarray, pairs: np.ndarray, epsilon: float) -> float:
    """The delta that the release needs at epsilon, over all multisets of pairs of K voters."""
    voters, one = len(gamma) - 1, says_one(gamma)
    cases = np.array(list(combinations_with_replacement(range(len(pairs)), voters)))
    here, there = (tally_law(pairs[cases, side]) @ one for side in (0, 1))
    grown = math.exp(epsilon)
    return float(max((here - grown * there).max(), ((1 - here) - grown * (1 - there)).max()))


NOISES: tuple[Noise, ...] = ("full", "monotone", "subsampling", "double-subsampling", "constant")


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("voters,multiple,steps", [(3, 1, 12), (3, 2, 12), (5, 2, 5)])
def test_pure_votes_make_a_private_majority_whatever_their_probabilities(
    noise: Noise, voters: int, multiple: int, steps: int
) -> None:
    ensemble = Ensemble(voters, 0.4, 0.0, multiple, 0.0)
    gamma = chosen(ensemble, noise)
    found = worst_delta(gamma, allowed(0.4, 0.0, steps), 0.4 * multiple)
    assert found <= 1e-12
    if noise == "full":  # and no less is told than may be
        assert found >= -1e-9 or (gamma == 1.0).all()


@pytest.mark.parametrize("noise", ["full", "monotone", "subsampling", "constant"])
@pytest.mark.parametrize("voters,multiple,steps", [(3, 1, 12), (3, 2, 12), (5, 2, 4)])
def test_approximate_votes_make_a_private_majority(
    noise: Noise, voters: int, multiple: int, steps: int
) -> None:
    ensemble = Ensemble(voters, 0.4, 0.01, multiple, multiple * 0.01)
    gamma = chosen(ensemble, noise)
    assert worst_delta(gamma, allowed(0.4, 0.01, steps), 0.4 * multiple) <= multiple * 0.01 + 1e-12
    assert excess(ensemble, gamma) <= 1e-12


def test_a_given_function_is_used_as_it_is_or_refused() -> None:
    ensemble = Ensemble(5, 0.4, 0.0, 2, 0.0)
    best = chosen(ensemble, "full")
    np.testing.assert_array_equal(chosen(ensemble, "given", best), best)
    share = 0.5 * best
    np.testing.assert_array_equal(chosen(ensemble, "given", share), share)
    with pytest.raises(InputError, match=r"not private: a worst case exceeds .* multiply it by"):
        chosen(ensemble, "given", np.ones(6))


@pytest.mark.parametrize(
    ("ensemble", "noise", "given", "says"),
    [
        (Ensemble(11, 0.1, 0.0, 2.5, 0.0), "subsampling", None, "multiple is 2.5"),
        (Ensemble(11, 0.1, 0.0, 2.5, 0.0), "double-subsampling", None, "multiple is 2.5"),
        (Ensemble(11, 0.1, 1e-5, 3, 3e-5), "double-subsampling", None, "failure is 1e-05"),
        (Ensemble(3, 0.1, 0.0, 1, 0.0), "given", [0.1, 0.1], "gamma has 2 numbers"),
        (Ensemble(3, 0.1, 0.0, 1, 0.0), "given", None, "gamma is None"),
        (Ensemble(3, 0.1, 0.0, 1, 0.0), "full", [0.1] * 4, "gamma is"),
        (Ensemble(3, 0.1, 0.0, 1, 0.0), "given", [0.1, 0.2, 0.3, 0.1], "not symmetric"),
        (Ensemble(3, 0.1, 0.0, 1, 0.0), "given", [2.0, 0.2, 0.2, 2.0], "in \\[0, 1\\]"),
    ],
)
def test_bad_input_is_refused_by_name(ensemble, noise, given, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=says):
        chosen(ensemble, noise, given)
