"""Bad parameters and bad values are refused by name."""

import math
from fractions import Fraction

import numpy as np
import pytest
from pydantic import ValidationError

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.base import Domain
from raydp_sim.random import Stream

BALL = {"dimension": 4, "radius": 1.0}


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        ("linf", {**BALL, "epsilon_local": 1.0, "coordinates": 5}, ("coordinates", "5", "4")),
        (
            "rbin",
            {"dimension": 4, "epsilon_local": 1.0, "coordinates": 7},
            ("coordinates", "7", "4"),
        ),
        ("l2", {**BALL, "epsilon_local": 1.0, "coordinates": 9}, ("coordinates", "9", "4")),
        (
            "l2",
            {"dimension": 5, "radius": 1.0, "epsilon_local": 1.0, "coordinates": 9},
            ("coordinates", "9", "8"),
        ),
        (
            "l2",
            {**BALL, "epsilon_local": 1.0, "coordinates": 5, "rotation": "haar"},
            ("coordinates", "5", "4"),
        ),
        ("linf", {**BALL, "epsilon_local": 1.0, "coordinates": 0}, ("coordinates",)),
        ("linf", {**BALL, "epsilon_local": 1.0, "levels": 0}, ("levels",)),
        ("linf", {**BALL, "epsilon_local": 1.0, "levels": 51}, ("levels", "50")),
        ("linf", {"dimension": 4, "epsilon_local": 1.0}, ("radius",)),
        ("linf", {"dimension": 0, "radius": 1.0, "epsilon_local": 1.0}, ("dimension",)),
        ("linf", {"dimension": 4, "radius": 0.0, "epsilon_local": 1.0}, ("radius",)),
        ("linf", {"dimension": 4, "radius": float("inf"), "epsilon_local": 1.0}, ("radius",)),
        ("linf", {**BALL, "epsilon_local": 0.0}, ("epsilon_local",)),
        ("linf", {**BALL, "epsilon_local": -1.0}, ("epsilon_local",)),
        ("linf", {**BALL, "epsilon_local": float("nan")}, ("epsilon_local",)),
        ("linf", BALL, ("epsilon_local", "target")),
        ("linf", {**BALL, "epsilon_local": 1.0, "target": {"epsilon": 1.0}}, ("target",)),
        ("linf", {**BALL, "epsilon_local": 1.0, "colour": 1}, ("colour",)),
        ("linf", {**BALL, "epsilon_local": 1.0, "decoder": "best"}, ("decoder",)),
        ("l2", {**BALL, "epsilon_local": 1.0, "beta": 1.0}, ("beta",)),
        ("l2", {**BALL, "epsilon_local": 1.0, "rotated_radius": -3.0}, ("rotated_radius",)),
        ("2rr", {"dimension": 2, "epsilon_local": 1.0}, ("dimension", "2", "rbin")),
        ("rbin", {**BALL, "epsilon_local": 1.0}, ("radius",)),
        ("laplace", {"dimension": 4, "radius": -1.0, "epsilon_local": 1.0}, ("radius",)),
        ("gaussian", {**BALL, "epsilon_local": 1.0}, ("delta_local",)),
        ("gaussian", {**BALL, "epsilon_local": 1.0, "delta_local": 1.0}, ("delta_local",)),
        ("gaussian", {**BALL, "target": {"epsilon": 1.0}}, ("target.delta is 0",)),
        (
            "gaussian",
            {**BALL, "target": {"epsilon": 1.0, "delta": 0.1}, "delta_local": 0.1},
            ("delta_local",),
        ),
        ("central-laplace", {**BALL, "epsilon_local": 1.0}, ("epsilon_local", "give epsilon")),
        ("central-laplace", BALL, ("exactly one of epsilon and target",)),
        ("central-gaussian", {**BALL, "epsilon": 1.0}, ("delta",)),
        ("central-gaussian", {**BALL, "target": {"epsilon": 1.0}}, ("target.delta is 0",)),
    ],
)
def test_bad_parameters_are_named(kind, parameters, words):
    with pytest.raises(ValidationError) as refusal:
        make(kind, **parameters)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        ("linf", [[0.0, np.nan]], ("client 7", "nan", "index 1")),
        ("linf", [[0.0, -np.inf]], ("client 7", "inf", "index 1")),
        ("l2", [[np.inf, 0.0]], ("client 7", "inf", "index 0")),
        ("laplace", [[0.0, np.nan]], ("client 7", "nan", "index 1")),
        ("linf", [[0.0, 0.0, 0.0]], ("(1, 3)", "2")),
        ("linf", [0.0, 0.0], ("(2,)", "2")),
        ("linf", [[0.0, 1.01]], ("client 7", "index 1", "radius")),
        ("l2", [[0.8, 0.8]], ("client 7", "l2 ball")),
        ("l2", [[1e200, 0.0]], ("client 7", "l2 ball")),
        ("laplace", [[0.8, 0.8]], ("client 7", "l1 ball")),
        ("rbin", [[1.0, 0.5]], ("client 7", "index 1 holds 0.5", "binary")),
        ("rbin", [[1.0, 2.0]], ("client 7", "index 1 holds 2", "binary")),
        ("rbin", [[-1.0, 0.0]], ("client 7", "index 0 holds -1", "binary")),
    ],
)
def test_bad_values_are_named(kind, values, words):
    radius = {} if kind == "rbin" else {"radius": 1.0}
    mechanism = make(kind, epsilon_local=1.0, dimension=2, clients=10, **radius)
    with pytest.raises(InputError) as refusal:
        mechanism.randomize(np.array(values), Stream(0).clients(np.array([7])))
    for word in words:
        assert word in str(refusal.value)


def test_the_dimension_must_be_known_before_use():
    with pytest.raises(InputError, match="dimension"):
        _ = make("linf", epsilon_local=1.0, radius=1.0).bits


def test_the_default_radius_of_a_rotation_needs_the_number_of_clients():
    mechanism = make("l2", epsilon_local=1.0, **BALL)
    with pytest.raises(InputError, match="clients is missing"):
        mechanism.worst_mse()
    assert mechanism.event().epsilon == 1.0


@pytest.mark.parametrize("kind,extra", [("2rr", {}), ("rbin", {"dimension": 3, "coordinates": 1})])
def test_no_loss_is_claimed_where_53_bit_draws_cannot_express_the_flip(kind, extra):
    assert make(kind, epsilon_local=24.0, **extra).event().epsilon == pytest.approx(24.0)
    assert make(kind, epsilon_local=26.0, **extra).event().epsilon == math.inf


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_huge_vector_is_clipped_to_its_direction(norm):
    """Its norm is beyond the largest double, or its square is."""
    domain = Domain(norm, 1.0, 3)
    for huge in ([1e200, -1e200, 0.0], [1e308, -1e308, 0.0]):
        clipped = domain.admit(np.array([huge, [0.1, 0.0, 0.0]]), on_out_of_range="clip")
        half = 0.5 if norm == "l1" else math.sqrt(0.5)
        assert clipped[0] == pytest.approx([half, -half, 0.0], rel=1e-12)
        assert clipped[1].tolist() == [0.1, 0.0, 0.0]
        with pytest.raises(InputError, match="client 0 is outside"):
            domain.admit(np.array([huge]))


@pytest.mark.parametrize("kind", ["priv", "r2", "rp", "duchi-linf", "r1", "rinf", "linf"])
def test_an_epsilon_beyond_all_draws_has_no_finite_loss(kind):
    power = {"power": 2.0} if kind == "rp" else {}
    mechanism = make(kind, epsilon_local=1000.0, dimension=3, radius=1.0, **power)
    assert math.isinf(mechanism.event().epsilon) and np.isfinite(mechanism.worst_mse())


@pytest.mark.parametrize("epsilon", [0.5, 12.0, 18.3, 24.87, 25.0])
@pytest.mark.parametrize("kind", ["rbin", "linf", "rinf", "r1"])
def test_no_flip_is_rarer_than_stated(kind, epsilon):
    """A bit is 1 where a multiple of 2^-53 is below a double: count those, in whole numbers."""
    radius = {} if kind == "rbin" else {"radius": 1.0}
    mechanism = make(kind, epsilon_local=epsilon, dimension=1, **radius)
    flip, gap = float(mechanism.wire.flips[0]), float(mechanism.wire.gaps[0])
    below, above = (math.ceil(Fraction(t) * 2**53) for t in (flip, flip + gap))
    assert below + above == 2**53  # what is sent as it is and what is flipped are all draws
    # The quotient is of whole numbers below 2^53, so its only rounding is that of the logarithm.
    assert math.log(above / below) <= mechanism.event().epsilon * (1.0 + 1e-15)
