"""What is special about the privacy blanket: its law, its worst value, its growth with n."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.curves.variation import blanket_of, variation_epsilon
from raydp_sim.privacy.events import Shuffle
from raydp_sim.scenario import bound_mechanism
from raydp_sim.scenario.accounting import planned
from tests.conftest import scenario

from .support import exact_moments, losses


def blanket(epsilon, steps, radius=0.5, **more):
    return make("privacy-blanket", epsilon_local=epsilon, radius=radius, steps=steps, **more)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_loss_is_that_of_the_paper_and_no_pair_exceeds_it(epsilon, steps):
    """log(1 + (1 - gamma)(k + 1) / gamma), over all pairs of a grid finer than the points."""
    made = blanket(epsilon, steps)
    gamma = made.gamma
    stated = math.log1p((1.0 - gamma) * (steps + 1) / gamma)
    assert stated == pytest.approx(epsilon, rel=1e-9)
    values = np.linspace(-0.5, 0.5, 4 * steps + 1)[:, None]
    pairs = losses(made.laws(values))
    assert pairs.max() <= made.event().epsilon
    assert pairs[0, -1] == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 4])
def test_every_law_is_a_mixture_of_randomized_response(steps):
    """What the shuffle bounds of krr rest on: the law of x is the rounding of x, then krr."""
    made = blanket(1.5, steps)
    p = math.exp(1.5)
    response = (np.full((steps + 1, steps + 1), 1.0) + (p - 1.0) * np.eye(steps + 1)) / (p + steps)
    values = np.linspace(-0.5, 0.5, 23)[:, None]
    t = (values[:, 0] + 0.5) * steps
    rounding = np.maximum(0.0, 1.0 - np.abs(t[:, None] - np.arange(steps + 1)))
    assert made.laws(values)[0] == pytest.approx(rounding @ response, abs=1e-12)
    mass = blanket_of(made.randomizer(), 1.5, made.alphabet()).mass
    assert mass == pytest.approx(made.gamma, rel=1e-9)


def test_the_decoder_is_the_papers():
    """(y/k - gamma/2) / (1 - gamma) on [0, 1], for each point y."""
    made = blanket(2.0, 5, radius=0.5)
    for symbol in range(6):
        counts = made.zero()
        counts[0, symbol] = 1
        z = (symbol / 5 - made.gamma / 2) / (1 - made.gamma)
        assert made.decode(counts, None)[0] == pytest.approx(z - 0.5)


@pytest.mark.parametrize("epsilon", [0.1, 2.0, 4.0, 6.0, 12.0])
@pytest.mark.parametrize("steps", [1, 2, 5, 40])
def test_the_worst_error_is_the_largest_of_a_fine_grid(epsilon, steps):
    made = blanket(epsilon, steps, radius=2.0)
    values = np.linspace(-2.0, 2.0, 20_001)[:, None]
    errors = made.mse(values)
    assert errors.max() <= made.worst_mse() * (1 + 1e-12)
    assert errors.max() >= made.worst_mse() * (1 - 1e-4)
    _, variance = exact_moments(made, values[::500])
    assert variance == pytest.approx(errors[::500], rel=1e-9)


def test_the_worst_value_may_lie_between_two_points():
    made = blanket(12.0, 5, radius=2.0)
    assert made.worst_mse() > 1.05 * made.mse(np.linspace(-2.0, 2.0, 6)[:, None]).max()


def test_at_a_fixed_central_target_the_error_of_the_sum_grows_like_the_cube_root():
    """Exact accounting and exact errors: gamma = 43 k / n meets (1, 1e-6) for every n, 41 k / n for
    none, and the sum's error over n^(1/3) is the same within 1%."""

    def made(n, factor):
        k = round(n ** (1 / 3))
        gamma = factor * k / n
        epsilon = math.log1p((1 - gamma) * (k + 1) / gamma)
        mechanism = make("privacy-blanket", epsilon_local=epsilon, radius=0.5, clients=n)
        assert mechanism.k == k
        return mechanism

    scaled = []
    for n in (512_000, 4_096_000, 32_768_000):
        for factor, enough in ((43.0, True), (41.0, False)):
            mechanism = made(n, factor)
            loss = mechanism.event().epsilon
            central = variation_epsilon("krr", loss, n, 1e-6, mechanism.alphabet())
            assert (central <= 1.0) == enough
        scaled.append(n * made(n, 43.0).worst_mse() / n ** (1 / 3))
    assert max(scaled) <= 1.01 * min(scaled)
    assert scaled[-1] == pytest.approx(43.0 / 3.0 + 0.25, rel=0.01)


def test_a_target_of_the_run_is_met_by_a_larger_local_loss():
    base = scenario(
        rounds=1,
        population={"clients": 1000, "data": {"kind": "gaussian", "dimension": 1, "clip": 0.5}},
        mechanism={
            "kind": "privacy-blanket",
            "radius": 0.5,
            "target": {"epsilon": 1.0, "delta": 1e-6},
        },
    )
    mechanism = bound_mechanism(base)
    assert mechanism.k == 10 and mechanism.epsilon_local > 2.0
    assert 0.99 < planned(base, mechanism) <= 1.0
    # k-RR's own bound on what is really drawn, asked for by itself.
    round_ = Shuffle(mechanism.event().epsilon, 1000, "krr", mechanism.alphabet())
    assert find_run("pld-law").epsilon([(round_, 1)], 1e-6).epsilon <= 1.0


@pytest.mark.parametrize(("clients", "steps"), [(1, 1), (8, 2), (9, 3), (27, 3), (10**6, 100)])
def test_the_usual_number_of_steps_is_the_cube_root_rounded_up(clients, steps):
    assert make("privacy-blanket", epsilon_local=1.0, radius=1.0, clients=clients).k == steps


def test_what_cannot_be_is_refused():
    with pytest.raises(ValidationError, match="dimension is 2; 'privacy-blanket' takes one number"):
        blanket(1.0, 3, dimension=2)
    with pytest.raises(InputError, match="give steps or clients"):
        _ = make("privacy-blanket", epsilon_local=1.0, radius=1.0).bits
    assert math.isinf(blanket(25.5, 3).event().epsilon)
