"""Rounds of noisy local steps against the algorithm, written out sample by sample in doubles."""

import numpy as np
import pytest
from scipy.special import log_softmax

from raydp_sim.mechanisms.gaussian_steps import GaussianSteps
from raydp_sim.metrics import streams
from raydp_sim.run.play import run
from raydp_sim.scenario import parse

CLIENTS, ROUNDS, STEPS, RADIUS = 4, 3, 2, 0.05
NOISE = {"kind": "gaussian-steps", "radius": RADIUS, "steps": STEPS, "sigma": 0.02}
PSI = {"scalar_radius": 0.3, "scalar_sigma": 0.1}


def scenario(task, mechanism):
    return parse(
        {
            "name": "steps",
            "seed": 6,
            "trust": "local",
            "task": {"rounds": ROUNDS, **task},
            "population": {
                "clients": CLIENTS,
                "data": {"kind": "synthetic-digits", "n": 20, "side": 4, "classes": 3, "test": 9},
            },
            "mechanism": mechanism,
            "placement": {"backend": "inline"},
        }
    )


def noise_of(client, part, step, width):
    """Noise that the test knows: the same in every round, another for every client and step."""
    return 0.02 * np.random.default_rng((client, part, step)).normal(size=width)


@pytest.fixture
def known_noise(monkeypatch):
    def noisy(self, part, step, values, stream):
        width = values.shape[1]
        return values + [noise_of(int(each), part, step, width) for each in stream.ids]

    monkeypatch.setattr(GaussianSteps, "noisy", noisy)


def held(made):
    """The samples of every client."""
    data = made.population.hold(np.arange(CLIENTS, dtype=np.uint32), made.stream(0))
    every = data.take(np.tile(np.arange(data.index.shape[1]), (CLIENTS, 1)))
    features = every.features.reshape(CLIENTS, -1, 16).astype(np.float64)
    return features, every.labels


def predictions(theta, x):
    return log_softmax(x @ theta[:48].reshape(3, 16).T + theta[48:], axis=1)


def cross_entropy(theta, x, y):
    return -predictions(theta, x)[np.arange(len(y)), y]


def apart(p, q, x):
    """KL of the predictions of parameters p from those of q, sample by sample."""
    p, q = predictions(p, x), predictions(q, x)
    return (np.exp(p) * (p - q)).sum(axis=1)


def slope(function, at, step=1e-6):
    """A gradient by central differences."""
    out = np.empty_like(at)
    for place in range(len(at)):
        move = np.zeros_like(at)
        move[place] = step
        out[place] = (function(at + move) - function(at - move)) / (2.0 * step)
    return out


def clipped(vector, most):
    return vector / max(1.0, np.linalg.norm(vector) / most)


@pytest.mark.parametrize("divergence", ["forward", "reverse"])
@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_adaped_is_the_corrected_algorithm(divergence, loss, tmp_path, known_noise):
    """000 Algorithm 4.4.1: theta; mu at the new theta; psi at the new theta and the new mu."""
    sizes, least = (0.4, 1.5, 0.6), 0.75
    task = {
        "kind": "adaped",
        "step_sizes": list(sizes),
        "psi": 0.9,
        "psi_least": least,
        "divergence": divergence,
        "loss": loss,
        "keep_personal": True,
    }
    made = scenario(task, {**NOISE, **PSI})
    run(made, out=tmp_path / "run")
    features, labels = held(made)
    every = np.mean if loss == "mean" else np.sum

    def between(theta, mu, x):
        pair = (mu, theta) if divergence == "forward" else (theta, mu)
        return apart(*pair, x).mean()

    theta, alone = np.zeros((CLIENTS, 51)), np.zeros((CLIENTS, 51))
    mu, psi, floored, psis = np.zeros(51), 0.9, 0, []
    for _ in range(ROUNDS):
        mus, own_psis = [], []
        for client, (x, y) in enumerate(zip(features, labels, strict=True)):
            own, scale = mu.copy(), psi
            for step in range(STEPS):

                def loss_of(t, own=own, scale=scale, x=x, y=y):
                    return every(cross_entropy(t, x, y)) + between(t, own, x) / (2.0 * scale)

                theta[client] -= sizes[0] * slope(loss_of, theta[client])
                pull = slope(lambda m, t=theta[client], x=x: between(t, m, x), own) / (2 * scale)
                own = own - sizes[1] * (clipped(pull, RADIUS) + noise_of(client, 0, step, 51))
                turn = 1 / (2 * scale) - between(theta[client], own, x) / (2 * scale**2)
                turn = np.clip(turn, -0.3, 0.3) + noise_of(client, 1, step, 1)[0]
                floored += scale - sizes[2] * turn <= least
                scale = max(least, scale - sizes[2] * turn)
                alone[client] -= sizes[0] * slope(
                    lambda t, x=x, y=y: every(cross_entropy(t, x, y)), alone[client]
                )
            mus.append(own)
            own_psis.append(scale)
        # Those after the last step; the source averages those before it.
        mu, psi = np.mean(mus, axis=0), float(np.mean(own_psis))
        psis.append(psi)
    with np.load(tmp_path / "run" / "model" / "last.npz") as last:
        found = np.concatenate([last["weight"].ravel(), last["bias"]])
    np.testing.assert_allclose(found, mu, atol=2e-6)
    with np.load(tmp_path / "run" / "model" / "personal.npz") as own:
        for client in range(CLIENTS):
            kept = np.concatenate([own["weight"][client].ravel(), own["bias"][client]])
            np.testing.assert_allclose(kept, theta[client], atol=5e-6)
    rows = streams.read(tmp_path / "run" / "metrics", "training").to_pylist()
    np.testing.assert_allclose([row["psi"] for row in rows], psis, rtol=1e-6)
    assert floored and sum(row["psi_at_least"] for row in rows) * CLIENTS * STEPS == floored
    # The common model pulls, or the test would not see it.
    assert np.abs(theta - alone).max() > 1e-3


def test_dp_fedavg_averages_where_noisy_steps_from_the_common_model_lead(tmp_path, known_noise):
    made = scenario({"kind": "dp-fedavg", "step_size": 0.7}, NOISE)
    run(made, out=tmp_path / "run")
    features, labels = held(made)
    common = np.zeros(51)
    for _ in range(ROUNDS):
        ends = []
        for client, (x, y) in enumerate(zip(features, labels, strict=True)):
            own = common.copy()
            for step in range(STEPS):
                gradient = slope(lambda t, x=x, y=y: cross_entropy(t, x, y).mean(), own)
                own -= 0.7 * (clipped(gradient, RADIUS) + noise_of(client, 0, step, 51))
            ends.append(own)
        common = np.mean(ends, axis=0)
    with np.load(tmp_path / "run" / "model" / "last.npz") as last:
        found = np.concatenate([last["weight"].ravel(), last["bias"]])
    np.testing.assert_allclose(found, common, atol=2e-6)
    (fraction,) = {
        row["fraction_clipped"]
        for row in streams.read(tmp_path / "run" / "metrics", "training").to_pylist()
    }
    assert fraction == 1.0
