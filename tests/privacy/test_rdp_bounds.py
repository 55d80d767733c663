"""The divergences of the figures, the reference values, and what a bound refuses."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.privacy import events as ev
from raydp_sim.privacy.bound import find_rdp, rdp_bounds
from raydp_sim.privacy.bounds.fmt23 import Fmt23
from raydp_sim.privacy.bounds.numeric import Numeric
from raydp_sim.privacy.bounds.upper1 import Upper1
from raydp_sim.privacy.curves.caps import cap_rdp, capped
from raydp_sim.privacy.curves.clones import clones_rdp
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import SelfSampledShuffle, Shuffle, SubsampledShuffle


def rdp(name, event, alpha):
    return find_rdp(name, event).rdp(event, alpha)


FIGURE_5_2 = [
    (0.1, 10**4, 2, (2.2123e-6, 9.7798e-6, 1.0008e-6, 6.6004e-6)),
    (0.1, 10**4, 10, (1.1394e-5, 2.7166e-5, 5.0041e-6, 3.3002e-5)),
    (0.1, 10**4, 100, (1.5335e-4, 2.4696e-4, 5.0038e-5, 3.3002e-4)),
    (0.1, 10**4, 1000, (2.7038e-3, 2.4474e-3, 5.0008e-4, 3.3002e-3)),
    (0.1, 10**4, 10000, (0.011281, 0.024452, 4.9631e-3, 0.033002)),
    (0.1, 10**3, 100, (2.4601e-3, 2.4718e-3, 5.0008e-4, 3.3002e-3)),
    (0.1, 10**5, 100, (1.2368e-5, 2.4695e-5, 5.0041e-6, 3.3002e-5)),
    (0.1, 10**6, 100, (1.1469e-6, 2.4695e-6, 5.0042e-7, 3.3002e-6)),
    (0.5, 10**4, 100, (0.012023, 0.014016, 1.2741e-3, 0.062192)),
    (1, 10**4, 100, (0.060344, 0.16208, 5.3923e-3, 3.224)),
    (2, 10**4, 100, (0.47434, 6.0905, 0.026672, 2433.7)),
    (3, 10**4, 100, (2.4017, 147.77, 0.08158, 1.1857e6)),
    (3, 10**4, 2, (0.070302, 5.8515, 1.8119e-3, 23714)),
    (3, 10**4, 10, (0.96249, 16.254, 8.9733e-3, 1.1857e5)),
    (3, 10**4, 1000, (2.9407, 1464.3, 0.49218, 1.1857e7)),
    (3, 10**5, 100, (0.67923, 14.777, 8.9615e-3, 1.1857e5)),
    (3, 10**6, 100, (0.18355, 1.478, 9.0569e-4, 11857)),
    (0.5, 10**6, 100, (5.2882e-5, 1.4017e-4, 1.2762e-5, 6.2192e-4)),
    (1, 10**6, 100, (5.7213e-4, 1.6214e-3, 5.4304e-5, 0.03224)),
    (2, 10**6, 100, (0.023446, 0.060933, 2.7612e-4, 24.337)),
]


@pytest.mark.parametrize(("epsilon0", "n", "alpha", "printed"), FIGURE_5_2)
def test_the_curves_of_figure_5_2(epsilon0, n, alpha, printed):
    event = Shuffle(epsilon0, n)
    found = [rdp(name, event, alpha) for name in ("upper1", "upper2", "lower", "efm19")]
    assert found == pytest.approx(printed, rel=6e-5)  # five printed digits


@pytest.mark.parametrize(
    ("epsilon0", "numeric", "clones"),
    [
        (0.1, 2.76446361039e-4, 2.75839502147e-4),
        (0.5, 0.0104120816927, 0.00989925891857),
        (1, 0.0689504294399, 0.0584936926679),
        (2, 0.591983955164, 0.552798882009),
    ],
)
def test_numeric_and_clones_at_a_hundred_messages(epsilon0, numeric, clones):
    event = Shuffle(epsilon0, 100)
    assert rdp("numeric", event, 5) == pytest.approx(numeric, rel=1e-10)
    assert rdp("clones", event, 5) == pytest.approx(clones, rel=1e-8)


def test_numeric_follows_the_mass_to_few_agreeing_others():
    """A window of 14 standard deviations would give 1.35587, which is no upper bound."""
    assert rdp("numeric", Shuffle(3.0, 10**4), 300) == pytest.approx(1.37509100593, rel=1e-10)


def test_buckets_err_upwards_and_little():
    event, orders = Shuffle(1.0, 3 * 10**5), np.array([2.0, 20.0, 200.0])
    fine = Numeric(buckets=1500).rdp_vector(event, orders)
    coarse = Numeric(buckets=24).rdp_vector(event, orders)
    default = Numeric().rdp_vector(event, orders)
    assert np.all(fine <= default) and np.all(default <= coarse)
    assert default == pytest.approx(fine, rel=1e-4)
    assert Numeric(buckets=192).rdp_vector(event, orders) == pytest.approx(fine, rel=3e-5)


@pytest.mark.parametrize("epsilon0", [0.01, 0.5, 2.0, 6.0])
def test_two_evaluations_of_the_clones_agree(epsilon0):
    for n in (1, 2, 30, 1000):
        for alpha in (1.5, 2, 30, 300):
            event = Shuffle(epsilon0, n)
            assert rdp("clones", event, alpha) == pytest.approx(
                clones_rdp(float(alpha), epsilon0, n), rel=1e-7
            )


def test_clones_and_numeric_are_each_less_somewhere():
    event = Shuffle(2.0, 1000)
    assert rdp("clones", event, 5) < rdp("numeric", event, 5)
    assert rdp("clones", event, 300) > rdp("numeric", event, 300)


def test_the_sampled_poisson_form_does_not_cancel():
    event = SubsampledShuffle(1.0, 10**6, 1000)
    assert rdp("poisson_zw", event, 2) == pytest.approx(5.90305036100e-9, rel=1e-10)


def test_a_better_chernoff_parameter_never_hurts():
    event = Shuffle(0.5, 10**6)
    for alpha in (2, 19, 300):
        assert Upper1(chernoff=None).rdp(event, alpha) <= Upper1().rdp(event, alpha)


def test_both_constants_of_fmt23_are_far_above_the_clones():
    for epsilon0, n in [(0.5, 10**4), (1.0, 10**5), (2.0, 10**5)]:
        event = Shuffle(epsilon0, n)
        for alpha in (2, 10, 50):
            clones = rdp("clones", event, alpha)
            assert Fmt23().rdp(event, alpha) >= 26 * clones
            assert Fmt23(768).rdp(event, alpha) == pytest.approx(
                16 * Fmt23().rdp(event, alpha), rel=1e-12
            )


def test_every_bound_states_itself():
    for bound in rdp_bounds():
        assert bound.name and bound.source and bound.events
        assert bound.status in ("proved", "lower", "heuristic")
    names = {bound.name for bound in rdp_bounds()}
    assert names >= {
        *("upper1", "upper2", "simple", "lower", "simple_lower", "numeric", "clones", "efm19"),
        *("fmt23", "upper", "wbk", "wbk_naive", "poisson_zw", "poisson_mixture"),
    }


def test_other_events_are_refused_by_name():
    with pytest.raises(Unsupported, match=r"upper1 is not proved for SubsampledShuffle.* upper"):
        Upper1().rdp(SubsampledShuffle(1.0, 10, 5), 2)
    with pytest.raises(ValueError, match="did you mean 'upper1'"):
        find_rdp("uper1", Shuffle(1.0, 10))


@pytest.mark.parametrize(
    ("name", "event", "alpha"),
    [
        ("simple", Shuffle(1.0, 100), 5),
        ("fmt23", Shuffle(1.0, 100), 5),
        ("wbk", SubsampledShuffle(1.0, 100, 10), 5000),
    ],
)
def test_silence_is_said_and_not_infinite(name, event, alpha):
    with pytest.raises(NotApplicable):
        rdp(name, event, alpha)
    assert np.isinf(find_rdp(name, event).rdp_vector(event, [alpha]))[0]
    assert capped(find_rdp(name, event), event, alpha) == cap_rdp(event, alpha)


@pytest.mark.parametrize("alpha", [1, 1.5, 2.5, 0, -3, math.nan, math.inf])
def test_whole_order_bounds_refuse_other_orders(alpha):
    for name in ("upper1", "simple", "simple_lower"):
        with pytest.raises(ValueError, match="alpha"):
            rdp(name, Shuffle(1.0, 100), alpha)


@pytest.mark.parametrize("alpha", [1, 0.5, math.nan, math.inf])
def test_real_order_bounds_refuse_orders_up_to_one(alpha):
    for name in ("upper2", "lower", "numeric", "clones", "efm19"):
        with pytest.raises(ValueError, match="alpha"):
            rdp(name, Shuffle(1.0, 100), alpha)


SHUFFLED = ("upper1", "upper2", "numeric", "lower", "simple_lower", "efm19")
losses = st.floats(1e-4, 8.0)


@settings(max_examples=40, deadline=None)
@given(losses, st.floats(1.01, 1.5), st.integers(1, 400), st.integers(2, 60))
def test_divergences_rise_with_the_local_loss(epsilon0, factor, n, alpha):
    """Not `upper1`, `upper2`: their tail exp(-(n - 1)/(8 E)) and floor make no promise there."""
    for name in ("numeric", "lower", "simple_lower", "efm19"):
        small = rdp(name, Shuffle(epsilon0, n), alpha)
        assert small <= rdp(name, Shuffle(epsilon0 * factor, n), alpha) * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(losses, st.integers(1, 400), st.integers(1, 400), st.integers(2, 60))
def test_divergences_fall_with_more_messages(epsilon0, n, more, alpha):
    for name in SHUFFLED:
        large = rdp(name, Shuffle(epsilon0, n), alpha)
        assert rdp(name, Shuffle(epsilon0, n + more), alpha) <= large * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 4.0), st.integers(2, 300), st.integers(1, 300), st.integers(2, 40))
def test_divergences_rise_with_the_order(epsilon0, n, k, alpha):
    """True of `numeric` and `lower`, which are divergences or averages of them."""
    for event in (Shuffle(epsilon0, n), SubsampledShuffle(epsilon0, n, min(k, n))):
        assert rdp("lower", event, alpha) <= rdp("lower", event, alpha + 1) * (1 + 1e-9)
    event = Shuffle(epsilon0, n)
    assert rdp("numeric", event, alpha) <= rdp("numeric", event, alpha + 1) * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(losses, st.integers(1, 300), st.integers(2, 40), st.data())
def test_neither_shuffling_nor_sampling_hurts(epsilon0, n, alpha, data):
    k = data.draw(st.integers(1, n))
    for event in (
        Shuffle(epsilon0, n),
        SubsampledShuffle(epsilon0, n, k),
        SelfSampledShuffle(epsilon0, n, k / n),
    ):
        for bound in rdp_bounds():
            if type(event) in bound.events:
                value = capped(bound, event, alpha)
                assert 0.0 <= value <= cap_rdp(event, alpha) <= epsilon0


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 3.0), st.integers(1, 100), st.integers(1, 10_000), st.integers(2, 40))
def test_rarer_sampling_costs_less(epsilon0, k, more, alpha):
    """At a fixed number of messages; at a fixed number of clients more messages may cost less."""
    rare, often = (SubsampledShuffle(epsilon0, n, k) for n in (k + more, k))
    for name in ("upper", "lower", "wbk", "wbk_naive", "wbk_clones", "convex"):
        assert rdp(name, rare, alpha) <= rdp(name, often, alpha) * (1 + 1e-9)


def test_sampling_everyone_is_not_sampling():
    everyone, event = SubsampledShuffle(1.0, 50, 50), Shuffle(1.0, 50)
    for alpha in (2, 5, 20):
        assert rdp("lower", everyone, alpha) == pytest.approx(rdp("lower", event, alpha), rel=1e-13)
        least = min(rdp("numeric", event, alpha), rdp("clones", event, alpha))
        assert rdp("convex", everyone, alpha) == pytest.approx(least, rel=1e-13)
        assert rdp("upper", everyone, alpha) > rdp("upper1", event, alpha)


EXTREMES = [
    event
    for e0 in (0.0, 1e-4, 1.0, 10.0)
    for event in (
        *(Shuffle(e0, n) for n in (1, 2, 1000, 10**7)),
        *(SubsampledShuffle(e0, n, k) for n, k in ((1, 1), (10**7, 1), (10**7, 10**6))),
        *(SelfSampledShuffle(e0, n, q) for n, q in ((1, 1.0), (10**7, 1e-6), (10**4, 1.0))),
        ev.CldpRound(e0, 10**6, 10, 1000, 3),
        ev.MultiMessageShuffle((e0, e0 / 2), 1000),
        ev.LaplaceRelease(e0),
    )
] + [ev.GaussianRelease(1e-3), ev.SubsampledGaussian(0.3, 1.0), ev.SubsampledGaussian(50.0, 1e-6)]


@pytest.mark.parametrize("event", EXTREMES, ids=str)
def test_no_range_overflows_or_warns(event):
    for bound in rdp_bounds():
        if type(event) not in bound.events:
            continue
        for alpha in (2, 400, 100_000):
            if alpha == 100_000 and bound.name in ("clones", "poisson_mixture"):
                continue  # right, but slow
            try:
                value = bound.rdp(event, alpha)
            except NotApplicable:
                continue
            assert math.isfinite(value) and value >= 0.0, (bound.name, alpha)
            if getattr(event, "epsilon0", 1.0) == 0.0:
                assert capped(bound, event, alpha) == 0.0


def test_central_noise_by_quadrature():
    from scipy.integrate import quad

    epsilon, sigma, q = 0.7, 1.3, 0.2
    for alpha in (2, 7):

        def laplace(x, a=alpha):
            p, r = (0.5 * epsilon * math.exp(-epsilon * abs(x - c)) for c in (0, 1))
            return p**a * r ** (1 - a)

        moment = sum(quad(laplace, *ends)[0] for ends in ((-80, 0), (0, 1), (1, 80)))
        found = rdp("laplace", ev.LaplaceRelease(epsilon), alpha)
        assert found == pytest.approx(math.log(moment) / (alpha - 1), rel=1e-7)

        def gauss(x, a=alpha):
            base = math.exp(-(x**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
            return base * (1 - q + q * math.exp((2 * x - 1) / (2 * sigma**2))) ** a

        moment = quad(gauss, -40, 60, points=(0, alpha))[0]
        found = rdp("subsampled_gaussian", ev.SubsampledGaussian(sigma, q), alpha)
        assert found == pytest.approx(math.log(moment) / (alpha - 1), rel=1e-7)
    whole = rdp("subsampled_gaussian", ev.SubsampledGaussian(sigma, 1.0), 5)
    assert whole == pytest.approx(rdp("gaussian", ev.GaussianRelease(sigma), 5), rel=1e-12)
