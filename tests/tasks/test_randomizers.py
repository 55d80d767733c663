"""Every registered mechanism as the randomizer of CLDP-SGD: it trains, or is refused by name."""

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.metrics import streams
from raydp_sim.run.play import run
from raydp_sim.scenario import parse

# Of bits, categories, votes or one number, for which a gradient is none; and noise inside steps.
REFUSED = {
    *("2rr", "darrm", "gaussian-steps", "gnmax", "hadamard-bit", "hadamard-cascade"),
    *("hadamard-response", "krr", "ldp-rec", "privacy-blanket", "rappor", "rbin"),
    *("recoverable-hadamard", "split-and-mix", "user-range"),
}


def scenario(kind):
    cls = MECHANISMS.kinds[kind]
    own = {"kind": kind, **cls.examples[0], "on_out_of_range": "clip"}
    own = {name: value for name, value in own.items() if name not in ("dimension", "clients")}
    return {
        "name": "randomizers",
        "seed": 3,
        "trust": "central" if cls.where == "aggregator" else "shuffle",
        "population": {
            "clients": 12,
            "data": {"kind": "synthetic-digits", "n": 12, "side": 4, "classes": 3, "test": 6},
        },
        "task": {"kind": "cldp-sgd", "rounds": 1, "step_size": 1e-3},
        "mechanism": own,
        "privacy": {"delta": 1e-3, "guarantee": "none" if cls.guarantee == "none" else "required"},
        "placement": {"backend": "inline"},
    }


@pytest.mark.parametrize("kind", sorted(set(MECHANISMS.kinds) - REFUSED))
def test_a_mechanism_of_a_ball_trains(kind, tmp_path):
    made = parse(scenario(kind))
    found = run(made, out=tmp_path / "run").summary
    none = MECHANISMS.kinds[kind].guarantee == "none"
    assert np.isinf(found["privacy"]["epsilon"]) == none and found["privacy"]["epsilon"] > 0.0
    (row,) = streams.read(tmp_path / "run" / "metrics", "training").to_pylist()
    assert row["participants"] == 12 and row["training_loss"] == pytest.approx(
        np.log(3.0), abs=1e-4
    )
    with np.load(tmp_path / "run" / "model" / "last.npz") as last:
        moved = np.concatenate([last[name].ravel() for name in last.files])
    assert np.isfinite(moved).all() and moved.any()


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_a_mechanism_of_anything_else_is_refused_by_field(kind):
    with pytest.raises(InputError, match=r"mechanism\.(kind|dimension) is "):
        parse(scenario(kind))
