"""A batch of long messages is written once, into memory that is used again and never too early."""

import ctypes
import pickle
import platform
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from raydp_sim.actors.payloads import Kept
from raydp_sim.actors.room import Room
from raydp_sim.random import Stream
from raydp_sim.stream import buckets, shuffle
from raydp_sim.stream.batches import BUCKETS, Everyone, Reports

WIDE = 4096


def kept(room, rows, fill):
    collected = Kept(room)
    collected.expect(rows)
    for first in range(0, rows, 16):
        collected.add(np.full((min(16, rows - first), 1, WIDE), fill + first, np.float64))
    return collected.whole()


def permuted(payload, release=0):
    clients = len(payload)
    bucket = buckets.draw_buckets(Stream(5), np.arange(clients, dtype=np.uint32), 1).reshape(-1)
    batch = Reports(release, 0, 0, Everyone(range(clients), 1), bucket, payload[:, 0])
    stream = Stream(6).at(release)
    return bucket, shuffle.permute(release, shuffle.gather([batch]), 1, "single", stream)


def test_the_next_release_takes_the_memory_of_the_last_only_when_that_is_gone():
    room = Room()
    first = kept(room, 64, 1.0)
    place = first.ctypes.data
    second = kept(room, 64, 2.0)
    assert not np.shares_memory(first, second)
    part = first[48:]
    del first
    assert not np.shares_memory(part, kept(room, 64, 3.0))
    assert (part == 49.0).all()
    del part
    again = kept(room, 64, 4.0)
    assert again.ctypes.data == place
    assert (again[:, 0, 0] == np.repeat(4.0 + np.arange(0, 64, 16), 16)).all()


def out_of_band(array):
    """As Ray packs what an actor returns."""
    buffers = []
    pickle.dumps(array, protocol=5, buffer_callback=buffers.append)
    return buffers


HOLDERS = {
    "memoryview": lambda array: memoryview(array)[3:],
    "bytes of it": lambda array: memoryview(array).cast("B"),
    "buffer": lambda array: np.frombuffer(memoryview(array).cast("B"), np.float64),
    "pickle": out_of_band,
    "arrow": lambda array: pa.py_buffer(array),
    "column": lambda array: pa.array(array.reshape(-1)),
    "dlpack": lambda array: np.from_dlpack(array[1:]),
    "broadcast": lambda array: np.broadcast_to(array, (2, *array.shape)),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_whoever_reads_an_array_in_whatever_form_keeps_its_memory(holder):
    room = Room()
    first = kept(room, 64, 1.0)
    place, before = first.ctypes.data, first.tobytes()
    read = HOLDERS[holder](first)
    del first
    second = kept(room, 64, 9.0)
    assert second.ctypes.data != place
    assert ctypes.string_at(place, len(before)) == before
    del read
    assert kept(room, 64, 2.0).ctypes.data == place


def test_a_batch_keeps_its_memory_until_its_last_chunk_is_out():
    room = Room()
    _, closed = permuted(kept(room, 64, 1.0))
    assert not np.shares_memory(closed.payload, kept(room, 64, 2.0))


def test_rows_are_put_in_order_chunk_by_chunk_and_not_before():
    payload = np.random.default_rng(3).random((300, 1, WIDE))
    tracemalloc.start()
    bucket, closed = permuted(payload)
    assert tracemalloc.get_traced_memory()[1] < payload.nbytes / 10
    whole = closed.chunk(0, BUCKETS).payload
    tracemalloc.reset_peak()
    begun = tracemalloc.get_traced_memory()[0]
    pieces = [closed.chunk(first, first + 8) for first in range(0, BUCKETS, 8)]
    parts = np.concatenate([piece.payload for piece in pieces])
    assert tracemalloc.get_traced_memory()[1] - begun < 2.2 * payload.nbytes
    tracemalloc.stop()
    assert np.array_equal(parts, whole)
    # The rows of bucket 0, then of bucket 1, ..., each as often as it was sent.
    row_of = {row.tobytes(): number for number, row in enumerate(payload[:, 0])}
    order = [row_of[row.tobytes()] for row in whole]
    assert sorted(order) == list(range(300))
    assert (np.diff(bucket[order].astype(int)) >= 0).all()


SPANS = """
import resource, sys
import numpy as np
from raydp_sim.kernels.memory import keep_freed
if sys.argv[1] == "kept":
    keep_freed()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    span = [np.ones(1 << 20, np.uint8) for _ in range(16)]
    del span
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries do as they like")
def test_what_a_span_of_releases_frees_is_there_for_the_next():
    pages = {}
    for how in ("kept", "not kept"):
        command = [sys.executable, "-c", SPANS, how]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        pages[how] = int(done.stdout)
    assert pages["kept"] < 100 < 2000 < pages["not kept"]
