"""What servers and clients do with gradients: optimizers, projections, schedules, FedProx."""

import math

import numpy as np
import pytest

from raydp_sim.datasets.labelled import Labelled
from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.metrics import streams
from raydp_sim.random import Stream
from raydp_sim.run.play import run
from raydp_sim.scenario import parse, setting_of
from raydp_sim.tasks.base import Ask, Setting
from raydp_sim.tasks.learning.fedavg import FedAvg
from raydp_sim.tasks.learning.optimizers import FedAdam, Sgd
from raydp_sim.tasks.learning.projections import Ball, Box, Cross, Everywhere
from raydp_sim.tasks.learning.schedules import Piecewise

GRADIENTS = np.random.default_rng(1).normal(size=(6, 5))


def walked(optimizer, rate):
    """Return parameters after all gradients, from 0."""
    theta, memory = np.zeros(5), optimizer.init(5)
    for t, gradient in enumerate(GRADIENTS, start=1):
        move, memory = optimizer.move(gradient, t, memory)
        theta = theta - rate * move
    return theta


def torchs(make_optimizer):
    torch = pytest.importorskip("torch")
    theta = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    optimizer = make_optimizer(torch, [theta])
    for gradient in GRADIENTS:
        theta.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
    return theta.detach().numpy()


def test_moves_are_those_of_the_usual_optimizers():
    plain = torchs(lambda torch, theta: torch.optim.SGD(theta, lr=0.3))
    np.testing.assert_allclose(walked(Sgd(), 0.3), plain, rtol=1e-12)
    heavy = torchs(lambda torch, theta: torch.optim.SGD(theta, lr=0.3, momentum=0.8))
    np.testing.assert_allclose(walked(Sgd(momentum=0.8), 0.3), heavy, rtol=1e-12)
    options = {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-3}
    adam = torchs(lambda torch, theta: torch.optim.Adam(theta, **options))
    np.testing.assert_allclose(walked(FedAdam(), 0.1), adam, rtol=1e-12)


def test_momentum_is_off_unless_asked_for():
    assert Sgd().init(5) == {} and np.array_equal(walked(Sgd(), 1.0), -GRADIENTS.sum(axis=0))


@pytest.mark.parametrize(
    ("where", "size"),
    [
        (Ball(radius=1.5), lambda x: np.linalg.norm(x)),
        (Box(radius=0.4), lambda x: np.abs(x).max()),
        (Cross(radius=1.1), lambda x: np.abs(x).sum()),
    ],
    ids=lambda part: getattr(part, "kind", ""),
)
def test_projections_are_the_nearest_points(where, size):
    """(x - Px) makes no acute angle with (y - Px) for any y of the set, which only Px has."""
    random = np.random.default_rng(3)
    inside = random.normal(size=(300, 5))
    inside *= where.radius * random.random((300, 1)) / np.array([[size(row)] for row in inside])
    corners = np.vstack([np.eye(5), -np.eye(5), np.sign(inside)])
    corners *= where.radius / np.array([[size(row)] for row in corners])
    others = np.vstack([inside, corners])
    for row in random.normal(size=(50, 5)):
        found = where.nearest(row)
        assert size(found) <= where.radius * (1.0 + 1e-12)
        assert ((others - found) @ (row - found) <= 1e-9).all()
    for row in inside[:20]:
        assert np.array_equal(where.nearest(row), row)
    apart = max(np.linalg.norm(a - b) for a in others for b in others)
    assert apart <= where.diameter(5) * (1.0 + 1e-12) and apart > 0.99 * where.diameter(5)


def test_everywhere_is_no_set_and_has_no_diameter():
    row = np.array([1e9, -3.0])
    assert Everywhere().nearest(row) is row and Everywhere().diameter(2) == math.inf


def test_schedules_that_do_not_add_up_are_refused():
    for fields in ({"values": [1.0, 2.0], "until": []}, {"values": [1.0] * 3, "until": [5, 5]}):
        with pytest.raises(ValueError, match=r"ends|ascend"):
            Piecewise(**fields)


def test_local_steps_of_fedprox_are_pulled_back_to_the_common_model():
    """Steps of one client worked out by hand: softmax regression, mu/2 |theta - common|^2."""
    features = np.array([[0.2], [0.9], [0.5]], np.float32)
    labels = np.array([0, 1, 1])
    data = Labelled(features, labels, np.arange(3).reshape(1, 3), np.full(1, 3))
    common = np.array([0.3, -0.2, 0.1, 0.4], np.float32)
    radius = {"radius": 9.0, "on_out_of_range": "clip"}
    mechanism = make("central-gaussian", dimension=4, epsilon=1.0, delta=1e-6, **radius)
    setting = Setting(mechanism, 1, (3, 1), 1e-6, 2)
    told = {"theta": common, "rounds": np.asarray(0), "clip": np.asarray(9.0)}
    stream = Stream(0).clients(np.zeros(1, np.uint32))
    for weight in (0.0, 0.7):
        task = FedAvg(steps=4, local_step_size=0.5, proximal=weight)
        randomizer = Randomizer(mechanism)
        answer = task.client(setting, Ask(mechanism, told), data, {}, None, randomizer, stream)
        theta = common.astype(np.float64)
        for _ in range(4):
            logits = features.astype(np.float64) * theta[:2] + theta[2:]
            slopes = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            slopes[np.arange(3), labels] -= 1.0
            gradient = np.concatenate([(slopes * features).mean(axis=0), slopes.mean(axis=0)])
            theta = theta - 0.5 * (gradient + weight * (theta - common))
        np.testing.assert_allclose(answer.values[0], theta - common, rtol=1e-4, atol=1e-6)


def test_step_sizes_count_rounds_in_which_somebody_came(tmp_path):
    scenario = parse(
        {
            "name": "rare",
            "seed": 3,
            "population": {
                "clients": 120,
                "data": {"kind": "synthetic-digits", "n": 120, "side": 4, "test": 20},
            },
            "participation": {"kind": "self", "probability": 0.004},
            "mechanism": {
                "kind": "rinf",
                "radius": 0.5,
                "epsilon_local": 2.0,
                "on_out_of_range": "clip",
            },
            "task": {
                "kind": "cldp-sgd",
                "rounds": 15,
                "evaluate_every": 1,
                "step_size": {"kind": "inverse-root", "diameter": 1.0, "gradient": 10.0},
            },
            "placement": {"backend": "inline"},
        }
    )
    run(scenario, out=tmp_path / "run")
    rows = streams.read(tmp_path / "run" / "metrics", "learning").to_pylist()
    assert 2 < len(rows) < 15
    for number, row in enumerate(rows, start=1):
        assert row["round"] == number
        assert row["step_size"] == pytest.approx(0.1 / math.sqrt(number))


def in_a_ball(radius):
    data = {"kind": "synthetic-digits", "n": 20, "side": 16, "test": 20}
    ball = {"kind": "l2-ball", "radius": radius}
    clipped = {"radius": 0.5, "epsilon_local": 2.0, "on_out_of_range": "clip"}
    return parse(
        {
            "name": "ball",
            "population": {"clients": 20, "data": data},
            "mechanism": {"kind": "rinf", **clipped},
            "task": {"kind": "cldp-sgd", "model": {"kind": "lenet5"}, "projection": ball},
        }
    )


def test_a_first_model_outside_of_the_set_is_projected_and_a_bad_set_refused():
    made = in_a_ball(0.1)
    setting = setting_of(made)
    assert np.linalg.norm(made.task.first(setting)) > 1.0
    assert np.linalg.norm(made.task.init(setting)["theta"]) == pytest.approx(0.1, rel=1e-6)
    with pytest.raises(InputError, match=r"task\.projection.*radius"):
        in_a_ball(0)
