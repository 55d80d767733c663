"""Releases of which only (epsilon, delta) is known: composed exactly, and said for whom."""

import math
from itertools import product

import numpy as np
import pytest

from raydp_sim.privacy.composition.theorems import compose, total_delta
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import EnsembleRelease
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.spent import spent


def worst(epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """The mechanism with that guarantee that leaks most: it tells the input, or flips it."""
    grown = math.exp(epsilon)
    yes, no = (1 - delta) * grown / (1 + grown), (1 - delta) / (1 + grown)
    return np.array([delta, yes, no, 0.0]), np.array([0.0, no, yes, delta])


def needed(epsilon: float, delta: float, times: int, at: float) -> float:
    """The delta that so many uses need at an epsilon, by all outcomes."""
    p, q = worst(epsilon, delta)
    total = 0.0
    for outcome in product(range(4), repeat=times):
        total += max(0.0, math.prod(p[list(outcome)]) - math.exp(at) * math.prod(q[list(outcome)]))
    return total


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.001), (0.8, 0.0), (0.1, 0.01)])
def test_composition_is_exact_for_the_worst_mechanism(epsilon: float, delta: float) -> None:
    for times, total in ((1, 0.05), (3, 0.06), (5, 0.08)):
        found = spent([(EnsembleRelease(epsilon, delta), times)], total)
        assert found.bound == "general-composition"
        assert needed(epsilon, delta, times, found.epsilon) <= total * (1 + 1e-9)
        if found.epsilon > 1e-6:
            assert needed(epsilon, delta, times, found.epsilon * (1 - 1e-6)) > total * (1 - 1e-9)


# Tables B.3, 3.2, B.5 and B.7 of 004, MNIST and Fashion-MNIST.
TOTALS = {
    (0.0892, 1e-4): (1.704, 2.837, 4.202),
    (0.2676, 3e-4): (5.352, 9.901, 15.044),
    (0.4460, 5e-4): (8.920, 18.428, 28.926),
    (0.6244, 7e-4): (12.488, 28.392, 45.683),
    (0.0852, 1e-4): (1.620, 2.695, 3.988),
    (0.2556, 3e-4): (5.112, 9.382, 14.219),
    (0.4260, 5e-4): (8.520, 17.398, 27.223),
    (0.5964, 7e-4): (11.928, 26.738, 42.873),
}


@pytest.mark.parametrize(("query", "totals"), TOTALS.items(), ids=[f"{e:g}" for e, _ in TOTALS])
def test_printed_totals_are_the_theorems_and_no_least_ones(query, totals) -> None:
    for times, printed in zip((20, 50, 100), totals, strict=True):
        assert round(compose(query[0], times, 1e-4), 3) == pytest.approx(printed, abs=6e-4)
        delta = total_delta([(query[1], times)], 1e-4)
        assert spent([(EnsembleRelease(*query), times)], delta).epsilon < printed
        # Publishing all eleven teachers costs less than any of them.
        assert 11 * (0.0892 if query[0] in (0.0892, 0.2676, 0.446, 0.6244) else 0.0852) < printed


def test_deltas_that_are_spent_leave_nothing() -> None:
    with pytest.raises(NotApplicable):
        spent([(EnsembleRelease(0.1, 0.01), 10)], 0.05)
    # Where they are all of delta, epsilons add up.
    exactly = total_delta([(0.01, 10)])
    assert spent([(EnsembleRelease(0.1, 0.01), 10)], exactly).epsilon == pytest.approx(1.0)


def test_unequal_releases_and_those_that_are_paid() -> None:
    paid = EnsembleRelease(0.0, 0.0, votes="fixed")
    first = EnsembleRelease(2.0, 0.001, votes="fixed")
    assert spent([(first, 1), (paid, 99)], 0.01) == spent([(first, 1)], 0.01)
    mixed = spent([(EnsembleRelease(0.1), 50), (EnsembleRelease(0.2), 5)], 1e-6).epsilon
    assert mixed <= 6.0
    assert mixed > spent([(EnsembleRelease(0.1), 50)], 1e-6).epsilon


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_the_ledger_composes_and_names_the_neighbours(delta: float) -> None:
    event = EnsembleRelease(0.3, delta)
    ledger = Ledger(5, 0.02, rule="laws", collector="server")
    for _ in range(20):
        ledger.charge(event, range(5), event)
    found = ledger.guarantee()
    assert found.epsilon == pytest.approx(spent([(event, 20)], 0.02).epsilon)
    assert found.epsilon < 6.0 and found.bound == "general-composition"
    assert "neighbours differ in one record of the data behind the votes" in found.assumption
    assert "which may change every vote" in found.assumption
    assert "client's data" not in found.assumption


def test_a_single_release_is_what_it_states() -> None:
    event = EnsembleRelease(0.3, 1e-4)
    ledger = Ledger(5, 1e-4, rule="laws", collector="server")
    ledger.charge(event, range(5), event)
    assert ledger.guarantee().epsilon == pytest.approx(0.3)


def test_everyone_is_charged_whoever_voted() -> None:
    event = EnsembleRelease(0.3, 1e-4)
    ledger = Ledger(5, 0.02, rule="laws", collector="server")
    for voter in range(4):
        ledger.charge(event, np.array([voter], np.uint32), event)
    assert ledger.guarantee().epsilon == pytest.approx(spent([(event, 4)], 0.02).epsilon)
    assert (ledger.epsilons() == ledger.guarantee().epsilon).all()


def test_units_are_never_mixed() -> None:
    ledger = Ledger(5, 0.01)
    event = EnsembleRelease(0.3)
    ledger.charge(event, range(5), event)
    other = EnsembleRelease(0.3, unit="client")
    assert "items and of clients" in str(ledger.refuses(other, other))
