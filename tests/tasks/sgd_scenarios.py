"""What tests of CLDP-SGD and DSS-SGD play."""

import numpy as np

from raydp_sim.datasets.labelled import Labelled
from raydp_sim.models.linear import Linear
from raydp_sim.privacy.ledger import store
from raydp_sim.scenario import parse

BASE = {
    "name": "sgd",
    "seed": 3,
    "population": {
        "clients": 120,
        "data": {"kind": "synthetic-digits", "n": 120, "side": 4, "test": 50},
    },
    "participation": {"kind": "uniform", "sampled": 40},
    "mechanism": {
        "kind": "rinf",
        "radius": 0.5,
        "epsilon_local": 2.0,
        "on_out_of_range": "clip",
    },
    "task": {"kind": "cldp-sgd", "rounds": 4, "step_size": 0.3, "evaluate_every": 2},
    "privacy": {"delta": 1e-5},
    "placement": {"backend": "inline", "checkpoint_seconds": 0},
}


CLIP = {"on_out_of_range": "clip"}


def changed(**sections):
    """The base scenario with some sections' fields replaced."""
    document = {**BASE}
    for name, section in sections.items():
        known = document.get(name)
        same_kind = isinstance(section, dict) and isinstance(known, dict) and "kind" not in section
        document[name] = {**known, **section} if same_kind else section
    return parse(document)


def dealt(points: int, **more):
    """A population of 120 clients with several samples each."""
    data = {**BASE["population"]["data"], "n": 120 * points + 60, "points": points, **more}
    return {"clients": 120, "data": data}


def charges(folder):
    return [charge.shuffled for charge in store.charges(folder / "ledger", 0)]


CENTRAL = {
    "trust": "central",
    "mechanism": {
        "kind": "central-gaussian",
        "radius": 1.0,
        "epsilon": 0.5,
        "delta": 1e-6,
        "on_out_of_range": "clip",
    },
}


def tiny():
    """Three clients with two samples each, and parameters at which gradients differ."""
    pool = np.array([[0.1], [0.9], [0.4], [0.7], [0.2], [0.5]], np.float32)
    labels = np.array([0, 1, 1, 0, 0, 1])
    held = Labelled(pool, labels, np.arange(6).reshape(3, 2), np.full(3, 2))
    return held, np.array([0.3, -0.2, 0.1, 0.0], np.float32), Linear().network((1,), 2)
