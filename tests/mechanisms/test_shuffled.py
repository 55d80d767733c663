"""Calibration behind a shuffler: what it returns meets the target, for every kind there is."""

import math

import pytest

from raydp_sim.mechanisms import MECHANISMS, make
from raydp_sim.mechanisms.compare import Budget, built_with
from raydp_sim.mechanisms.shuffled import (
    calibrated_for,
    largest_loss,
    shuffled_event,
    spent,
    unamplified,
    with_loss,
)
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bounds import linear as closed
from raydp_sim.privacy.composition.conversion import linear_rdp_to_dp
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import MultiMessageShuffle, Shuffle

CLIENTS, EPSILON, DELTA = 2000, 0.7, 1e-6
# Others tell no mean, or a task finds their noise.
COMPARED = [k for k, c in MECHANISMS.kinds.items() if c.tells == "mean" and c.compared]


@pytest.mark.parametrize("kind", COMPARED)
def test_what_is_calibrated_meets_the_target_when_it_is_evaluated_again(kind: str) -> None:
    built = built_with(MECHANISMS.kinds[kind], Budget(4, CLIENTS, 1.0, DELTA), levels=2)
    if why := unamplified(built):
        with pytest.raises(NotApplicable, match="shuffling gains nothing"):
            calibrated_for(built, CLIENTS, EPSILON, DELTA)
        assert why
        return
    found = calibrated_for(built, CLIENTS, EPSILON, DELTA)
    event = shuffled_event(found.mechanism, CLIENTS)
    again = account([(event, 1)], DELTA, [found.bound])
    assert again.epsilon <= EPSILON and found.epsilon <= EPSILON
    assert found.epsilon > 0.99 * EPSILON, "as much as the target allows"
    assert found.mechanism.epsilon_local > EPSILON, "the shuffle gains something"
    more = with_loss(found.mechanism, found.mechanism.epsilon_local * 1.01)
    assert spent(shuffled_event(more, CLIENTS), DELTA, found.bound) > EPSILON


# Section 6.3: (levels, coordinates, epsilon) -> v by 000 Theorem 5.3.1, delta 1e-5, n = 1000.
V = [
    (1, 1, 0.5, 1.32863),
    (4, 1, 0.5, 2.56115),
    (4, 1, 1.0, 3.97070),
    (4, 1, 2.0, 5.83531),
    (6, 1, 1.0, 4.32854),
    (2, 10, 1.0, 11.8885),
]


@pytest.mark.parametrize(("levels", "coordinates", "epsilon", "v"), V)
def test_the_budgets_of_the_seeds_accountant(
    levels: int, coordinates: int, epsilon: float, v: float
) -> None:
    mechanism = make(
        "linf",
        epsilon_local=1.0,
        dimension=coordinates,
        coordinates=coordinates,
        levels=levels,
        radius=0.5,
        calibration="seed",
    )
    found = calibrated_for(mechanism, 1000, epsilon, 1e-5, "rdp-upper1")
    assert found.mechanism.epsilon_local == pytest.approx(v, rel=1e-5)
    assert found.epsilon <= epsilon


@pytest.mark.parametrize(("constant", "right", "printed"), [(48, 432, 144), (768, 6912, 2304)])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_printed_constants_give_root_three_of_epsilon(
    constant: closed.Constant, right: int, printed: int, epsilon: float
) -> None:
    """Correction 3: 3 sqrt(C min{eps^2, eps}/c) <= eps takes c >= 9 C; 3 C is printed."""
    n, s, delta = 10**6, 4, 1e-6

    def derived(v: float) -> float:
        rho = closed.linear_rho(v, s, n, constant)
        return 3.0 * math.sqrt(-rho * math.log(delta))

    for factor, as_printed, times in ((right, False, 1.0), (printed, True, math.sqrt(3.0))):
        v = closed.linear_calibration(epsilon, delta, s, n, constant, as_printed)
        assert v**2 == pytest.approx(s * n * epsilon**2 / (-factor * math.log(delta)))
        assert derived(v) == pytest.approx(times * epsilon)
    # The sharper conversion of Lemma 2.1.5 does not save the printed constant either.
    assert linear_rdp_to_dp(closed.linear_rho(v, s, n, constant), delta) > 1.15 * epsilon


def test_the_closed_forms_are_far_below_numerical_accounting() -> None:
    """Section 6.3: at m = 4, s = 1, eps = .5 the closed forms give these, accounting 2.56."""
    for constant, printed, v in (
        (48, False, 0.2242),
        (768, False, 0.05605),
        (48, True, 0.388326),
        (768, True, 0.0970814),
    ):
        found = closed.linear_calibration(0.5, 1e-5, 1, 1000, constant, printed)
        assert found == pytest.approx(v, rel=2e-4)


def test_why_shuffling_gains_nothing() -> None:
    gaussian = make("gaussian", epsilon_local=1.0, delta_local=1e-6, dimension=1, radius=1.0)
    assert unamplified(gaussian) is None
    found = calibrated_for(gaussian, 1000, 0.5, 1e-7)
    assert found.bound == "pld-gaussian" and found.epsilon <= 0.5
    assert found.mechanism.epsilon_local > 2.0 and found.mechanism.delta_local == 1e-7
    central = make("central-laplace", epsilon=1.0, dimension=1, radius=1.0)
    assert "aggregator" in (unamplified(central) or "")
    with pytest.raises(NotApplicable, match="'central-laplace'"):
        calibrated_for(make("central-laplace", epsilon=1.0, dimension=1, radius=1.0), 9, 1.0, 1e-6)


def test_one_client_is_hidden_by_nobody() -> None:
    found = calibrated_for(make("2rr", epsilon_local=1.0), 1, 0.5, 1e-6)
    assert found.mechanism.epsilon_local == pytest.approx(0.5, rel=1e-4)
    assert found.epsilon <= 0.5


def test_the_events_are_one_shuffle_per_message() -> None:
    one = make("2rr", epsilon_local=1.0)
    assert shuffled_event(one, 7) == Shuffle(one.losses()[0], 7, "2rr")
    several = make("linf", epsilon_local=2.0, dimension=4, radius=1.0, levels=2)
    assert isinstance(shuffled_event(several, 7), MultiMessageShuffle)


def test_no_search_goes_where_draws_cannot_follow() -> None:
    levels = make("linf", epsilon_local=1.0, dimension=1, radius=1.0, levels=20)
    largest = largest_loss(levels)
    assert largest < 20.0 * 20 and math.isfinite(with_loss(levels, largest).event().epsilon)
