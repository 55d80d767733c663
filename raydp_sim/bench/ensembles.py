"""How long the best noise functions of private majorities take, beside a floor."""

import time
from collections.abc import Callable, Iterator

import numpy as np

from raydp_sim.bench.timed import Progress, Row
from raydp_sim.mechanisms.ensembles.program import Method, objective_weights, optimal, solved
from raydp_sim.mechanisms.ensembles.votes import tally_law
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble

_CASE = "private majority"
_GOAL = 5.0


def rows(progress: Progress = lambda line: None) -> Iterator[Row]:
    """Measure every case with its floor; nothing is remembered from one to the next.

    Of a program, all worst cases are made, it is solved, and its solution is held against them; the
    floor solves one that has the binding worst cases alone, which nobody knows beforehand. The
    floor of laws multiplies as many numbers.
    """
    progress("private majorities")
    yield _case("LP, K=11, Delta>0, 31824 rows", _eleven, "full")
    yield _case("LP growing, K=101, 5253 rows", _hundred, "monotone")
    yield _case("LP growing, K=35, Delta>0", _middle, "monotone")
    yield laws()


def _eleven() -> Ensemble:
    return Ensemble(11, 0.1, 1e-5, 3, 3e-5)


def _middle() -> Ensemble:
    return Ensemble(35, 0.1, 1e-5, 7, 7e-5)


def _hundred() -> Ensemble:
    return Ensemble(101, 0.1, 0.0, 10, 0.0)


def _case(name: str, made: Callable[[], Ensemble], method: Method) -> Row:
    ours = _seconds(lambda: optimal(made(), method))
    votes = made()
    gamma, rising = optimal(votes, method), method == "monotone"
    coefficients = votes.rising_rows if rising else votes.rows
    upper = gamma[len(gamma) // 2 :]
    binding = coefficients[coefficients @ upper > votes.limit - 1e-9]
    weights, half = objective_weights(votes.voters, 0.75), np.eye(len(upper))
    order = half[:-1] - half[1:] if rising else half[:0]
    floor = _seconds(lambda: solved(weights, binding, votes.limit, order))
    return Row(_CASE, name, ours, floor, _GOAL)


def laws() -> Row:
    """Return the time of 10,000 tally laws of 101 votes, as a figure's error takes them."""
    chances = np.random.default_rng(1).random((10_000, 101))
    half = np.ones((10_000, 51))  # a law is K steps over up to K + 1 numbers

    def multiply() -> None:
        for _ in range(101):
            np.multiply(half, 0.5, out=half)

    ours = _seconds(lambda: tally_law(chances))
    return Row(_CASE, "10,000 laws of 101 votes", ours, _seconds(multiply), _GOAL)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
