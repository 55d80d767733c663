"""What tests share: small scenarios, one Ray for the whole session, and comparing two runs."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

from raydp_sim.metrics import streams
from raydp_sim.privacy import store
from raydp_sim.scenario import Scenario, parse

LINF = {"kind": "linf", "radius": 1.0, "epsilon_local": 2.0, "coordinates": 3, "levels": 2}


def scenario(clients=200, rounds=4, **sections) -> Scenario:
    """A small scenario; sections given by name replace the defaults."""
    document = {
        "name": "small",
        "seed": 11,
        "population": {
            "clients": clients,
            "data": {"kind": "gaussian", "dimension": 6, "clip": 1.0},
        },
        "task": {"kind": "mean", "rounds": rounds},
        "mechanism": LINF,
        "placement": {"backend": "inline"},
    }
    return parse({**document, **sections})


def with_placement(base: Scenario, shufflers: int = 1, **placement) -> Scenario:
    """The same scenario, placed otherwise."""
    document = base.document()
    document["placement"] |= placement
    document["shuffle"]["shufflers"] = shufflers
    return parse(document)


def outcome(folder: Path):
    """Everything that has to be identical between two runs of one scenario."""
    folder = Path(folder)
    (checkpoint,) = folder.glob("checkpoints/*.npz")
    with np.load(checkpoint) as arrays:
        final = {name: arrays[name].tobytes() for name in arrays.files}
    return {
        "releases": streams.read(folder / "metrics", "releases"),
        "withheld": streams.read(folder / "metrics", "withheld"),
        "ledger": store.read(folder / "ledger"),
        "final": (checkpoint.name, final),
    }


def assert_identical(one: Path, other: Path) -> None:
    first, second = outcome(one), outcome(other)
    for name in ("releases", "withheld", "ledger"):
        assert first[name].equals(second[name]), name
    assert first["final"] == second["final"]


@pytest.fixture(scope="session")
def ray_session():
    """One private Ray for all tests that need it; runs inside the session use it."""
    from raydp_sim.actors.cluster import connected

    with contextlib.ExitStack() as stack:
        stack.enter_context(connected(None, timeout=120))
        yield
