"""Whatever step a crash falls into, no spent budget is lost and no release is unpaid."""

import contextlib
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from raydp_sim.actors.aggregator import AggregatorActor
from raydp_sim.actors.ledger import LedgerActor
from raydp_sim.actors.metrics import MetricsActor
from raydp_sim.actors.shuffler import ShufflerActor
from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.run import prepare, reopen, run
from tests.conftest import assert_identical, scenario

ROUNDS = 6
RELEASE = 3  # the one that is disturbed
BUDGET = {"epsilon": 1.2, "delta": 1e-6}


def budgeted():
    return scenario(
        rounds=ROUNDS,
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


def count(calls):
    def mine(*args):
        calls.append(args)
        return len(calls) == RELEASE + 1

    return mine


def steps():
    """Return every step from the close of a batch to the record of its release, by name."""
    return {
        "close": (ShufflerActor, "close", of_release),
        "charge": (LedgerActor, "charge", of_release),
        "append": (store.Writer, "append", lambda self, charge: charge.release == RELEASE),
        "account": (Ledger, "charge", count([])),
        "release": (ShufflerActor, "chunk", of_release),
        "fold": (AggregatorActor, "fold", of_release),
        "step": (AggregatorActor, "step", of_release),
        "record": (MetricsActor, "record", lambda self, tally, *rest: tally.release == RELEASE),
    }


STEPS = (
    "close",
    "charge",
    "append",
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

    def noting(self, release, *rest):
        answer = charge(self, release, *rest)
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
    assert len(masks) == ROUNDS and shares == sorted(shares, reverse=True) and 0 < shares[-1] < 1
    return folder, masks


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_loses_no_spent_budget(step, after, whole, tmp_path, monkeypatch):
    undisturbed, expected = whole
    folder = tmp_path / "run"
    with monkeypatch.context() as disturbed:
        crashed = dying(disturbed, *steps()[step], after)
        with contextlib.suppress(Crash):
            list(prepare(budgeted(), out=folder).play())
        assert crashed, "the step was never reached"
    paid = store.read(folder / "ledger")["release"].to_pylist()
    if STEPS.index(step) >= STEPS.index("release"):
        assert RELEASE in paid
    check_resumed(folder, undisturbed, expected)


def check_resumed(folder, undisturbed, expected):
    """Resume a run that crashed: what it had paid stays, and it ends as if nothing had happened."""
    before = store.read(folder / "ledger")
    # Nothing is known of a release before it is paid for.
    seen = streams.read(folder / "metrics", "releases")["release"].to_pylist()
    assert set(seen) <= set(before["release"].to_pylist())
    again = {}
    with masks_noted(again):
        for _ in reopen(folder).play():
            pass
    assert_identical(undisturbed, folder)
    rows = store.read(folder / "ledger")
    assert rows.slice(0, before.num_rows).equals(before)
    assert rows["release"].to_pylist() == list(range(ROUNDS))
    assert all(np.array_equal(mask, expected[r]) for r, mask in again.items())
    actor = LedgerActor(budgeted().document(), str(folder / "ledger"))
    actor.begin(0, ROUNDS)
    assert np.array_equal(actor.able(), expected[ROUNDS - 1])


# All that is done to the disk in the folder of the ledger, in this order; one write and one fsync
# for each release.
OPERATIONS = (
    *("fsync .charges.log", "replace charges.log", "fsync ledger"),
    *("fsync charges.log", "fsync ledger"),
    *(("write charges.log", "fsync charges.log") * ROUNDS),
    *("fsync .ledger.parquet", "replace ledger.parquet", "fsync ledger"),
    "unlink charges.log",
)


@contextlib.contextmanager
def operations(folder, disturb=lambda number, call: call()):
    """Note what is done to the disk in a folder; `disturb` may crash instead, or half-way."""
    found, originals = [], {}

    def wrapped(name):
        def call(*args):
            file = _named(folder, args[-1] if name == "replace" else args[0])
            if file is None:
                return originals[name](*args)
            found.append(f"{name} {file}")
            return disturb(len(found) - 1, partial(originals[name], *args))

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("write", "fsync", "ftruncate", "replace", "unlink"):
            originals[name] = getattr(os, name)
            patch.setattr(os, name, wrapped(name))
        yield found


def _named(folder, file):
    """Say which file of the folder is meant by a path or a descriptor, if any."""
    if not isinstance(file, int):
        return Path(file).name if Path(file).parent == folder else None
    for path in (folder, *folder.glob("*"), *folder.glob(".*.tmp")):
        if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
            return path.name.removesuffix(f".{os.getpid()}.tmp")
    return None


def crashed_at(folder, number, after):
    def disturb(reached, call):
        if reached == number and after == "half":
            name, *args = call.func, *call.args
            name(args[0], args[1][: len(args[1]) // 2])
            raise Crash
        if reached == number:
            if after == "after":
                call()
            raise Crash
        return call()

    with operations(folder / "ledger", disturb) as found, pytest.raises(Crash):
        list(prepare(budgeted(), out=folder).play())
    return found


def test_a_release_costs_one_write_to_the_disk(tmp_path):
    with operations(tmp_path / "run" / "ledger") as found:
        run(budgeted(), out=tmp_path / "run")
    assert tuple(found) == OPERATIONS


@pytest.mark.parametrize(
    "number,after",
    [
        (number, after)
        for number, name in enumerate(OPERATIONS)
        for after in ("before", "after", *(["half"] if "write" in name else []))
        # Every release is written in the same way.
        if name.split()[1] != "charges.log" or number < 9 or "unlink" in name
    ],
)
def test_a_crash_at_any_operation_on_the_disk_loses_no_spent_budget(number, after, whole, tmp_path):
    folder = tmp_path / "run"
    found = crashed_at(folder, number, after)
    assert tuple(found) == OPERATIONS[: number + 1]
    check_resumed(folder, *whole)
    assert sorted(path.name for path in folder.glob("ledger/[!.]*")) == ["ledger.parquet"]


@pytest.mark.parametrize("killed", [None, "before", "after"])
def test_nothing_is_released_before_its_row_is_on_disk(killed, tmp_path, monkeypatch):
    """Also of a row that was written but not yet on disk when its writer was killed."""
    folder = tmp_path / "run"
    if killed is not None:
        interrupted(folder, killed)
        assert RELEASE in store.read(folder / "ledger")["release"].to_pylist()
    log, released, chunk = folder / "ledger" / "charges.log", [], ShufflerActor.chunk
    on_disk = 0  # bytes of the log

    def noting(number, call):
        nonlocal on_disk
        result = call()
        if found[number] == "fsync charges.log":
            on_disk = log.stat().st_size
        return result

    def checking(self, release, *rest):
        copy = tmp_path / f"{release}-{len(released)}" / "charges.log"
        copy.parent.mkdir()
        copy.write_bytes(log.read_bytes()[:on_disk])
        assert release in store.read(copy.parent)["release"].to_pylist()
        released.append(release)
        return chunk(self, release, *rest)

    monkeypatch.setattr(ShufflerActor, "chunk", checking)
    with operations(folder / "ledger", noting) as found:
        made = prepare(budgeted(), out=folder) if killed is None else reopen(folder)
        for _ in made.play():
            pass
    assert set(released) == set(range(0 if killed is None else RELEASE, ROUNDS))


def interrupted(folder, synced="after"):
    """Stop a run at the fsync of a row, before or after it; return its log."""
    crashed_at(folder, OPERATIONS.index("write charges.log") + 2 * RELEASE + 1, synced)
    return folder / "ledger" / "charges.log"


def test_a_run_that_an_earlier_version_began_is_resumed(whole, tmp_path):
    """It wrote a Parquet file for each release."""
    folder = tmp_path / "run"
    log = interrupted(folder)
    rows = store.read(folder / "ledger")
    assert rows.num_rows == RELEASE + 1
    for release in range(rows.num_rows):
        store.write_table(
            folder / "ledger" / f"r000000-{release:08d}.parquet", rows.slice(release, 1)
        )
    log.unlink()
    check_resumed(folder, *whole)


def test_a_damaged_log_is_bad_input_and_stays_as_it_is(tmp_path):
    log = interrupted(tmp_path / "run")
    damaged = bytearray(log.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    log.write_bytes(damaged)
    with pytest.raises(InputError, match=r"charges\.log: the file is damaged.*restore"):
        list(reopen(tmp_path / "run").play())
    assert log.read_bytes() == damaged
