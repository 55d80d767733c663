"""The shuffle is uniform, the same for any number of shufflers, and counts every message once."""

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.stats import chi2

from raydp_sim.random import Stream
from raydp_sim.stream import buckets, shuffle
from raydp_sim.stream.batches import BUCKETS, Everyone, Listed, Reports, Summed

FALSE_ALARM = 1e-7


def reports(ids, messages=1, release=0, source=0, epoch=0, payload=None, stream=None):
    ids = np.asarray(ids, dtype=np.uint32)
    bucket = buckets.draw_buckets(stream or Stream(5).at(release), ids, messages).reshape(-1)
    client = np.repeat(ids, messages)
    sequence = np.tile(np.arange(messages, dtype=np.uint16), len(ids))
    if payload is None:
        payload = client.astype(np.int64) * messages + sequence
    return Reports(release, source, epoch, Listed(client, sequence), bucket, payload)


def rows(batch, mask):
    listed = batch.senders.listed()
    senders = Listed(listed.client[mask], listed.sequence[mask])
    place = (batch.release, batch.source, batch.epoch)
    return Reports(*place, senders, batch.bucket[mask], batch.payload[mask])


def released(batch, messages, routing, stream, shufflers=1):
    """The whole stream as its consumer gets it, with the logical shuffler of each row."""
    pieces = []
    for number in range(shufflers):
        share = shuffle.gather([rows(batch, batch.bucket % shufflers == number)])
        pieces.append(shuffle.permute(batch.release, share, messages, routing, stream))
    logical = messages if routing == "per-index" else 1
    bounds = pairwise(shuffle.cuts(logical * BUCKETS, batch.payload.nbytes))
    chunks = [shuffle.interleave([piece.chunk(*cut) for piece in pieces]) for cut in bounds]
    payload = np.concatenate([chunk.payload for chunk in chunks])
    return np.concatenate([chunk.index for chunk in chunks]), payload


@pytest.mark.parametrize("messages,routing", [(1, "per-index"), (2, "single")])
def test_all_orders_of_a_small_batch_are_equally_likely(messages, routing):
    """Chi-square over all 24 orders of 4 messages; false alarm 1e-7 per case (2 cases).

    That several shufflers give the very same order is shown below.
    """
    releases = 6000
    orders = {order: place for place, order in enumerate(permutations(range(4)))}
    counts = np.zeros(len(orders))
    for release in range(releases):
        root = Stream(99).at(release)
        batch = reports(range(4 // messages), messages, release, stream=root.at("bucket"))
        _, payload = released(batch, messages, routing, root.at("permute"))
        counts[orders[tuple(int(value) for value in payload)]] += 1
    expected = releases / len(orders)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(FALSE_ALARM, len(orders) - 1)


@pytest.mark.parametrize("large_group", [1, 10**9])
def test_both_ways_to_permute_a_group_are_uniform(large_group, monkeypatch):
    """All 120 orders of 5 messages that share one bucket; false alarm 1e-7 per case."""
    monkeypatch.setattr(shuffle, "_LARGE_GROUP", large_group)
    orders = {order: place for place, order in enumerate(permutations(range(5)))}
    counts = np.zeros(len(orders))
    ids = np.arange(5, dtype=np.uint32)
    zeros = np.zeros(5, np.uint8)
    releases = 6000
    for release in range(releases):
        batch = Reports(
            release, 0, 0, Listed(ids, zeros.astype(np.uint16)), zeros + 3, ids.astype(int)
        )
        root = Stream(4).at(release)
        _, payload = released(batch, 1, "per-index", root)
        counts[orders[tuple(int(value) for value in payload)]] += 1
    expected = releases / len(orders)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(FALSE_ALARM, len(orders) - 1)


def test_a_broken_shuffle_would_be_noticed(monkeypatch):
    """The chi-square above has teeth: leaving the order inside buckets alone is caught."""
    monkeypatch.setattr(shuffle, "_permute_small", lambda *args: None)
    with pytest.raises(AssertionError):
        test_both_ways_to_permute_a_group_are_uniform(10**9, monkeypatch)


@pytest.mark.parametrize(
    "messages,routing", [(1, "per-index"), (2, "single"), (3, "per-index"), (3, "single")]
)
@pytest.mark.parametrize("clients,releases", [(1, 5), (2, 10), (4, 10), (40, 2), (70_000, 1)])
def test_any_number_of_shufflers_gives_the_same_stream(messages, routing, clients, releases):
    for release in range(releases):
        root = Stream(99).at(release)
        batch = reports(np.arange(clients) * 3 + 1, messages, release, stream=root.at("bucket"))
        index, payload = released(batch, messages, routing, root.at("permute"))
        for shufflers in (2, 5, 64):
            again, same = released(batch, messages, routing, root.at("permute"), shufflers)
            assert np.array_equal(payload, same) and np.array_equal(index, again)
        assert np.array_equal(np.sort(payload), np.sort(batch.payload))


@pytest.mark.parametrize("form", [(), (3,), (2, 2)])
@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float64])
@pytest.mark.parametrize("clients", [1, 2, 3])
def test_a_shuffler_without_a_row_changes_neither_form_nor_type(form, kind, clients):
    rows_of = np.arange(clients * math.prod(form)).astype(kind).reshape(clients, *form)
    batch = reports(range(clients), payload=rows_of)
    index, payload = released(batch, 1, "per-index", Stream(8))
    assert payload.shape == rows_of.shape and payload.dtype == kind
    for shufflers in (4, 64):
        again, same = released(batch, 1, "per-index", Stream(8), shufflers)
        assert same.dtype == kind and np.array_equal(payload, same) and np.array_equal(index, again)


def test_each_message_index_has_a_logical_shuffler_of_its_own():
    batch = reports(range(500), 3)
    index, payload = released(batch, 3, "per-index", Stream(8))
    assert np.array_equal(index, np.repeat([0, 1, 2], 500))
    assert np.array_equal(payload % 3, index)
    clients = payload.reshape(3, 500) // 3
    # Independent orders: a client's place in one list says nothing of its place in another. The
    # rank correlation of 500 places has standard deviation 0.045; 0.3 is 6.7 of them (p < 1e-10).
    places = np.argsort(clients, axis=1)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.corrcoef(places[one], places[other])[0, 1]) < 0.3


def test_with_one_shuffler_for_all_messages_no_row_tells_its_index():
    index, _ = released(reports(range(50), 3), 3, "single", Stream(8))
    assert not index.any()


@pytest.mark.parametrize("messages", [1, 2, 3, 7, 10, 11, 25])
def test_buckets_do_not_depend_on_which_clients_share_the_call(messages):
    stream = Stream(3).at("bucket", 9)
    ids = np.arange(1000, 1400, dtype=np.uint32)
    dense = buckets.draw_buckets(stream, ids, messages)
    scattered = np.array([3, 77, 201, 399])
    assert dense.shape == (400, messages) and dense.max() < BUCKETS
    assert np.array_equal(buckets.draw_buckets(stream, ids[scattered], messages), dense[scattered])
    for row in (0, 5, 399):
        assert np.array_equal(buckets.draw_buckets(stream, ids[[row]], messages)[0], dense[row])


def test_buckets_are_uniform_and_independent_across_messages():
    """Chi-square on 64 buckets and on 64 x 64 pairs; false alarm 1e-7 each."""
    drawn = buckets.draw_buckets(Stream(3), np.arange(200_000, dtype=np.uint32), 2)
    for cells, counts in (
        (64, np.bincount(drawn.reshape(-1), minlength=64)),
        (4096, np.bincount(drawn[:, 0].astype(int) * 64 + drawn[:, 1], minlength=4096)),
        (4096, np.bincount(drawn[:-1, 0].astype(int) * 64 + drawn[1:, 0], minlength=4096)),
    ):
        expected = counts.sum() / cells
        assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, cells - 1)


def test_batches_in_any_order_gather_to_the_same_thing():
    whole = reports(range(100), 2)
    parts = [rows(whole, slice(start, start + 40)) for start in range(0, 200, 40)]
    for order in ((0, 1, 2, 3, 4), (4, 2, 0, 3, 1)):
        gathered = shuffle.gather([parts[i] for i in order])
        assert np.array_equal(gathered.payload, whole.payload) and gathered.duplicates == 0


def test_a_replayed_message_counts_once():
    whole = reports(range(100), 2)
    gathered = shuffle.gather([whole, rows(whole, slice(31, 90)), whole])
    assert np.array_equal(gathered.payload, whole.payload)
    assert gathered.duplicates == 59 + 200
    assert np.array_equal(gathered.senders.participants(), np.arange(100))


def test_of_sums_a_placement_counts_once_and_none_is_lost():
    def summed(source, first, last):
        senders = Everyone(range(first, last), 1)
        total = Summed((np.array([source + 1, last - first]),), last - first)
        return Reports(0, source, 0, senders, np.zeros(last - first, np.uint8), total)

    once = shuffle.gather([summed(1, 5, 9), summed(0, 0, 5)])
    again = shuffle.gather([summed(1, 5, 9), summed(0, 0, 5), summed(1, 5, 9)])
    for found, duplicates in ((once, 0), (again, 4)):
        assert found.senders.clients == range(9)
        assert len(found.payload) == 9 and found.duplicates == duplicates
        assert np.array_equal(np.sum(found.payload.parts, axis=0), [3, 9])


def test_interleaved_clients_are_put_in_order():
    whole = reports(range(60))
    gathered = shuffle.gather([rows(whole, slice(0, None, 2)), rows(whole, slice(1, None, 2))])
    assert np.array_equal(gathered.senders.client, np.arange(60))


def test_an_empty_batch_has_no_chunks():
    gathered = shuffle.gather([])
    permuted = shuffle.permute(0, gathered, 1, "per-index", Stream(1))
    assert (
        len(permuted.chunk(0, BUCKETS).payload) == 0 and len(gathered.senders.participants()) == 0
    )


def test_chunks_cover_the_batch_once(monkeypatch):
    monkeypatch.setattr(shuffle, "_CHUNK_BYTES", 800)
    gathered = shuffle.gather([reports(range(1000), 2)])
    permuted = shuffle.permute(0, gathered, 2, "per-index", Stream(1))
    bounds = shuffle.cuts(2 * BUCKETS, gathered.payload.nbytes)
    chunks = [permuted.chunk(*cut) for cut in pairwise(bounds)]
    assert len(chunks) == 20
    assert max(len(chunk.payload) for chunk in chunks) < 200
    together = np.concatenate([chunk.payload for chunk in chunks])
    assert np.array_equal(np.sort(together), np.arange(2000))
    assert sum(math.prod(chunk.index.shape) for chunk in chunks) == 2000


def dense(first, last, messages=2, whole=None):
    """The same rows as listed ones, without the list."""
    senders = Everyone(range(first, last), messages)
    cut = slice(first * messages, last * messages)
    return Reports(0, 0, 0, senders, whole.bucket[cut], whole.payload[cut])


def test_whole_ranges_gather_to_what_their_lists_gather_to():
    whole = reports(range(100), 2)
    listed = shuffle.gather([whole])
    gathered = shuffle.gather([dense(60, 100, whole=whole), dense(0, 60, whole=whole)])
    assert isinstance(gathered.senders, Everyone)
    assert gathered.senders.clients == range(100) and gathered.senders.reports() == 100
    assert np.array_equal(gathered.senders.listed().client, listed.senders.client)
    assert np.array_equal(gathered.senders.listed().sequence, listed.senders.sequence)
    for routing in ("per-index", "single"):
        one = shuffle.permute(0, gathered, 2, routing, Stream(3))
        other = shuffle.permute(0, listed, 2, routing, Stream(3))
        assert np.array_equal(one.payload, other.payload)


@pytest.mark.parametrize("cuts", [((0, 60), (50, 100)), ((0, 100), (0, 100)), ((0, 40), (60, 100))])
def test_ranges_that_overlap_or_leave_gaps_are_listed(cuts):
    whole = reports(range(100), 2)
    gathered = shuffle.gather([dense(*cut, whole=whole) for cut in cuts])
    everyone = sorted({client for cut in cuts for client in range(*cut)})
    assert gathered.senders.participants().tolist() == everyone
    sent = 2 * sum(last - first for first, last in cuts)
    assert gathered.duplicates == sent - 2 * len(everyone) == sent - len(gathered.payload)


def test_a_range_and_a_list_gather_together():
    whole = reports(range(100), 2)
    gathered = shuffle.gather([dense(0, 60, whole=whole), rows(whole, slice(120, 200))])
    assert np.array_equal(gathered.payload, whole.payload)


def in_runs(whole, first, last, messages, routing):
    """The same rows, put group by group by whoever holds them."""
    cut = slice(first * messages, last * messages)
    senders, nobody = Everyone(range(first, last), messages), np.empty(0, np.uint8)
    batch = Reports(0, 0, 0, senders, nobody, whole.payload[cut])
    logical = messages if routing == "per-index" else 1
    return buckets.in_runs(batch, Stream(5).at(0), logical)


def symbols(clients, messages):
    drawn = np.random.default_rng(1).integers(0, 200, clients * messages)
    return reports(range(clients), messages, payload=drawn.astype(np.uint8))


@pytest.mark.parametrize("routing", ["per-index", "single"])
@pytest.mark.parametrize("messages", [1, 3, 4, 12])
def test_rows_in_runs_come_out_as_rows_with_their_buckets(messages, routing):
    whole = symbols(7003, messages)
    expected = shuffle.permute(0, shuffle.gather([whole]), messages, routing, Stream(3))
    for cuts in ([0, 7003], [0, 13, 5000, 7003]):
        parts = [in_runs(whole, *cut, messages, routing) for cut in pairwise(cuts)]
        assert all(len(part.bucket) == 0 for part in parts)
        gathered = shuffle.gather(reversed(parts))
        assert gathered.sizes is not None and gathered.senders.clients == range(7003)
        found = shuffle.permute(0, gathered, messages, routing, Stream(3))
        assert np.array_equal(found.payload, expected.payload)
        assert np.array_equal(found.groups, expected.groups)
        assert np.array_equal(found.lengths, expected.lengths)


@pytest.mark.parametrize(
    "cuts", [((0, 600), (500, 1000)), ((0, 1000), (0, 1000)), ((0, 7), (9, 70))]
)
def test_runs_that_overlap_or_leave_gaps_are_listed(cuts):
    whole = symbols(1000, 2)
    for routing in ("per-index", "single"):
        runs = shuffle.gather([in_runs(whole, *cut, 2, routing) for cut in cuts])
        listed = shuffle.gather([dense(*cut, whole=whole) for cut in cuts])
        assert runs.sizes is None and runs.duplicates == listed.duplicates
        assert np.array_equal(runs.bucket, listed.bucket)
        assert np.array_equal(runs.payload, listed.payload)


def test_runs_and_rows_gather_together():
    whole = symbols(1000, 2)
    gathered = shuffle.gather([in_runs(whole, 0, 600, 2, "single"), dense(600, 1000, whole=whole)])
    assert np.array_equal(gathered.payload, whole.payload)
    assert np.array_equal(gathered.bucket, whole.bucket)


def test_only_many_short_rows_travel_in_runs():
    everyone, short = Everyone(range(5000), 1), np.zeros(5000, np.uint8)
    assert buckets.worth_running(everyone, short, 1)
    assert not buckets.worth_running(Everyone(range(500), 1), short[:500], 1)
    assert not buckets.worth_running(everyone, short[:, None], 1)
    assert not buckets.worth_running(everyone, short.astype(np.float64), 1)
    assert not buckets.worth_running(everyone, Summed((), 5000), 1)
