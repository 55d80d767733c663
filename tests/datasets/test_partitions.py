"""Partitions: nobody shares a sample, sizes are known beforehand, and each keeps its own law."""

from itertools import combinations

import numpy as np
import pytest
from pydantic import ValidationError

from raydp_sim.datasets.holdings import label_counts
from raydp_sim.datasets.partitions import PARTITIONS
from raydp_sim.datasets.partitions.base import Deck
from raydp_sim.datasets.synthetic_digits import SyntheticDigits
from raydp_sim.datasets.synthetic_writers import SyntheticWriters
from raydp_sim.errors import InputError
from raydp_sim.random import Stream

# A skewed pool: class c has 200 + 40 c samples.
LABELS = np.random.default_rng(5).permutation(np.repeat(np.arange(6), 200 + 40 * np.arange(6)))
DECK = Deck(LABELS, 6, np.random.default_rng(6).integers(0, 70, len(LABELS)))
EVERY = [
    {"kind": "iid"},
    {"kind": "dirichlet", "alpha": 0.2},
    {"kind": "dirichlet", "alpha": 1e-5},
    {"kind": "classes", "per_client": 2},
    {"kind": "classes", "per_client": 6},
    {"kind": "shards"},
    {"kind": "natural", "per_client": 2},
    {"kind": "unequal", "sigma": 1.0},
    {"kind": "unequal", "sigma": 2.0, "least": 4, "labels": {"kind": "dirichlet", "alpha": 0.3}},
    {"kind": "unequal", "numbers": [*range(1, 34)]},
]


def dealt(partition, clients, each=None, seed=1, deck=DECK):
    """Return sizes as known beforehand, sizes as dealt, and labels by client."""
    sizes = partition.sizes(deck, clients, each)
    hands = partition.deal(deck, sizes, Stream(seed))
    assert len(hands.samples) == hands.sizes.sum() <= len(deck.labels)
    assert len(np.unique(hands.samples)) == len(hands.samples)
    owner = np.repeat(np.arange(clients), hands.sizes)
    counts = np.zeros((clients, deck.classes), int)
    np.add.at(counts, (owner, deck.labels[hands.samples]), 1)
    return sizes, hands, counts


@pytest.mark.parametrize("document", EVERY, ids=str)
def test_everyone_gets_samples_of_their_own_and_sizes_do_not_depend_on_the_seed(document):
    partition = PARTITIONS.parse(document)
    (sizes, one, _), (again, two, _) = (dealt(partition, 33, seed=seed) for seed in (1, 2))
    assert sizes.tolist() == again.tolist()
    assert sorted(sizes) == sorted(one.sizes) == sorted(two.sizes)
    assert sizes.min() >= 1
    assert one.samples.tolist() != two.samples.tolist()
    assert dealt(partition, 33, seed=1)[1].samples.tolist() == one.samples.tolist()


@pytest.mark.parametrize("document", [one for one in EVERY if "numbers" not in one], ids=str)
def test_points_are_what_each_gets_or_their_mean(document):
    sizes, _, _ = dealt(PARTITIONS.parse(document), 20, each=12)
    if document["kind"] == "unequal":
        assert 12 * 20 - 20 < sizes.sum() <= 12 * 20
        assert sizes.min() >= document.get("least", 1)
        assert sizes.max() > 2 * np.median(sizes)
    else:
        assert sizes.tolist() == [12] * 20


def test_iid_uses_all_that_can_be_divided():
    sizes, _, counts = dealt(PARTITIONS.parse({"kind": "iid"}), 7)
    assert sizes.tolist() == [len(LABELS) // 7] * 7
    assert (DECK.stock - counts.sum(axis=0)).sum() == len(LABELS) % 7


def test_classes_are_exactly_so_many_and_equally_often():
    _, hands, counts = dealt(PARTITIONS.parse({"kind": "classes", "per_client": 3}), 13, each=20)
    assert ((counts > 0).sum(axis=1) == 3).all()
    assert set(counts[counts > 0]) == {6, 7}
    # In two blocks of six clients every class is held by three of each.
    assert ((counts[:12] > 0).sum(axis=0) == 6).all()
    assert (hands.sizes == 20).all()


def test_sets_of_classes_are_uniform():
    deck = Deck(np.repeat(np.arange(4), 6000), 4)
    _, _, counts = dealt(PARTITIONS.parse({"kind": "classes", "per_client": 2}), 12_000, 2, 3, deck)
    # Blocks of four clients are independent of each other; take the first of each.
    first = counts[::4] > 0
    for chosen in combinations(range(4), 2):
        times = first[:, chosen].all(axis=1).sum()
        # Binomial(3000, 1/6), sd 20.4: beyond 5.5 sd with probability 4e-8, six times.
        assert abs(times - 500) < 113


def test_the_rarest_class_limits_what_clients_of_few_classes_get():
    partition = PARTITIONS.parse({"kind": "classes", "per_client": 2})
    # 12 clients in blocks of 6: each class has 4 holders, the rarest 200 samples.
    assert partition.sizes(DECK, 12, None).tolist() == [100] * 12
    with pytest.raises(InputError, match=r"population\.data\.points is 101.*lower it to 100 or"):
        partition.sizes(DECK, 12, 101)
    assert partition.reach(DECK, 100) == 12
    dealt(partition, 12, 100)
    assert partition.reach(DECK, 101) < 12


def test_dirichlet_shares_go_from_one_class_to_alike():
    few, many = (PARTITIONS.parse({"kind": "dirichlet", "alpha": a}) for a in (1e-4, 1e5))
    _, _, skewed = dealt(few, 100, each=10)
    # No class runs out of 200 unless 21 of 100 clients choose it; then some hold two.
    assert np.mean((skewed > 0).sum(axis=1) == 1) > 0.8
    _, _, alike = dealt(many, 10, each=120)
    # Binomial(120, 1/6), sd 4.1: 60 counts beyond 6 sd with probability below 1e-6.
    assert np.abs(alike - 20).max() <= 25


def test_dirichlet_deals_the_last_sample():
    sizes, _, counts = dealt(PARTITIONS.parse({"kind": "dirichlet", "alpha": 0.1}), len(LABELS))
    assert sizes.tolist() == [1] * len(LABELS)
    assert counts.sum(axis=0).tolist() == DECK.stock.tolist()


def test_a_dirichlet_share_has_the_laws_variance():
    # Few samples of a huge pool, so that nothing runs out. Counts of class 0 are Beta-binomial.
    deck, alpha, n, clients = Deck(np.repeat(np.arange(3), 100_000), 3), 0.5, 8, 4000
    _, _, counts = dealt(
        PARTITIONS.parse({"kind": "dirichlet", "alpha": alpha}), clients, n, 9, deck
    )
    a, b = alpha, 2 * alpha
    variance = n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1))
    # Means of 4,000: 5.5 sd (1e-7). The fourth central moment is below 8^2 variance.
    assert abs(counts[:, 0].mean() - n / 3) < 5.5 * np.sqrt(variance / clients)
    assert abs(counts[:, 0].var() - variance) < 5.5 * np.sqrt(64 * variance / clients)


def test_two_shards_are_at_most_two_classes_where_shards_do_not_straddle():
    deck = Deck(np.repeat(np.arange(10), 600), 10)
    sizes, _, counts = dealt(PARTITIONS.parse({"kind": "shards"}), 100, None, 1, deck)
    assert sizes.tolist() == [60] * 100
    assert set((counts > 0).sum(axis=1)) == {1, 2}
    assert set(counts[counts > 0]) == {30, 60}


def test_natural_clients_hold_their_owners_samples():
    partition = PARTITIONS.parse({"kind": "natural", "per_client": 3})
    _, hands, _ = dealt(partition, 23)
    owner = np.repeat(np.arange(23), hands.sizes)
    assert (DECK.owners[hands.samples] // 3 == owner).all()
    assert len(hands.samples) == (DECK.owners < 69).sum()


def test_given_numbers_are_dealt_in_another_order():
    partition = PARTITIONS.parse({"kind": "unequal", "numbers": [5, 1, 9, 2]})
    _, hands, _ = dealt(partition, 4)
    assert sorted(hands.sizes) == [1, 2, 5, 9]


@pytest.mark.parametrize(
    "document,clients,each,message",
    [
        ({"kind": "iid"}, 1801, None, r"population\.clients is 1801; there are 1,800 samples"),
        ({"kind": "iid"}, 10, 181, r"population\.data\.points is 181; .* lower it to 180 or"),
        ({"kind": "dirichlet", "alpha": 1}, 1801, None, r"population\.clients is 1801"),
        ({"kind": "classes", "per_client": 7}, 9, None, r"per_client is 7; there are 6 classes"),
        ({"kind": "classes", "per_client": 3}, 9, 2, r"points is 2; a client needs one sample of"),
        ({"kind": "classes", "per_client": 3}, 900, None, r"rarest class has 200 samples, not one"),
        ({"kind": "shards"}, 901, None, r"in 2 shards a client, not one for each of 901 clients"),
        ({"kind": "shards", "per_client": 3}, 9, 10, r"points is 10; it must be a multiple of 3"),
        ({"kind": "natural"}, 71, None, r"clients is 71; there are 70 owners.*lower it to 70"),
        ({"kind": "natural"}, 70, 1000, r"points is 1000; some owners have fewer"),
        ({"kind": "unequal", "sigma": 1, "least": 100}, 19, None, r"100 at least for each"),
        ({"kind": "unequal", "sigma": 1}, 10, 181, r"points is 181; there are 1,800 samples"),
        ({"kind": "unequal", "numbers": [1, 2]}, 3, None, r"numbers is '2 numbers'; .* one for"),
        ({"kind": "unequal", "numbers": [1, 1800]}, 2, None, r"there are 1,800 samples"),
        ({"kind": "unequal", "numbers": [1, 2]}, 2, 5, r"points is 5; .*leave one of them out"),
    ],
    ids=str,
)
def test_what_cannot_be_dealt_is_refused_by_field(document, clients, each, message):
    with pytest.raises(InputError, match=message):
        PARTITIONS.parse(document).sizes(DECK, clients, each)


@pytest.mark.parametrize(
    "document,message",
    [
        ({"kind": "dirichlet", "alpha": 0}, "greater than 0"),
        ({"kind": "dirichlet", "alpha": -1.0}, "greater than 0"),
        ({"kind": "classes", "per_client": 0}, "greater than or equal to 1"),
        ({"kind": "unequal"}, "give sigma, or numbers"),
        ({"kind": "unequal", "sigma": 1, "numbers": [1]}, "not both"),
        ({"kind": "unequal", "sigma": 1, "labels": {"kind": "shards"}}, "sets sizes itself"),
    ],
    ids=str,
)
def test_impossible_parameters_are_refused(document, message):
    with pytest.raises(ValidationError, match=message):
        PARTITIONS.parse(document)


def test_samples_without_owners_have_no_natural_clients():
    with pytest.raises(InputError, match=r"partition\.kind is 'natural'; these samples have no"):
        SyntheticDigits(n=100, partition={"kind": "natural"}).among(3).shape()


@pytest.mark.parametrize("document", EVERY[:-1], ids=str)
def test_any_split_of_clients_is_dealt_the_same(document):
    data = SyntheticWriters(writers=70, samples=20, classes=6, test=1, personal_test=0.2)
    data = data.model_validate({**data.model_dump(), "partition": document}).among(33)
    ids, stream = np.arange(33, dtype=np.uint32), Stream(4)
    whole = data.hold(ids, stream)
    for part in (ids[:1], ids[5:9], ids[[30, 2, 17]], ids[::-1], ids[:0]):
        own = data.hold(part, stream)
        assert own.index.tolist() == whole.index[part].tolist()
        assert own.sizes.tolist() == whole.sizes[part].tolist()
        assert own.test.index.tolist() == whole.test.index[part].tolist()
    assert data.shape() == (whole.sizes.min(), 8, 8)
    assert label_counts(whole, 6).sum(axis=1).tolist() == whole.sizes.tolist()
