"""How long the best noise functions of private majorities take, beside a floor."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from raydp_sim.mechanisms.ensembles.program import Method, objective_weights, optimal, solved
from raydp_sim.mechanisms.ensembles.votes import tally_law
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble


class Timed(NamedTuple):
    """One case.

    Attributes:
        name: of the case.
        ours: seconds, all worst cases made, the program solved and its solution held against them.
        floor: seconds to solve a program that has the binding worst cases alone, which nobody knows
            beforehand; of laws, to multiply as many numbers.
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
        laws(),
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
    gamma, rising = optimal(votes, method), method == "monotone"
    coefficients = votes.rising_rows if rising else votes.rows
    upper = gamma[len(gamma) // 2 :]
    binding = coefficients[coefficients @ upper > votes.limit - 1e-9]
    weights, half = objective_weights(votes.voters, 0.75), np.eye(len(upper))
    order = half[:-1] - half[1:] if rising else half[:0]
    return Timed(name, ours, _seconds(lambda: solved(weights, binding, votes.limit, order)), goal)


def laws() -> Timed:
    """Return the time of 10,000 tally laws of 101 votes, as a figure's error takes them."""
    chances = np.random.default_rng(1).random((10_000, 101))
    half = np.ones((10_000, 51))  # a law is K steps over up to K + 1 numbers

    def multiply() -> None:
        for _ in range(101):
            np.multiply(half, 0.5, out=half)

    return Timed(
        "10,000 laws of 101 votes", _seconds(lambda: tally_law(chances)), _seconds(multiply), 5.0
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
