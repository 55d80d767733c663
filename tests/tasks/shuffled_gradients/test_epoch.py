"""Epochs without noise against known numbers, and maps against what they minimise."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from raydp_sim.errors import InputError
from raydp_sim.tasks.shuffled_gradients import losses, regularisers
from raydp_sim.tasks.shuffled_gradients.epoch import steps
from raydp_sim.tasks.shuffled_gradients.plan import epochs

Floats = NDArray[np.float64]


def played(algorithm: str, share: float) -> Floats:
    i, j = np.ogrid[:6, :3]
    private, public = np.sin(1.0 + i + 2 * j), np.cos(1.0 + 2 * i + j)
    none, x = np.zeros(6), np.zeros(3)
    for epoch in epochs(algorithm, 4, 6, share):  # type: ignore[arg-type]
        use = np.arange(epoch.private)
        x = steps("mean", x, private, none, use, 0.1, 1.0, None)
        x = steps("mean", x, public, none, np.arange(6 - epoch.private), 0.1, 1.0, None)
        x = regularisers.prox("ball", 10.0, x, 0.1, 6)
    return x


@pytest.mark.parametrize(
    ("algorithm", "final"),
    [
        ("private", (-0.0725939235, 0.0032253869, 0.0699094544)),
        ("interleaved", (0.2543342863, -0.2790674596, -0.0939922531)),
        ("priv-pub", (-0.0687444991, -0.0237356835, 0.0420926917)),
        ("pub-priv", (-0.0662263247, -0.0095886645, 0.0564828079)),
    ],
)
def test_the_fixture_to_all_digits(algorithm: str, final: tuple[float, ...]) -> None:
    np.testing.assert_allclose(played(algorithm, 0.5), final, atol=5.1e-11)


@pytest.mark.parametrize("loss", ["mean", "ridge", "logistic"])
def test_gradients_are_those_of_the_values_and_no_rougher_than_stated(loss: str) -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(5, 4))
    targets = rng.integers(0, 2, 5).astype(float)
    smooth = losses.smoothness(loss, features)  # type: ignore[arg-type]
    for record in range(5):
        row, target = features[record : record + 1], targets[record : record + 1]
        x, y = rng.normal(size=(2, 4))
        one, other = (
            losses.gradient(loss, point, row[0], float(target[0]))  # type: ignore[arg-type]
            for point in (x, y)
        )
        numeric = [
            (
                losses.values(loss, x + h, row, target)[0]  # type: ignore[arg-type]
                - losses.values(loss, x - h, row, target)[0]  # type: ignore[arg-type]
            )
            / 2e-6
            for h in 1e-6 * np.eye(4)
        ]
        np.testing.assert_allclose(one, numeric, atol=1e-7)
        apart = np.linalg.norm(one - other) / np.linalg.norm(x - y)
        assert apart <= smooth[record] * (1.0 + 1e-9)


@pytest.mark.parametrize("loss", ["mean", "ridge", "logistic"])
def test_clipped_steps_do_not_expand(loss: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(400):
        row = rng.normal(size=4)
        target = float(rng.integers(0, 2))
        eta = 2.0 / float(losses.smoothness(loss, row[None])[0])  # type: ignore[arg-type]
        x, y = 3.0 * rng.normal(size=(2, 4))
        after = [
            steps(loss, p, row[None], np.array([target]), np.array([0]), eta, 0.5, None)  # type: ignore[arg-type]
            for p in (x, y)
        ]
        assert np.linalg.norm(after[0] - after[1]) <= np.linalg.norm(x - y) * (1.0 + 1e-12)


@pytest.mark.parametrize("kind", ["ball", "l2", "l1"])
def test_maps_minimise_what_they_should(kind: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=3)
    eta, records, weight = 0.1, 7, 0.5
    found = regularisers.prox(kind, weight, x, eta, records)  # type: ignore[arg-type]

    def cost(z: Floats) -> float:
        if kind == "ball":
            return float(np.square(z - x).sum()) / (2 * eta)
        psi = regularisers.value(kind, weight, z)  # type: ignore[arg-type]
        return records * psi + float(np.square(z - x).sum()) / (2 * eta)

    limits = [{"type": "ineq", "fun": lambda z: weight**2 - float(z @ z)}] if kind == "ball" else []
    best = minimize(cost, found, constraints=limits, method="SLSQP" if limits else "Nelder-Mead")
    assert cost(found) <= best.fun + 1e-8
    assert np.isfinite(regularisers.value(kind, weight, found))  # type: ignore[arg-type]


def test_an_epoch_draws_on_the_noise_it_is_given() -> None:
    features = np.zeros((4, 2))
    noise = np.arange(8.0).reshape(4, 2)
    x = steps("mean", np.zeros(2), features, np.zeros(4), np.arange(4), 1.0, np.inf, noise)
    np.testing.assert_allclose(x, -noise[-1])


def test_bad_records_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="loss is 'hinge'"):
        losses.check_records("hinge", [[1.0]], [1.0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="labels 0 and 1"):
        losses.check_records("logistic", [[1.0]], [-1.0])
    with pytest.raises(InputError, match="features"):
        losses.check_records("mean", [[float("nan")]], None)
    with pytest.raises(InputError, match="targets"):
        losses.check_records("ridge", [[1.0]], [1.0, 2.0])
    with pytest.raises(InputError, match="regulariser"):
        regularisers.check_regulariser("l0", 1.0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="weight is 0"):
        regularisers.check_regulariser("l1", 0.0)
