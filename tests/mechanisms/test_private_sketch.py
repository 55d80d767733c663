"""Randomized sketches: the loss given every seed, the error and its two parts, and clipping."""

import math

import numpy as np
import pytest

from raydp_sim.check.enumeration import losses
from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.private_sketch import PrivateSketch
from raydp_sim.mechanisms.sketching.joint import Joint
from raydp_sim.privacy.names import parameter_of
from raydp_sim.random import Stream
from raydp_sim.run import run
from raydp_sim.scenario import setting_of
from raydp_sim.tasks.sketching.decoding import decoded
from tests.conftest import scenario

SMALL = {"epsilon_local": 2.0, "dimension": 4, "kept": 2, "radius": 1.0}


def grid(dimension):
    """Vectors of the ball: zero, axes, diagonals, and some in between."""
    axes = np.concatenate([np.eye(dimension), -np.eye(dimension)])
    corners = np.random.default_rng(1).choice([-1.0, 1.0], (8, dimension)) / math.sqrt(dimension)
    return np.concatenate([np.zeros((1, dimension)), axes, corners, 0.4 * axes])


@pytest.mark.parametrize("sketch", ["rand-k", "rand-proj"])
@pytest.mark.parametrize("c", ["whole", 1.0])
def test_the_loss_is_the_randomizers_whatever_the_seed(sketch, c):
    """Exact, symbol by symbol: the seed has the same law for all vectors."""
    one = make("private-sketch", sketch=sketch, inner="l2", rotated_radius=1.2, sketched_radius=c,
               **SMALL)  # fmt: skip
    x, worst = grid(4), 0.0
    for seed in range(40):
        seeds = np.full(len(x), seed, np.uint32)
        y = one._sketched(x, seeds)
        length = np.sqrt(np.square(y).sum(axis=1))
        assert (length <= 1.0 + 1e-12).all()  # rows are orthonormal
        y *= np.minimum(1.0, one.bound / np.maximum(length, 1e-12))[:, None]
        worst = max(worst, float(losses(one.randomizes.laws(y)).max()))
    assert one.event().epsilon - 0.5 < worst <= one.event().epsilon <= 2.0
    assert one.losses() == (one.event().epsilon,)  # one message, whose parts could be linked


def test_privunit_keeps_its_law_and_its_error_in_two_parts():
    one = make("private-sketch", sketch="rand-proj", **SMALL)
    assert parameter_of(one.randomizer()) == ("privunit", one.randomizes.cap.mass)
    x = grid(4)
    lengths = np.square(x).sum(axis=1)
    inner = one.randomizes.worst_mse() - 0.5 * lengths  # of E|y|^2 = k/d |x|^2
    np.testing.assert_allclose(one.mse(x), 4.0 * inner + (2.0 - 1.0) * lengths, atol=1e-12)
    assert make("private-sketch", inner="l2", rotated_radius=1.2, **SMALL).randomizer() is None


def test_the_second_moment_of_r_l2_is_the_same_for_all_it_says():
    """Of one level and centred decoder, which is what makes the error exact."""
    for k in (3, 4):
        one = make("private-sketch", inner="l2", rotated_radius=2.0, **{**SMALL, "kept": k})
        y = np.random.default_rng(2).uniform(-0.4, 0.4, (50, k))
        second = one.randomizes.mse(y) + np.square(y).sum(axis=1)
        np.testing.assert_allclose(second, one.randomizes.mse(np.zeros((1, k)))[0], rtol=1e-12)


def test_long_sketches_are_shortened_and_counted():
    tight = make("private-sketch", sketch="rand-k", sketched_radius=1.0, **SMALL)
    assert tight.bound == pytest.approx(math.sqrt(0.5))
    stream = Stream(1).clients(np.arange(3000))
    values = np.tile([1.0, 0.0, 0.0, 0.0], (3000, 1))
    # The one coordinate is sent by half of them, and is too long then: binomial, 6 deviations.
    clipped = tight.messages(values, stream).clipped
    assert abs(clipped - 1500) < 6.0 * math.sqrt(750)
    assert tight.bias and not make("private-sketch", sketch="rand-k", **SMALL).bias
    assert tight.worst_mse() == pytest.approx(
        make("private-sketch", sketch="rand-k", **SMALL).worst_mse() / 2.0
    )
    even = np.full((3000, 4), 0.5)
    assert tight.messages(even, stream).clipped == 0
    assert isinstance(tight, Joint)


@pytest.mark.parametrize("inner", ["privunit", "l2"])
@pytest.mark.parametrize("sketch", ["rand-k", "rand-proj"])
def test_alike_clients_are_decoded_together_without_bias(sketch, inner):
    """600 releases of 6 clients: the decoder is linear, so that unbiased numbers give an unbiased
    mean. Every coordinate within 6 standard errors, false alarm below 8 x 2e-9; the normaliser is
    known to 0.03 %."""
    own = {"sketch": sketch, "inner": inner, "dimension": 8, "kept": 4, "radius": 1.0}
    own |= {"rotated_radius": 2.0} if inner == "l2" else {}  # which nothing exceeds
    one = make("private-sketch", epsilon_local=8.0, **own)
    x = np.full((6, 8), 0.3) + 0.04 * np.random.default_rng(3).uniform(-1, 1, (6, 8))
    estimates = np.empty((600, 8))
    for release in range(600):
        stream = Stream(5).at("release", release).clients(np.arange(6))
        rows = one.messages(x, stream).payload[:, 0]
        estimates[release] = decoded(one, rows, "avg", None, Stream(1)).mean
    spread = estimates.std(axis=0, ddof=1) / math.sqrt(600)
    assert (np.abs(estimates.mean(axis=0) - x.mean(axis=0)) < 6.0 * spread + 1e-3).all()
    assert (spread > 1e-3).all()


@pytest.mark.parametrize("trust", ["local", "shuffle"])
def test_a_run_states_the_loss_of_its_reports(tmp_path, trust):
    own = {"kind": "private-sketch", "kept": 4, "radius": 1.5, "epsilon_local": 2.0}
    base = scenario(
        trust=trust,
        population={"clients": 400, "data": {"kind": "gaussian", "dimension": 8, "sd": 0.1}},
        task={"kind": "sketched-mean", "rounds": 2, "similarity": "one"},
        mechanism=own,
    )
    found = run(base, out=tmp_path / "run").summary
    one = setting_of(base).mechanism
    assert found["privacy"]["epsilon_local"] == one.event().epsilon <= 2.0
    assert found["communication"]["bits_per_report"] == one.bits == 32 + 4 * 32
    whole = found["privacy"]["epsilon"]
    if trust == "local":
        assert whole == pytest.approx(2.0 * one.event().epsilon)
    else:
        assert 0.0 < whole < 2.0


def test_sketch_and_privunit_take_a_sixteenth_of_the_bits_for_little_more_error():
    """Beside PrivUnit on all numbers, and R^l2, at the same loss of a report."""
    usual = {"epsilon_local": 4.0, "dimension": 1024, "radius": 1.0}
    whole = make("privunit", precision="single", **usual)
    one = make("private-sketch", sketch="rand-proj", kept=64, sketched_radius=1.25, **usual)
    sure = make("private-sketch", kept=64, **usual)
    assert (whole.bits, one.bits) == (32_768, 2_080)
    assert 1.4 < one.worst_mse() / whole.worst_mse() < 1.7
    assert sure.worst_mse() / one.worst_mse() == pytest.approx(16.0 / 1.25**2)
    few = make("l2", coordinates=2, rotated_radius=3.0, decoder="centred", **usual)
    less = make("private-sketch", kept=64, sketched_radius=1.25, inner="l2", coordinates=2,
                rotated_radius=3.0, **usual)  # fmt: skip
    # R^l2 sends few bits as it is: a sketch before it only costs.
    assert few.bits < less.bits and few.worst_mse() < less.worst_mse()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kept": 5}, "vectors have 4 numbers"),
        ({"dimension": 5, "sketch": "rand-proj"}, "no power of two"),
        ({"kept": 0}, "kept"),
        ({"epsilon_local": None}, "exactly one of epsilon_local"),
        ({"inner": "laplace"}, "inner"),
        ({"inner": "l2"}, "clients is missing"),
        ({"inner": "privunit", "coordinates": 2}, "coordinates is 2, but inner 'privunit'"),
        ({"inner": "privunit", "rotated_radius": 1.5}, "rotated_radius is 1.5, but inner"),
    ],
)
def test_bad_input_is_refused_by_name(changes, says):
    with pytest.raises((InputError, ValueError), match=says):
        one = PrivateSketch(**{**SMALL, **changes})
        one.messages(np.zeros((1, one.need_dimension())), Stream(1).clients(np.arange(1)))
