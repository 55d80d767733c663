"""Laws of losses on knots: never below the profile they were made from, however composed."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from raydp_sim.privacy.composition.direct import by_squaring, compose, convolve, power, spaced
from raydp_sim.privacy.composition.fourier import _power, transform
from raydp_sim.privacy.composition.losses import LossLaw, connect
from raydp_sim.privacy.composition.pld import Round
from raydp_sim.privacy.curves.clones import clone_pair
from raydp_sim.privacy.curves.strides import stride
from raydp_sim.privacy.curves.tilted import TiltedCoins

GRID = np.linspace(-12.0, 12.0, 481)


def atoms(law: LossLaw) -> dict[float, float]:
    """All masses of a law by their loss."""
    down = {-loss: mass * math.exp(-loss) for loss, mass in zip(law.losses, law.mass, strict=True)}
    return {**dict(zip(law.losses, law.mass, strict=True)), 0.0: law.origin, **down}


def hockey_stick(masses: dict[float, float], epsilon: float, infinite: float = 0.0) -> float:
    gains = (mass * max(0.0, -math.expm1(epsilon - loss)) for loss, mass in masses.items())
    return math.fsum(gains) + infinite


def random_symmetric(seed: int) -> dict[float, float]:
    """A symmetric law of a few losses, with mass without loss."""
    draw = np.random.default_rng(seed)
    losses = np.sort(draw.uniform(0.01, 4.0, draw.integers(1, 6)))
    weight = draw.dirichlet(np.ones(len(losses) + 1))
    up = weight[1:] / (1.0 + np.exp(-losses))
    return {
        0.0: float(weight[0]),
        **dict(zip(losses.tolist(), up.tolist(), strict=True)),
        **dict(zip((-losses).tolist(), (up * np.exp(-losses)).tolist(), strict=True)),
    }


def product(one: dict[float, float], other: dict[float, float]) -> dict[float, float]:
    total: dict[float, float] = {}
    for (a, p), (b, q) in itertools.product(one.items(), other.items()):
        total[a + b] = total.get(a + b, 0.0) + p * q
    return total


def law_of(masses: dict[float, float], knots: np.ndarray) -> LossLaw:
    values = np.array([hockey_stick(masses, e) for e in (0.0, *knots)])
    return connect(knots, values)


@pytest.mark.parametrize("seed", range(20))
def test_a_law_is_never_below_the_profile_it_was_made_from(seed):
    masses = random_symmetric(seed)
    most = max(masses)
    for count in (1, 3, 40):
        law = law_of(masses, np.linspace(most / count, most, count))
        found = law.profile(GRID)
        exact = np.array([hockey_stick(masses, e) for e in GRID])
        assert (found >= exact * (1 - 1e-12) - 1e-300).all()
        listed = [hockey_stick(atoms(law), e, law.infinite) for e in GRID]
        assert found == pytest.approx(listed, rel=1e-11, abs=1e-15)


def test_a_broken_convexity_only_raises_the_profile():
    knots, values = np.array([0.5, 1.0, 1.5]), np.array([0.3, 0.2, 0.15, 0.0])
    values[2] = 0.19  # above the chord of its neighbours
    law = connect(knots, values)
    assert (law.profile(np.append(0.0, knots)) >= values * (1 - 1e-12)).all()
    assert (law.mass >= 0.0).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("rounds", [2, 3, 4])
def test_direct_composition_of_few_losses_is_exact(seed, rounds):
    masses = random_symmetric(seed)
    exact = masses
    for _ in range(rounds - 1):
        exact = product(exact, masses)
    law = law_of(masses, np.array(sorted(loss for loss in masses if loss > 0.0)))
    composed = power(law, rounds, 1e-14, 2000)
    for epsilon in np.linspace(0.0, max(exact) * 0.95, 12):
        true = hockey_stick(exact, epsilon)
        found = float(composed.profile(np.array([epsilon]))[0])
        assert true * (1 - 1e-11) <= found <= true * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("seed", range(6))
def test_direct_composition_of_many_losses_is_above_and_close(seed):
    """Few knots for many losses: within 1 % of epsilon of what a thousand knots give."""
    masses = random_symmetric(seed)
    law = law_of(masses, np.linspace(0.02, max(masses), 150))
    fine, coarse = (power(law, 6, 1e-14, count) for count in (1000, 200))
    for epsilon in np.linspace(0.5, 0.9 * 6 * max(masses), 8):
        low, high, near = (
            float(one.profile(np.array([e]))[0])
            for one, e in ((fine, epsilon), (coarse, epsilon), (fine, 0.99 * epsilon))
        )
        assert low * (1 - 1e-2) <= high <= near * 1.01 + 1e-13


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", [0.05, 1.0, 6.0])
def test_the_transform_is_never_below_the_exact_value_at_any_order(seed, order):
    """Epsilon below the window, far above it, and windows that wrap: all are charged."""
    masses = random_symmetric(seed)
    exact = masses
    for _ in range(3):
        exact = product(exact, masses)
    law = law_of(masses, np.array(sorted(loss for loss in masses if loss > 0.0)))
    composed = transform([(law, 4)], order, 1e-16)
    for epsilon in np.linspace(0.0, max(exact) * 1.01, 15):
        assert composed.delta(epsilon) >= hockey_stick(exact, epsilon) * (1 - 1e-10)


def test_losses_below_the_window_are_charged():
    rare = connect(np.array([1.0]), np.array([1e-7, 0.0]))
    composed = transform([(rare, 2)], 25.0, 1e-30)
    assert composed.losses[0] > 0.5  # the tilt moves the window away from where delta comes from
    assert composed.delta(0.0) >= 2e-7 * (1 - 1e-6)


def test_unequal_laws_are_composed_in_any_order():
    one, two = (law_of(random_symmetric(seed), np.linspace(0.1, 4.0, 60)) for seed in (3, 4))
    exact = product(random_symmetric(3), random_symmetric(4))
    for parts in ([(one, 1), (two, 1)], [(two, 1), (one, 1)]):
        found = compose(parts, 1e-14, 300).profile(np.array([1.0]))[0]
        true = hockey_stick(exact, 1.0)
        assert true <= found <= 1.02 * true


def test_an_infinite_loss_stays_in_the_account():
    law = connect(np.array([0.5, 1.0]), np.array([0.3, 0.2, 0.1]))
    assert convolve(law, law, 1e-14, 100).profile(np.array([9.0]))[0] >= 1 - 0.9**2


def test_knots_end_where_the_profile_does():
    assert spaced(lambda e: np.exp(-50.0 * e), 10.0, 1e-9, 100)[-1] < 1.0
    assert by_squaring(2, 13, lambda a, b: a * b) == 8192


@pytest.mark.parametrize("alpha", [1.5, 2.0, 7.3, 40.0])
@pytest.mark.parametrize("h", [1e-4, 0.1, 0.5, 0.9, 0.99])
def test_strided_sums_are_the_whole_sums(alpha, h):
    for m in (400.0, 2_000.0, 30_000.0):
        step = int(stride(np.array([m]), np.array([h]), alpha)[0])
        x = np.arange(m + 1)
        u = h * (2 * x - m) / m
        logs = binom.logpmf(x, m, 0.5) + alpha * np.log1p(u) + (1 - alpha) * np.log1p(-u)
        whole = np.logaddexp.reduce(logs)
        for start in range(0, step, max(1, step // 3)):
            part = np.logaddexp.reduce(logs[start::step]) + math.log(step)
            assert part == pytest.approx(whole, abs=1e-10)


def test_no_stride_where_it_would_be_wrong():
    # At large orders the sum sits at the last counts: every 25th of them says nothing.
    m, h, alpha = 10_000.0, math.tanh(3.0), 3_000.0
    x = np.arange(m + 1)
    u = h * (2 * x - m) / m
    logs = binom.logpmf(x, m, 0.5) + alpha * np.log1p(u) + (1 - alpha) * np.log1p(-u)
    wrong = np.logaddexp.reduce(logs[::12]) + math.log(12)
    assert abs(wrong - np.logaddexp.reduce(logs)) > 1e-6
    assert stride(np.array([m]), np.array([h]), alpha)[0] == 1.0


def test_a_profile_is_that_of_single_epsilons():
    pair = clone_pair(2.0, 50, math.exp(-2.0))
    epsilons = np.linspace(0.0, 2.1, 9)
    assert pair.profile(epsilons) == pytest.approx([pair.delta(e) for e in epsilons], rel=1e-12)
    part, rare = pair.significant(1e-6)
    assert 0.0 < rare <= 1e-6 and len(part.coins) < len(pair.coins)
    assert (part.profile(epsilons) + rare >= pair.profile(epsilons) * (1 - 1e-9)).all()


def test_a_sampled_round_of_one_message_is_exact():
    # One of N clients, 2RR: losses log(1 + g (e^+-e0 - 1)) and none.
    pair = TiltedCoins(np.ones(1), np.full(1, math.tanh(2.0)), np.zeros(1), 4.0)
    law, g = Round(pair, 1, 0.01).law(1e-12), 0.01
    p, q = math.exp(4.0) / (math.exp(4.0) + 1), 1 / (math.exp(4.0) + 1)
    for epsilon in (0.0, 0.1, 0.3):
        exact = max(0.0, g * p + (1 - g) * q - math.exp(epsilon) * q)
        found = float(law.profile(np.array([epsilon]))[0])
        assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-3) + 1e-12


@pytest.mark.parametrize("epsilon0", [12.0, 21.0, 24.0, 26.9])
def test_a_large_loss_keeps_its_delta(epsilon0):
    """tanh(epsilon0 / 2) has few digits left: what rounding may do is charged."""
    pair = clone_pair(epsilon0, 0, math.exp(-epsilon0))
    for below in (5e-7, 1e-3, 1.0):
        exact = -math.expm1(-below) / (1.0 + math.exp(-epsilon0))
        assert pair.delta(epsilon0 - below) >= exact * (1 - 1e-9)
    assert pair.epsilon(1e-8) >= epsilon0 - 1.1e-8


def test_powers_that_round_to_zero_are_skipped_and_no_other() -> None:
    drawn = np.random.default_rng(3).random(5000)
    base = np.minimum(np.concatenate([drawn**rate for rate in (1e-3, 1.0, 8.0, 40.0)]), 1.0)
    base[0] = 1.0
    for times in (0, 1, 2, 63, 400, 10**6):
        assert _power(base, times).tobytes() == np.power(base, times).tobytes()
