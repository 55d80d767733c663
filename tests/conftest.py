"""What tests share: small scenarios, no pictures, one Ray for all, and comparing two runs."""

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest

from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import RunResult, prepare, reopen, run
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario import Scenario, parse

LINF = {"kind": "linf", "radius": 1.0, "epsilon_local": 2.0, "coordinates": 3, "levels": 2}
PLOT = RunResult.plot


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what starts Ray, so that several processes never start several of them at once."""
    for item in items:
        if item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.xdist_group("ray"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give a file to one process, which then makes its fixtures and fills its caches once."""
    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            return super()._split_scope(nodeid).split("::")[0]

    return ByFile(config, log)


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


def client_state(folder: Path):
    """The state of all clients at the last checkpoint, however they were placed."""
    run = RunDir(Path(folder))
    return run.clients(run.latest(), 0, 1 << 32) or {}


def outcome(folder: Path):
    """Everything that has to be identical between two runs of one scenario."""
    folder = Path(folder)
    (checkpoint,) = folder.glob("checkpoints/*.npz")
    final = {}
    for part in (checkpoint, *checkpoint.with_suffix(".readers").glob("*.npz")):
        with np.load(part) as arrays:
            # What has no group says how the checkpoint's files are divided, which placement does.
            final |= {name: arrays[name].tobytes() for name in arrays.files if "/" in name}
    final |= {name: column.tobytes() for name, column in client_state(folder).items()}
    # Every stream, a task's own too; only timing depends on the machine.
    written = {place.name for place in folder.glob("metrics/*")} - {"timing"}
    names = written | {"releases", "errors", "clipping", "withheld"}
    return {
        "streams": {name: streams.read(folder / "metrics", name) for name in names},
        "ledger": store.read(folder / "ledger"),
        "final": (checkpoint.name, final),
    }


def assert_identical(one: Path, other: Path) -> None:
    first, second = outcome(one), outcome(other)
    assert set(first["streams"]) == set(second["streams"])
    for name, rows in first["streams"].items():
        assert rows.equals(second["streams"][name]), name
    assert first["ledger"].equals(second["ledger"])
    assert first["final"] == second["final"]


def placed_everywhere(base: Scenario, folder: Path, stop: int = 1) -> RunResult:
    """Play a scenario in several places, and interrupted and resumed in another; all are alike.

    Returns:
        What it gives in one place.
    """
    base = with_placement(base, checkpoint_seconds=0)
    result = run(base, out=folder / "base")
    for per_actor, shufflers in ((7, 3), (31, 1)):
        out = folder / f"{per_actor}-{shufflers}"
        shufflers = shufflers if base.trust == "shuffle" else 1
        run(with_placement(base, shufflers, clients_per_actor=per_actor), out=out)
        assert_identical(folder / "base", out)
    interrupted(base, folder / "part", stop)
    made = reopen(folder / "part")
    made.scenario = with_placement(made.scenario, clients_per_actor=13)
    for _ in made.play():
        pass
    assert_identical(folder / "base", folder / "part")
    return result


def interrupted(base: Scenario, out: Path, stop: int) -> None:
    """Play a scenario until so many rows are there, and no further."""
    rows = prepare(base, out=out).play()
    for _ in range(stop):
        next(rows)
    rows.close()


@pytest.fixture(scope="package", autouse=True)
def undrawn():
    """Leave out the picture of a run: drawing it takes ten times as long as a small run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunResult, "plot", lambda self: self.run_dir / "plot.png")
        yield


@pytest.fixture(scope="session", autouse=True)
def unsynced():
    """Do not wait for the disk: only a machine that loses its power could tell the difference.

    Killed processes, Ray's actors and tests that count or disturb these calls still make them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: os.fstat(file) and None)
        yield


@pytest.fixture
def drawn(monkeypatch):
    """Draw it after all."""
    monkeypatch.setattr(RunResult, "plot", PLOT)


@pytest.fixture(scope="session")
def ray_session():
    """One private Ray for all tests that need it; runs inside the session use it."""
    from raydp_sim.actors.cluster import connected

    with contextlib.ExitStack() as stack:
        stack.enter_context(connected(None, timeout=120))
        yield
