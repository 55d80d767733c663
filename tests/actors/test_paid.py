"""Whatever step a crash falls into, no spent budget is lost and no release is unpaid."""

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest

from raydp_sim import durable
from raydp_sim.actors.aggregator import AggregatorActor
from raydp_sim.actors.ledger import LedgerActor
from raydp_sim.actors.metrics import MetricsActor
from raydp_sim.actors.shuffler import ShufflerActor
from raydp_sim.metrics import streams
from raydp_sim.privacy import store
from raydp_sim.privacy.ledger import Ledger
from raydp_sim.run import prepare, reopen, run
from tests.conftest import assert_identical, scenario

RELEASE = 3  # the one that is disturbed
BUDGET = {"epsilon": 1.2, "delta": 1e-6}


def budgeted():
    return scenario(
        rounds=6,
        participation={"kind": "self", "probability": 0.5},
        shuffle={"min_batch": 60},
        privacy={"budget": BUDGET},
        placement={"backend": "inline", "checkpoint_seconds": 0},
    )


class Crash(KeyboardInterrupt):
    """Stops the process as Ctrl-C would; nothing catches it to tidy up a half-made release."""


def dying(monkeypatch, owner, name, mine, after):
    """Let the one call that `mine` recognises crash, before or after it has done its work."""
    original = getattr(owner, name)
    crashed = []

    def call(*args, **kwargs):
        if crashed or not mine(*args):
            return original(*args, **kwargs)
        crashed.append(name)
        if after:
            original(*args, **kwargs)
        raise Crash

    monkeypatch.setattr(owner, name, call)
    return crashed


def of_release(self, release, *rest):
    return release == RELEASE


def ledger_row(path):
    return Path(path).parent.name == "ledger" and f"-{RELEASE:08d}.parquet" in Path(path).name


class Files:
    """Which file an fsync belongs to, for crashes between its parts."""

    def __init__(self, monkeypatch):
        self.writing, self.syncs = "", 0
        write = durable.write_durable

        def noting(path, content):
            self.writing, self.syncs = path, 0
            write(path, content)
            self.writing = ""

        monkeypatch.setattr(store, "write_durable", noting)

    def sync(self, wanted):
        def mine(descriptor):
            self.syncs += bool(self.writing)
            return bool(self.writing) and ledger_row(self.writing) and self.syncs == wanted

        return mine


def count(calls):
    def mine(*args):
        calls.append(args)
        return len(calls) == RELEASE + 1

    return mine


def steps(monkeypatch):
    """Return every step from the close of a batch to the record of its release, by name."""
    files = Files(monkeypatch)
    return {
        "close": (ShufflerActor, "close", of_release),
        "charge": (LedgerActor, "charge", of_release),
        "append": (store, "append", lambda folder, charge, clients: charge.release == RELEASE),
        "fsync of the row": (os, "fsync", files.sync(1)),
        "rename of the row": (os, "replace", lambda source, target: ledger_row(target)),
        "fsync of the folder": (os, "fsync", files.sync(2)),
        "account": (Ledger, "charge", count([])),
        "release": (ShufflerActor, "chunk", of_release),
        "fold": (AggregatorActor, "fold", lambda self, *parts: parts[0].release == RELEASE),
        "step": (AggregatorActor, "step", of_release),
        "record": (MetricsActor, "record", lambda self, tally, *rest: tally.release == RELEASE),
    }


STEPS = (
    "close",
    "charge",
    "append",
    "fsync of the row",
    "rename of the row",
    "fsync of the folder",
    "account",
    "release",
    "fold",
    "step",
    "record",
)


@contextlib.contextmanager
def masks_noted(found):
    """Note who can afford the next release after each charge."""
    charge = LedgerActor.charge

    def noting(self, release, time, *participants):
        answer = charge(self, release, time, *participants)
        found[release] = self.able()
        return answer

    LedgerActor.charge = noting
    try:
        yield
    finally:
        LedgerActor.charge = charge


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed run, and who could afford the next release after each of its releases."""
    folder, masks = tmp_path_factory.mktemp("paid") / "whole", {}
    with masks_noted(masks):
        run(budgeted(), out=folder)
    shares = [mask.mean() for _, mask in sorted(masks.items())]
    assert len(masks) == 6 and shares == sorted(shares, reverse=True) and 0 < shares[-1] < 1
    return folder, masks


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_loses_no_spent_budget(step, after, whole, tmp_path, monkeypatch):
    undisturbed, expected = whole
    folder = tmp_path / "run"
    with monkeypatch.context() as disturbed:
        crashed = dying(disturbed, *steps(disturbed)[step], after)
        with contextlib.suppress(Crash):
            list(prepare(budgeted(), out=folder).play())
        assert crashed, "the step was never reached"
    before = store.read(folder / "ledger")
    paid = before["release"].to_pylist()
    # Nothing is known of a release before it is paid for.
    seen = streams.read(folder / "metrics", "releases")["release"].to_pylist()
    assert set(seen) <= set(paid)
    if STEPS.index(step) >= STEPS.index("release"):
        assert RELEASE in paid
    again = {}
    with masks_noted(again):
        for _ in reopen(folder).play():
            pass
    assert_identical(undisturbed, folder)
    rows = store.read(folder / "ledger")
    assert rows.slice(0, before.num_rows).equals(before)
    assert rows["release"].to_pylist() == list(range(6))
    assert again and all(np.array_equal(mask, expected[r]) for r, mask in again.items())
    actor = LedgerActor(budgeted().document(), str(folder / "ledger"))
    actor.begin(0, 6)
    assert np.array_equal(actor.able(), expected[5])
