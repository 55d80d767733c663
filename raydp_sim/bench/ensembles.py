"""How long the best noise functions of private majorities take, beside a floor."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from raydp_sim.mechanisms.ensembles.program import Method, optimal
from raydp_sim.mechanisms.ensembles.votes import tally_law
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble


class Timed(NamedTuple):
    """One case.

    Attributes:
        name: of the case.
        ours: seconds, all worst cases made, the program solved and its solution held against them.
        floor: seconds to read the same number of coefficients once, in one product.
        goal: seconds that are not to be exceeded.
    """

    name: str
    ours: float
    floor: float
    goal: float


def rows() -> list[Timed]:
    """Return every case with its floor; nothing is remembered from one to the next."""
    return [
        _case("LP, K = 11, Delta = 1e-5, 31,824 rows", _eleven, "full", 5.0),
        _case("LP growing, K = 101, pure, 5,253 rows", _hundred, "monotone", 5.0),
        _case("LP growing, K = 35, Delta = 1e-5, 666 rows", _middle, "monotone", 5.0),
    ]


def _eleven() -> Ensemble:
    return Ensemble(11, 0.1, 1e-5, 3, 3e-5)


def _middle() -> Ensemble:
    return Ensemble(35, 0.1, 1e-5, 7, 7e-5)


def _hundred() -> Ensemble:
    return Ensemble(101, 0.1, 0.0, 10, 0.0)


def _case(name: str, made: Callable[[], Ensemble], method: Method, goal: float) -> Timed:
    ours = _seconds(lambda: optimal(made(), method))
    votes = made()
    coefficients = votes.rows if method == "full" else votes.rising_rows
    floor = _seconds(lambda: coefficients @ np.ones(coefficients.shape[1]))
    return Timed(name, ours, floor, goal)


def laws() -> Timed:
    """Return the time of 10,000 tally laws of 101 votes, as a figure's error takes them."""
    chances = np.random.default_rng(1).random((10_000, 101))
    # A law is K convolutions of up to K + 1 numbers.
    floor = _seconds(lambda: [chances * 0.5 for _ in range(101)])
    return Timed("10,000 laws of 101 votes", _seconds(lambda: tally_law(chances)), floor, 5.0)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
