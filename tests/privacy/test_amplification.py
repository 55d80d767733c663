"""One shuffle's (epsilon, delta): the table of figure 5.3, the published points, the trap."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from raydp_sim.privacy.bound import find_rdp
from raydp_sim.privacy.bounds import linear as closed
from raydp_sim.privacy.bounds.closed_forms import (
    Blanket,
    balle,
    balle_log_delta,
    efm19,
    efm19_general,
    fmt_closed,
)
from raydp_sim.privacy.composition.conversion import best_order
from raydp_sim.privacy.composition.rounds import cldp_round, self_sampled_round
from raydp_sim.privacy.curves.clones import clones_epsilon
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import CldpRound, SelfSampledShuffle, Shuffle


def converted(name, epsilon0, n, delta=1e-6):
    event = Shuffle(epsilon0, n)
    bound = find_rdp(name, event)
    return best_order(lambda orders: bound.rdp_vector(event, orders), delta).epsilon


@pytest.mark.parametrize(
    ("epsilon0", "n", "upper1", "lower", "blanket", "clones", "closed", "efm"),
    [
        (0.1, 10**3, 0.019858, 0.010717, 0.012212, 0.010185, 0.050926, 0.042738),
        (0.1, 10**4, 0.0059076, 0.0030753, 0.0035613, 0.0028708, 0.016292, 0.013508),
        (0.1, 10**6, 4.9868e-4, 2.3183e-4, 2.8469e-4, 2.0557e-4, 1.6373e-3, 1.3505e-3),
        (1, 10**4, 0.11974, 0.038216, 0.069313, 0.053005, 0.21403, 1.367),
        (2, 10**4, 0.52543, 0.089251, 0.2609, 0.15505, 0.50092, 61.0),
        (3, 10**4, 1.4714, 0.16332, 0.71608, 0.32072, 0.82411, 12666),
        (1, 10**5, 0.037383, 0.011212, 0.020625, 0.015282, 0.072555, 0.42532),
        (2, 10**5, 0.18975, 0.026732, 0.081409, 0.045026, 0.18619, 14.03),
        (3, 10**5, 0.6976, 0.050035, 0.24469, 0.092758, 0.3376, 1442),
        (3, 10**6, 0.26654, 0.014762, 0.076623, 0.026873, 0.11927, 199.5),
    ],
)
def test_the_table_of_figure_5_3(epsilon0, n, upper1, lower, blanket, clones, closed, efm):
    assert converted("upper1", epsilon0, n) == pytest.approx(upper1, rel=6e-5)
    assert converted("lower", epsilon0, n) == pytest.approx(lower, rel=6e-5)
    assert balle(epsilon0, n, 1e-6) == pytest.approx(blanket, rel=6e-5)
    assert clones_epsilon(epsilon0, n, 1e-6) == pytest.approx(clones, rel=6e-5)
    assert fmt_closed(epsilon0, n, 1e-6) == pytest.approx(closed, rel=6e-5)
    assert efm19_general(epsilon0, n, 1e-6) == pytest.approx(efm, rel=5e-4)


def test_the_closed_form_at_its_published_point():
    assert fmt_closed(4.0, 10**5, 1e-6, "ref") == pytest.approx(0.5378040242374512, rel=1e-12)
    assert fmt_closed(4.0, 10**5, 1e-6) == pytest.approx(0.534633991652, rel=1e-11)
    assert clones_epsilon(4.0, 10**5, 1e-6) == pytest.approx(0.169769747255, rel=1e-6)


def test_conditions_are_checked():
    with pytest.raises(NotApplicable, match="closed form"):
        fmt_closed(2.0, 1000, 1e-12)
    with pytest.raises(NotApplicable, match="efm19"):
        efm19(0.5, 10**4, 1e-6)
    with pytest.raises(NotApplicable, match="blanket"):
        balle(3.0, 10, 1e-12)
    assert efm19(0.25, 10**4, 1e-6) == pytest.approx(3 * math.sqrt(math.log(1e6) / 1e4), rel=1e-12)


def test_a_generic_mechanism_may_not_use_published_constants():
    """3-ary randomized response, epsilon0 = 3, n = 1000, all others on the third symbol."""
    epsilon0, n, epsilon = 3.0, 1000, 0.8
    E = math.exp(epsilon0)
    rest = 1 / (E + 2)
    a, b = np.arange(n + 1.0)[:, None], np.arange(n + 1.0)[None, :]
    inside = a + b <= n
    c = np.where(inside, n - a - b, 0.0)
    # Laws of the histogram (a, b, c): this multinomial times the victim's mean likelihood ratio.
    logs = gammaln(n + 1) - gammaln(a + 1) - gammaln(b + 1) - gammaln(c + 1)
    logs = logs + (a + b) * math.log(rest) + c * math.log(E * rest)
    law = np.exp(np.where(inside, logs, -np.inf))
    one, other = (E * a + b + c / E) / n, (a + E * b + c / E) / n
    exact = float((law * np.maximum(one - math.exp(epsilon) * other, 0)).sum())
    assert exact == pytest.approx(9.244e-7, rel=1e-3)
    wrong = math.exp(balle_log_delta(epsilon0, n, epsilon, Blanket("published", 1 / E)))
    assert wrong == pytest.approx(1.404e-7, rel=1e-3)
    assert wrong < exact < math.exp(balle_log_delta(epsilon0, n, epsilon))
    true = Blanket("published", 3 / (E + 2))
    assert exact < math.exp(balle_log_delta(epsilon0, n, epsilon, true))


def test_a_blanket_mass_goes_with_its_constants():
    with pytest.raises(ValueError, match="mass"):
        Blanket("tight")
    with pytest.raises(ValueError, match="mass"):
        Blanket("generic", 0.5)
    with pytest.raises(ValueError, match="mass"):
        Blanket("tight", 1.5)


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-4, 5.0), st.integers(1, 10**7), st.floats(-300.0, -1.0).map(math.exp))
def test_closed_forms_are_never_negative_and_blankets_never_above_the_loss(epsilon0, n, delta):
    for bound in (balle, fmt_closed, efm19):
        try:
            value = bound(epsilon0, n, delta)
        except NotApplicable:
            continue
        assert 0.0 <= value < math.inf
        if bound is balle:
            assert value <= epsilon0
            assert balle_log_delta(epsilon0, n, value) <= math.log(delta)


@pytest.mark.parametrize("bound", [balle, fmt_closed, efm19, efm19_general])
def test_no_loss_stays_none(bound):
    assert bound(0.0, 1000, 1e-6) == 0.0


@pytest.mark.parametrize("bound", [balle, fmt_closed, efm19, efm19_general])
@pytest.mark.parametrize(("e0", "n", "delta"), [(-1, 10, 0.1), (1, 0, 0.1), (1, 10, 0), (1, 10, 1)])
def test_nonsense_is_refused(bound, e0, n, delta):
    with pytest.raises(ValueError):
        bound(e0, n, delta)


def test_the_self_sampled_round_of_the_source():
    event = SelfSampledShuffle(1.0, 60_000, 1 / 6)
    epsilon, delta = self_sampled_round(event, 1e-9, clones_epsilon)
    assert epsilon == pytest.approx(0.0282864062877, rel=1e-6)
    assert delta == pytest.approx(1.66666666667e-10, rel=1e-10)


def test_a_few_self_sampled_clients_get_nothing():
    epsilon, delta = self_sampled_round(SelfSampledShuffle(1.0, 10, 0.1), 1e-9, clones_epsilon)
    assert epsilon == pytest.approx(math.log1p(0.15 * math.expm1(1.0)), rel=1e-12) and delta > 1


def test_several_points_lose_the_clients_amplification():
    one, several = CldpRound(1.0, 100, 4, 10, 1), CldpRound(1.0, 100, 4, 10, 2)
    assert cldp_round(one, 1e-6, lambda *_: 0.5) == pytest.approx(
        (math.log1p(0.025 * math.expm1(0.5)), 0.025e-6), rel=1e-12
    )
    assert cldp_round(several, 1e-6, lambda *_: 0.5) == pytest.approx(
        (math.log1p(0.5 * math.expm1(0.5)), 0.05e-6), rel=1e-12
    )


@settings(deadline=None)
@given(st.floats(1e-3, 2.9), st.sampled_from([48, 768]), st.integers(1, 16))
def test_the_corrected_calibration_meets_its_target_and_the_printed_does_not(eps, constant, s):
    n, delta = 10**6, 1e-6
    v = closed.linear_calibration(eps, delta, s, n, constant)
    printed = closed.linear_calibration(eps, delta, s, n, constant, printed=True)
    L = -math.log(delta)

    def linear(v):
        rho = closed.linear_rho(v, s, n, constant)
        return 3 * max(rho * L, math.sqrt(rho * L))

    assert linear(v) <= eps * (1 + 1e-12)
    assert linear(printed) > eps
    factor = {48: 432, 768: 6912}[constant]
    assert v**2 == pytest.approx(s * n * min(eps**2, eps) / (factor * L), rel=1e-12)


def test_message_losses_are_those_of_their_channel():
    v, s = 1.5, 3
    u = v / s
    p = 0.5 * (1 - math.sqrt(u * u / (u * u + 4)))
    assert closed.message_loss(v, s) == pytest.approx(math.log((1 - p) / p), rel=1e-12)
    assert closed.message_loss(v, s) <= u


def test_the_linear_form_is_silent_beyond_its_orders():
    with pytest.raises(NotApplicable):
        closed.linear_epsilon(0.5, 1, 100, 1e-6)
