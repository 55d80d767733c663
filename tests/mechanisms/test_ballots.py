"""Mechanisms that release a majority: their law, who is missing, what is charged and refused."""

import math
from itertools import product

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import binom

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.darrm import Darrm
from raydp_sim.mechanisms.ensembles.error import says_one
from raydp_sim.mechanisms.ensembles.program import optimal
from raydp_sim.privacy.events import EnsembleRelease
from raydp_sim.random import Stream

VOTES = {"clients": 5, "vote_epsilon": 0.4, "epsilon": 0.8}
ROOM = 5.5  # standard errors; a false alarm has probability 4e-8 a comparison


def released(mechanism, ones: int, votes: int, releases: int = 4000) -> float:
    counts = np.array([[votes - ones, ones]])
    root = Stream(3).at("released", ones)
    return float(np.mean([mechanism.decode(counts, root.at(each))[0] for each in range(releases)]))


@pytest.mark.parametrize("kind", ["darrm", "gnmax"])
def test_labels_follow_the_law_of_the_tally(kind: str) -> None:
    given = {"epsilon": 0.8, "delta": 1e-3, "clients": 5}
    mechanism = make("darrm", **VOTES) if kind == "darrm" else make("gnmax", **given)
    law = mechanism.law()
    assert law + law[::-1] == pytest.approx(1.0)
    for ones in range(6):
        room = ROOM * math.sqrt(law[ones] * (1.0 - law[ones]) / 4000) + 1e-12
        assert abs(released(mechanism, ones, 5) - law[ones]) <= room


def test_who_does_not_vote_is_a_coin() -> None:
    mechanism = make("darrm", **VOTES)
    law = binom(2, 0.5).pmf([0, 1, 2]) @ mechanism.law()[2:5]
    assert abs(released(mechanism, 2, 3) - law) < ROOM * math.sqrt(law * (1 - law) / 4000)
    with pytest.raises(InputError, match="6 votes of 5 voters"):
        mechanism.decode(np.array([[3, 3]]), Stream(1))


def test_the_function_is_the_programs_and_solved_once() -> None:
    one, other = make("darrm", **VOTES), make("darrm", **VOTES)
    np.testing.assert_array_equal(one.law(), says_one(optimal(one.ensemble, "monotone")))
    assert one == other and one.function is other.function
    assert one.ensemble.multiple == 2.0  # 0.8 / 0.4 but for rounding
    assert make("darrm", clients=11, vote_epsilon=0.1, epsilon=0.3).ensemble.multiple == 3.0


@pytest.mark.parametrize(
    ("given", "event"),
    [
        ({}, EnsembleRelease(0.8, 0.04)),
        ({"records": "disjoint"}, EnsembleRelease(0.4, 0.01, "disjoint")),
        ({"votes": "fixed"}, EnsembleRelease(2.0, 0.05, "shared", "fixed")),
        (
            {"votes": "fixed", "records": "disjoint"},
            EnsembleRelease(0.4, 0.01, "disjoint", "fixed"),
        ),
    ],
)
def test_what_is_charged_follows_from_how_votes_are_made(given, event) -> None:
    mechanism = make("darrm", **VOTES, vote_delta=0.01, delta=0.04, **given)
    assert mechanism.event() == mechanism.release() == event and event.unit == "item"
    later = mechanism.answered()
    fixed = given.get("votes") == "fixed"
    assert later.event().epsilon == (0.0 if fixed else event.epsilon)
    np.testing.assert_array_equal(later.law(), mechanism.law())


def test_guarantees_of_single_queries_do_not_add_up_where_votes_are_fixed() -> None:
    """Three voters draw (r, r xor x) once, made private as a whole, and answer two queries by it.

    Alone no query tells anything of x; both together do, as much as their outcomes may.
    """
    mechanism = make("darrm", clients=3, vote_epsilon=0.4, epsilon=0.8, votes="fixed")
    one, grown = mechanism.law(), math.exp(0.4)
    pairs = list(product((0, 1), repeat=2))

    def labels(x: int) -> np.ndarray:
        """Probabilities of the two labels, (2, 2)."""
        own = [(grown if a ^ b == x else 1.0) / (2.0 * (grown + 1.0)) for a, b in pairs]
        found = np.zeros((2, 2))
        for case in product(range(4), repeat=3):
            first, second = (one[sum(pairs[each][side] for each in case)] for side in (0, 1))
            law = np.outer([1 - first, first], [1 - second, second])
            found += math.prod(own[each] for each in case) * law
        return found

    here, there = labels(0), labels(1)
    for axis in (0, 1):
        np.testing.assert_allclose(here.sum(axis=axis), there.sum(axis=axis), atol=1e-15)
    loss = float(np.abs(np.log(here / there)).max())
    assert 0.1 < loss <= mechanism.event().epsilon == pytest.approx(3 * 0.4)


def test_gnmax_protects_all_data_of_a_voter() -> None:
    """One vote that changes class moves two counts by one: the ratio stays within its curve."""
    for calibration in ("seed", "exact"):
        gnmax = make("gnmax", clients=11, epsilon=0.5, delta=1e-3, calibration=calibration)
        law = gnmax.law()
        for one, other in ((law[1:], law[:-1]), (law[:-1], law[1:])):
            for p, q in ((one, other), (1 - one, 1 - other)):
                assert (p - math.exp(0.5) * q).max() <= 1e-3
        noise = gnmax.release().noise_multiplier
        assert noise == pytest.approx(gnmax.sigma / math.sqrt(2.0))
    seed, exact = (
        make("gnmax", clients=11, epsilon=0.5, delta=1e-3, calibration=c) for c in ("seed", "exact")
    )
    assert exact.sigma < 0.9 * seed.sigma


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"clients": 4}, "clients is 4; it must be odd"),
        ({"epsilon": 0.3}, r"epsilon / vote_epsilon is 0\.7"),
        ({"epsilon": 2.4}, "epsilon / vote_epsilon is 6"),
        ({"epsilon": 1.0, "noise": "subsampling"}, r"epsilon / vote_epsilon is 2\.5"),
        ({"epsilon": 1.0, "noise": "double-subsampling"}, r"epsilon / vote_epsilon is 2\.5"),
        ({"vote_delta": 0.01}, "delta is 0"),
        ({"vote_delta": 0.01, "delta": 0.001}, r"delta is 0\.001"),
        ({"vote_epsilon": 0.0}, "vote_epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"noise": "given"}, "gamma is None"),
        ({"noise": "given", "gamma": (1.0,) * 6}, "not private"),
        ({"noise": "given", "gamma": (0.1, 0.2, 0.3, 0.4, 0.2, 0.1)}, "not symmetric"),
        ({"noise": "given", "gamma": (-0.1, 0.2, 0.3, 0.3, 0.2, -0.1)}, "gamma is"),
        (
            {"noise": "double-subsampling", "vote_delta": 0.01, "delta": 0.02},
            r"vote_delta is 0\.01; double-subsampling is proved",
        ),
        ({"epsilon_local": 1.0}, "no local guarantee"),
        ({"target": {"epsilon": 1.0}}, "exactly one of epsilon and target"),
        ({"dimension": 2}, "dimension is 2"),
    ],
)
def test_bad_input_is_refused_by_name(given, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Darrm.model_validate({**VOTES, **given})
