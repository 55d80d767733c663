"""Sealed keys stay with their records whatever happens on the way, and open for one reader only."""

import numpy as np
import pytest

from raydp_sim.errors import RunError
from raydp_sim.random import Stream
from raydp_sim.stream.batches import Listed, Recorded, Reports
from raydp_sim.stream.buckets import draw_buckets
from raydp_sim.stream.sealed import (
    Promotion,
    Records,
    fingerprint,
    joined,
    lock_of,
    record_ids,
    seal,
    secret_of,
)
from raydp_sim.stream.shuffle import gather, interleave, permute

LOCKS = [lock_of("one"), lock_of("two")]


def reports(ids, release=0, source=0):
    """Reports whose payload, id and keys all follow from the client."""
    ids = np.asarray(ids, np.uint32)
    keys = [(ids % 2).astype(np.uint8), ids % 1000]
    sealed = (seal(keys[0], 1, LOCKS[0]), seal(keys[1], 10, LOCKS[1]))
    records = Records(ids.astype(np.uint64) * np.uint64(7), sealed)
    bucket = draw_buckets(Stream(1).at("bucket"), ids, 1)[:, 0]
    senders = Listed(ids, np.zeros(len(ids), np.uint16))
    return Reports(release, source, 0, senders, bucket, ids.astype(np.uint16), records)


def aligned(chunk):
    """Whether payload, id and both keys of every row are of one client."""
    ids = chunk.payload.astype(np.int64)
    one, two = (
        column.open(who) for column, who in zip(chunk.records.sealed, ("one", "two"), strict=True)
    )
    return (
        np.array_equal(chunk.records.rid, ids.astype(np.uint64) * np.uint64(7))
        and np.array_equal(one, ids % 2)
        and np.array_equal(two, ids % 1000)
    )


@pytest.mark.parametrize("clients", [0, 1, 7, 300, 5000])
def test_a_shuffler_moves_sealed_keys_along_with_their_reports(clients):
    whole = gather([reports(range(clients // 2)), reports(range(clients // 2, clients), source=1)])
    made = permute(0, whole, 1, "per-index", Stream(1).at("permute", 0))
    chunks = [made.chunk(*cut) for cut in ((0, 10), (10, 40), (40, 64))]
    assert all(isinstance(chunk, Recorded) and aligned(chunk) for chunk in chunks)
    assert sorted(np.concatenate([c.payload for c in chunks]).tolist()) == list(range(clients))
    if clients == 5000:
        assert not np.array_equal(chunks[0].payload, np.sort(chunks[0].payload))


def test_a_report_that_comes_twice_keeps_one_key():
    twice = gather([reports(range(50)), reports(range(30, 60), source=1)])
    assert twice.duplicates == 20 and len(twice.records) == 60
    made = permute(0, twice, 1, "per-index", Stream(1).at("permute", 0))
    assert aligned(made.chunk(0, 64))


def test_several_shufflers_give_one_order():
    whole = reports(range(2000))
    alone = permute(0, gather([whole]), 1, "per-index", Stream(1).at("permute", 0)).chunk(0, 64)
    shares = []
    for number in range(3):
        mine = np.flatnonzero(whole.bucket % 3 == number)
        part = reports(mine)
        shares.append(
            permute(0, gather([part]), 1, "per-index", Stream(1).at("permute", 0)).chunk(0, 64)
        )
    together = interleave(shares)
    assert aligned(together) and np.array_equal(together.payload, alone.payload)
    assert np.array_equal(together.records.rid, alone.records.rid)


def test_promotion_keys_are_permuted_and_lost_in_no_placement():
    """One actor's clients may all have gone to another shuffler: their keys come still."""
    of, rid = np.repeat([0, 1], 50).astype(np.int32), np.arange(100, dtype=np.uint64)
    rows = Promotion(1, of, rid, seal(rid % 2, 1, LOCKS[0]))
    batch = reports([])
    gathered = gather([Reports(**{**vars(batch), "promotions": (rows,)})])
    (made,) = permute(0, gathered, 1, "per-index", Stream(1).at("permute", 3)).promotions
    assert not np.array_equal(made.rid, rid) and np.array_equal(np.sort(made.rid), rid)
    assert np.array_equal(made.key.open("one"), made.rid % 2)
    assert np.array_equal(made.of, (made.rid >= 50).astype(np.int32))


@pytest.mark.parametrize("width", [1, 3, 10, 20])
def test_keys_are_packed_and_come_back(width):
    keys = np.random.default_rng(1).integers(0, 1 << width, 1001).astype(np.uint32)
    column = seal(keys, width, LOCKS[0])
    assert len(column.packed) == -(-1001 * width // 8)
    assert np.array_equal(column.open("one"), keys)
    assert np.array_equal(column.take(slice(5, 900)).open("one"), keys[5:900])
    both = joined([column.take(slice(0, 13)), column.take(slice(13, None))])
    assert np.array_equal(both.open("one"), keys)
    with pytest.raises(RunError, match="for another reader"):
        column.open("two")
    with pytest.raises(RunError, match="different readers"):
        joined([column, seal(keys, width, LOCKS[1])])


def test_ids_of_records_repeat_for_nobody_and_tell_no_client():
    clients = np.arange(200_000, dtype=np.uint32)
    rid = np.concatenate([record_ids(Stream(1).at("randomize", r), clients) for r in range(2)])
    # 400,000 ids of 64 bits hold two equal ones with probability 4.4e-9.
    assert len(np.unique(rid)) == len(rid)
    # Sorted by id, clients are in no order: 0.02 is 9 standard deviations of a rank correlation.
    order = np.argsort(rid[:200_000]).astype(np.float64)
    assert abs(np.corrcoef(order, np.arange(200_000.0))[0, 1]) < 0.02
    secrets = {secret_of(Stream(1), reader) for reader in range(10)}
    assert len(secrets) == 10


def test_a_fingerprint_tells_any_two_records_exchanged():
    rid = record_ids(Stream(1), np.arange(100, dtype=np.uint32))
    values = np.arange(100) % 7
    whole = fingerprint(rid, values)
    assert whole == fingerprint(rid[::-1], values[::-1])
    other = values.copy()
    other[[3, 4]] = other[[4, 3]]
    assert fingerprint(rid, other) != whole
