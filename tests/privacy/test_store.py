"""The ledger on disk: every row once, while it is written, compacted, and after any crash."""

import json
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

from raydp_sim.errors import InputError
from raydp_sim.privacy.events import LocalReport, Shuffle
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.log import Log

CLIENTS = 100


def charge(release, repetition=0):
    ids = np.array([release, release + 7], dtype=np.uint32)
    whole = Shuffle(0.5, 10 + release)
    return store.Charge(repetition, release, 0.1 * release, LocalReport(0.5), ids, whole)


def written(folder, releases, repetition=0):
    writer = store.Writer(folder, CLIENTS)
    for release in releases:
        writer.append(charge(release, repetition))
    return writer


def write_single(folder, row):
    """Write a row as an earlier version did."""
    table = pa.Table.from_pylist([row.row(CLIENTS)], schema=store.SCHEMA)
    name = f"r{row.repetition:06d}-{row.release:08d}.parquet"
    store.write_table(folder / name, table)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def keys(folder):
    """Return the keys of all rows, after a look at whether they are what was charged."""
    rows, table = list(store.charges(folder)), store.read(folder).to_pylist()
    assert [row.row(CLIENTS) for row in rows] == table
    assert all(row.same_as(charge(row.release, row.repetition)) for row in rows)
    return [(row.repetition, row.release) for row in rows]


def releases(folder):
    return [release for _, release in keys(folder)]


def test_rows_survive_compacting(tmp_path):
    writer = written(tmp_path, range(5))
    before = store.read(tmp_path)
    assert releases(tmp_path) == [0, 1, 2, 3, 4] and names(tmp_path) == [store.LOG]
    writer.compact()
    assert names(tmp_path) == [store.COMPACTED]
    assert store.read(tmp_path).equals(before) and releases(tmp_path) == [0, 1, 2, 3, 4]
    writer.compact()  # with nothing new there is nothing to do
    assert names(tmp_path) == [store.COMPACTED]


def test_rows_are_read_in_order_and_once_each_wherever_they_are(tmp_path):
    for repetition in range(2):
        written(tmp_path, (2, 0, 1), repetition)
    log = (tmp_path / store.LOG).read_bytes()
    for _ in range(2):
        assert keys(tmp_path) == list(np.ndindex(2, 3))
        assert [row.repetition for row in store.charges(tmp_path, 1)] == [1, 1, 1]
        assert store.read(tmp_path, 1).num_rows == 3
        store.Writer(tmp_path, CLIENTS).compact()
        (tmp_path / store.LOG).write_bytes(log)  # as after a crash while compacting
    written(tmp_path, [1, 3])  # the first of them a second time
    assert keys(tmp_path) == sorted([*np.ndindex(2, 3), (0, 3)])


def test_rows_written_after_compacting_are_added(tmp_path):
    written(tmp_path, range(3)).compact()
    written(tmp_path, range(3, 5))
    assert releases(tmp_path) == [0, 1, 2, 3, 4]
    store.Writer(tmp_path, CLIENTS).compact()
    assert names(tmp_path) == [store.COMPACTED] and releases(tmp_path) == [0, 1, 2, 3, 4]


def test_a_run_of_an_earlier_version_is_read_and_compacted(tmp_path):
    for release in range(3):
        write_single(tmp_path, charge(release))
    assert releases(tmp_path) == [0, 1, 2]
    writer = store.Writer(tmp_path, CLIENTS)
    assert [row.release for row in writer.charges(0)] == [0, 1, 2]
    assert list(writer.charges(1)) == [] and list(store.charges(tmp_path, 1)) == []
    writer.append(charge(3))
    writer.append(charge(0, 1))
    assert keys(tmp_path) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]
    writer.compact()
    assert names(tmp_path) == [store.COMPACTED]
    assert keys(tmp_path) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]


def test_a_log_that_an_earlier_version_began_is_read_and_continued(tmp_path):
    """It wrote one row in a record, without the length of its list of clients."""
    before = Log(tmp_path / store.LOG)
    for release in (1, 0):
        row = charge(release).row(CLIENTS)
        packed = row.pop("participants")
        before.append(json.dumps(row).encode() + b"\n" + packed)
    before.close()
    writer = store.Writer(tmp_path, CLIENTS)
    writer.append(charge(3), charge(2))
    found, end = store.logged_after(tmp_path, 0)
    assert [row["release"] for row in found] == [1, 0, 3, 2]
    assert store.logged_after(tmp_path, end) == ([], end)
    for _ in range(2):
        assert releases(tmp_path) == [0, 1, 2, 3]
        writer.compact()


def test_a_writer_knows_what_was_there_and_what_it_wrote(tmp_path):
    written(tmp_path, range(2)).compact()
    written(tmp_path, [0], 1)
    writer = store.Writer(tmp_path, CLIENTS)
    assert [row.release for row in writer.charges(0)] == [0, 1]
    assert [row.release for row in writer.charges(1)] == [0]
    assert list(writer.charges(2)) == []
    writer.append(charge(0, 2))
    assert [row.release for row in writer.charges(2)] == [0]


def test_a_repetition_without_rows_costs_no_look_at_the_others(tmp_path, monkeypatch):
    writer = written(tmp_path, range(3))
    assert len(list(writer.charges(0))) == 3
    monkeypatch.setattr(store, "charges", lambda *place: pytest.fail("everything was read again"))
    assert all(list(writer.charges(repetition)) == [] for repetition in range(1, 5))


def test_a_damaged_log_is_an_error_that_names_it(tmp_path):
    written(tmp_path, range(3))
    log = tmp_path / store.LOG
    whole = log.read_bytes()
    log.write_bytes(whole.replace(b'"release": 1', b'"release": 7'))
    for look in (lambda: list(store.charges(tmp_path)), lambda: store.read(tmp_path)):
        with pytest.raises(InputError, match=rf"{store.LOG}: the file is damaged"):
            look()
    with pytest.raises(InputError, match=store.LOG):
        store.Writer(tmp_path, CLIENTS).compact()
    assert names(tmp_path) == [store.LOG]


@pytest.fixture
def busy(tmp_path):
    """A folder with rows in every form: compacted, one by one, and in the log."""
    written(tmp_path, range(2)).compact()
    for release in (2, 3):
        write_single(tmp_path, charge(release))
    return written(tmp_path, (4, 5))


ALL = [0, 1, 2, 3, 4, 5]
STEPS = ["open", "fsync", "replace", "unlink"]


def disturbed(patch, name, look):
    """Look before and after every call of an operating system's function."""
    function = getattr(os, name)

    def call(*args, **kwargs):
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(os, name, function)
            look()
            result = function(*args, **kwargs)
            look()
        return result

    patch.setattr(os, name, call)


@pytest.mark.parametrize("step", STEPS)
def test_a_reader_sees_every_row_once_at_every_step_of_compacting(step, busy, monkeypatch):
    seen = []
    disturbed(monkeypatch, step, lambda: seen.append(releases(busy.folder)))
    busy.compact()
    assert len(seen) >= 2 and all(found == ALL for found in seen)
    assert names(busy.folder) == [store.COMPACTED]


@pytest.mark.parametrize("look", [store.read, store.charges])
@pytest.mark.parametrize("step", range(1, 4))
def test_compacting_at_every_step_of_a_reader_hides_no_row(look, step, busy, monkeypatch):
    """Before it opens the log, before it opens the Parquet file, and when it has both."""
    opened, steps = store._opened, []

    def opening(path, stack):
        steps.append(path.name)
        if len(steps) == step:
            busy.compact()
        file = opened(path, stack)
        if len(steps) == 2 and step == 3:
            busy.compact()
        return file

    compact = busy.compact

    def once():
        monkeypatch.undo()
        compact()

    busy.compact = once
    monkeypatch.setattr(store, "_opened", opening)
    found = look(busy.folder)
    if look is store.read:
        found = [store.Charge.of_row(row) for row in found.to_pylist()]
    assert [row.release for row in found] == ALL
    assert steps[0] == store.LOG and names(busy.folder) == [store.COMPACTED]


def test_rows_of_an_earlier_version_that_are_compacted_while_they_are_read(busy, monkeypatch):
    read_table = store.pq.read_table

    def reading(path, **kwargs):
        monkeypatch.undo()
        table = read_table(path, **kwargs)
        busy.compact()
        return table

    monkeypatch.setattr(store.pq, "read_table", reading)
    assert [row.release for row in store.charges(busy.folder)] == ALL
    assert names(busy.folder) == [store.COMPACTED]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(6))
def test_a_crash_while_compacting_loses_nothing(number, after, busy, monkeypatch):
    """The file's fsync, its rename, the folder's fsync, and three files that go."""
    count = 0

    def dying(function):
        def call(*args):
            nonlocal count
            count += 1
            if count - 1 != number:
                return function(*args)
            if after:
                function(*args)
            raise KeyboardInterrupt

        return call

    with monkeypatch.context() as patch:
        for name in ("fsync", "replace", "unlink"):
            patch.setattr(os, name, dying(getattr(os, name)))
        with pytest.raises(KeyboardInterrupt):
            busy.compact()
    assert releases(busy.folder) == ALL
    store.Writer(busy.folder, CLIENTS).compact()
    assert releases(busy.folder) == ALL
    assert [name for name in names(busy.folder) if name[0] != "."] == [store.COMPACTED]


def test_readers_beside_a_writer_see_all_that_is_acknowledged(tmp_path):
    """Rows are written, and compacted at every fiftieth, while two others read and read."""
    acknowledged, over, problems = 0, threading.Event(), []

    def reading(look):
        while not over.is_set() and not problems:
            least = acknowledged
            found = look()
            if found != list(range(len(found))) or len(found) < least:
                problems.append((least, found))

    readers = [
        threading.Thread(target=reading, args=(look,))
        for look in (
            lambda: store.read(tmp_path)["release"].to_pylist(),
            lambda: [row.release for row in store.charges(tmp_path)],
        )
    ]
    for reader in readers:
        reader.start()
    writer = store.Writer(tmp_path, CLIENTS)
    for release in range(200):
        writer.append(charge(release))
        acknowledged = release + 1
        if release % 50 == 49:
            writer.compact()
    over.set()
    for reader in readers:
        reader.join()
    assert not problems and releases(tmp_path) == list(range(200))


APPENDING = """
import sys
from pathlib import Path
from tests.privacy.test_store import CLIENTS, charge, store
writer = store.Writer(Path(sys.argv[1]), CLIENTS)
for release in range(len(list(writer.charges(0))), 10**6):
    writer.append(charge(release))
    print(release, flush=True)
"""


def test_a_writer_killed_at_any_moment_has_kept_what_it_acknowledged(tmp_path):
    """SIGKILL at moments that depend on the machine; the writer goes on from what it finds."""
    dice = random.Random(3)
    for _ in range(2):
        command = [sys.executable, "-c", APPENDING, str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = [process.stdout.readline() for _ in range(dice.randrange(5, 100))]
        process.kill()
        last = int([*said, *process.communicate()[0].splitlines()][-1])
        found = releases(tmp_path)
        assert found == list(range(len(found))) and len(found) in (last + 1, last + 2)
