"""Labelled data: what is held out, personal tests, sharing, groups, memory, and the stand-ins."""

import numpy as np
import pytest
from pydantic import ValidationError

from raydp_sim.datasets.base import HELD_OUT, Hidden
from raydp_sim.datasets.holdings import label_counts
from raydp_sim.datasets.labelled import Labelled
from raydp_sim.datasets.synthetic_digits import SyntheticDigits
from raydp_sim.datasets.synthetic_writers import SyntheticWriters
from raydp_sim.errors import InputError
from raydp_sim.models.linear import Linear
from raydp_sim.random import Stream
from raydp_sim.run.preflight import plan
from raydp_sim.scenario import parse


def everyone(data, clients, seed=1):
    return data.hold(np.arange(clients, dtype=np.uint32), Stream(seed))


def own(held):
    """Numbers of the samples that clients really hold."""
    return held.index[np.arange(held.index.shape[1]) < held.sizes[:, None]]


def document(clients=40, **population):
    return {
        "name": "labelled",
        "population": {"clients": clients, **population},
        "task": {"kind": "tests.datasets.label_share:LabelShare", "rounds": 2},
        "mechanism": {"kind": "laplace", "radius": 1.0, "epsilon_local": 2.0},
        "placement": {"backend": "inline"},
    }


def test_the_stand_in_is_the_specified_one_sample_by_sample():
    pool = SyntheticDigits(n=50, side=9, classes=4).train()
    draw, base = np.random.default_rng(12345), np.zeros((4, 9, 9))
    grid = np.arange(9)
    for image in base:
        for _ in range(3):
            cy, cx = draw.uniform(0, 9, 2)
            w = draw.uniform(0.1, 0.2) * 9
            image += np.exp(-((grid[:, None] - cy) ** 2 + (grid - cx) ** 2) / (2 * w * w))
        image /= image.max()
    draw = np.random.default_rng(1)
    labels = (np.arange(50) % 4)[draw.permutation(50)]
    shifts = draw.integers(-1, 2, (50, 2))
    x = np.stack([np.roll(base[c], s, axis=(0, 1)) for c, s in zip(labels, shifts, strict=True)])
    x = np.clip(x + 0.25 * draw.standard_normal((50, 9, 9)), 0, 1)
    assert pool.labels.tolist() == labels.tolist()
    np.testing.assert_allclose(pool.features, x, atol=1e-7)


def test_writers_have_styles_of_their_own():
    data = SyntheticWriters(samples=400, classes=2, writers=30)
    pool = data.train()
    assert np.bincount(pool.owners).tolist() == [400] * 30
    means = pool.features.reshape(30, -1).mean(axis=1)
    within = pool.features.reshape(30, 400, -1).mean(axis=2).std(axis=1).max() / np.sqrt(400)
    assert means.std() > 5 * within  # writers differ by far more than their samples explain
    test = data.tested().features.reshape(30, -1).mean(axis=1)
    assert np.corrcoef(means, test)[0, 1] > 0.95  # the same writers
    assert SyntheticWriters().labels() == 62 and SyntheticWriters().writers == 198


@pytest.mark.parametrize("validation,count", [(0.1, 100), (0.29, 290), (7, 7), (0, 0)])
def test_nobody_holds_what_is_held_out(validation, count):
    data = SyntheticDigits(n=1000, validation=validation, personal_test=2).among(30)
    held, held_out = everyone(data, 30), data.held_out()
    kept = data._split.validation
    assert len(kept) == count
    assert not set(kept) & set(own(held)) and not set(own(held.test)) & set(own(held))
    assert not set(kept) & set(own(held.test))
    assert (held_out.validation() is None) == (count == 0)
    if count:
        features, labels = held_out.validation()
        assert (
            features.dtype == np.float32 and labels.tolist() == data.train().labels[kept].tolist()
        )
    assert len(held_out.test().labels) == 10_000
    # The scenario's seed deals anew and holds out the same.
    other = SyntheticDigits(n=1000, validation=validation).among(10)
    assert other._split.validation.tolist() == kept.tolist()
    if count:
        another = SyntheticDigits(n=1000, validation=validation, split_seed=1).among(10)
        assert another._split.validation.tolist() != kept.tolist()


def test_held_out_samples_travel_in_a_document_and_are_made_once():
    data = SyntheticDigits(n=300, validation=0.5, test=20).among(10)
    hidden = Hidden(of=data.shape(), classes=data.labels(), public=data.held_out())
    again = HELD_OUT.parse(HELD_OUT.dump(hidden.held_out()))
    for one, two in zip(again.validation(), data.held_out().validation(), strict=True):
        assert one.tolist() == two.tolist()
    assert again.test() is again.test()
    with pytest.raises(InputError, match="hidden"):
        hidden.values(np.arange(2), Stream(1))


@pytest.mark.parametrize(
    "wanted,points,train,test",
    [
        (40, 60, 60, 40),
        (0.4, 60, 60, 40),
        (0.25, 600, 600, 200),
        (0.25, None, 75, 25),
        (3, None, 97, 3),
    ],
)
def test_personal_tests_are_beside_the_points_that_are_asked_for(wanted, points, train, test):
    data = SyntheticDigits(n=10_000 if points == 600 else 1000, points=points, personal_test=wanted)
    data = data.among(10)
    held = everyone(data, 10)
    assert set(held.sizes) == {train} and set(held.test.sizes) == {test}
    assert data.shape()[0] == train


@pytest.mark.parametrize("test,partition", [(8, "iid"), (0.2, "iid"), (8, "classes")])
def test_choosing_on_own_samples_leaves_everyone_the_same_test(test, partition):
    fields = {"n": 4000, "personal_test": test}
    if partition == "classes":
        fields["partition"] = {"kind": "classes", "per_client": 3}
    final = SyntheticDigits(points=32, **fields).among(30)
    choosing = SyntheticDigits(points=26, personal_validation=6, **fields).among(30)
    held, chosen = everyone(final, 30), everyone(choosing, 30)
    assert held.validation is None
    assert set(chosen.sizes) == {26} and set(chosen.validation.sizes) == {6}
    assert chosen.test.index.tolist() == held.test.index.tolist()
    assert np.hstack([chosen.index, chosen.validation.index]).tolist() == held.index.tolist()
    assert "26 each" in choosing.said()
    assert "; 6 more of their own to choose by; 8 more" in choosing.said()
    part = choosing.hold(np.array([7, 3], np.uint32), Stream(1))
    assert part.validation.index.tolist() == chosen[[7, 3]].validation.index.tolist()


def test_fractions_that_leave_nothing_are_refused_before_anything_is_dealt():
    fields = {"n": 400, "points": 10, "personal_validation": 0.5}
    with pytest.raises(
        ValidationError, match=r"0\.5 and personal_test 0\.5; as fractions they must"
    ):
        SyntheticDigits(**fields, personal_test=0.5)
    assert SyntheticDigits(**fields, personal_test=0.4).among(4).shape()[0] == 10


def test_personal_samples_leave_everyone_something():
    with pytest.raises(
        InputError, match=r"validation is 6\.0; with personal_test 4 a client with 10"
    ):
        SyntheticDigits(n=100, personal_validation=6, personal_test=4).among(10).shape()
    with pytest.raises(InputError, match=r"personal_test is 10\.0; a client with 10 samples has"):
        SyntheticDigits(n=100, personal_test=10).among(10).shape()
    with pytest.raises(InputError, match=r"personal_test is 0\.5; a client with 1 samples has"):
        SyntheticDigits(n=10, personal_test=0.5).among(10).shape()


def test_sharing_has_to_be_said_and_only_further_deals_share():
    data = SyntheticDigits(n=120, points=10)
    with pytest.raises(InputError, match=r"points is 10; there are 120 samples for 40 clients"):
        data.among(40).shape()
    shared = SyntheticDigits(n=120, points=10, overlap=True).among(40)
    held = everyone(shared, 40)
    for first in range(0, 40, 12):
        assert len(set(own(held[first : first + 12]))) == held.sizes[first : first + 12].sum()
    assert held.index[0].tolist() != held.index[12].tolist()
    assert "dealt 4 times" in shared.said()
    late = shared.hold(np.array([39, 13], np.uint32), Stream(1))
    assert late.index.tolist() == held.index[[39, 13]].tolist()
    with pytest.raises(InputError, match=r"points is None; with population\.data\.overlap"):
        SyntheticDigits(n=120, overlap=True).among(40).shape()


def test_repetitions_deal_anew_and_say_what_is_unused():
    data = SyntheticDigits(n=103).among(10)
    assert everyone(data, 10, 1).index.tolist() != everyone(data, 10, 2).index.tolist()
    assert "10 each (iid); 3 unused; 10,000 for the test" in data.said()


def test_only_some_classes():
    data = SyntheticDigits(n=1000, only=(7, 2)).among(10)
    counts = label_counts(everyone(data, 10), 10)
    assert counts.sum(axis=0).nonzero()[0].tolist() == [2, 7]
    with pytest.raises(InputError, match=r"only is \[11\]; classes are numbered from 0 to 9"):
        SyntheticDigits(n=1000, only=(11,)).among(10).shape()


@pytest.mark.parametrize(
    "fields",
    [{"validation": 1.5}, {"personal_test": -1}, {"only": ()}, {"only": (1, 1)}, {"points": 0}],
    ids=str,
)
def test_impossible_fields_are_refused(fields):
    with pytest.raises(ValidationError):
        SyntheticDigits(**fields)


def test_validation_leaves_something():
    with pytest.raises(InputError, match=r"validation is 100\.0; there are 100 samples"):
        SyntheticDigits(n=100, validation=100).among(2).shape()


def test_groups_keep_samples_to_choose_by_if_all_do():
    base = {"kind": "synthetic-digits", "n": 2000, "points": 20, "personal_validation": 5}
    few = {**base, "only": [0, 1], "overlap": True}
    classes = [{"name": "phone", "share": 1.0}, {"name": "server", "share": 1.0}]
    scenario = parse(document(data=base, classes=classes, group_data={"phone": few}))
    ids, root = np.arange(40, dtype=np.uint32), scenario.stream(0)
    held = scenario.population.hold(ids, root)
    phone = scenario.population.members(ids, root) == 0
    assert held.test is None and (held.validation.sizes == 5).all()
    assert label_counts(held.validation, 10)[phone][:, 2:].sum() == 0
    without = {name: value for name, value in few.items() if name != "personal_validation"}
    with pytest.raises(InputError, match="personal_test and personal_validation if it has them"):
        given = document(data=base, classes=classes, group_data={"phone": without})
        parse(given).population.hold(ids, root)


def test_groups_hold_other_labels_of_the_same_pool():
    base = {"kind": "synthetic-digits", "n": 4000, "points": 20}
    few = {**base, "only": [0, 1], "overlap": True}
    classes = [{"name": "phone", "share": 1.0}, {"name": "server", "share": 1.0}]
    given = document(data=base, classes=classes, group_data={"phone": few})
    scenario = parse(given)
    population, root = scenario.population, scenario.stream(0)
    ids = np.arange(40, dtype=np.uint32)
    counts = label_counts(population.hold(ids, root), 10)
    phone = population.members(ids, root) == 0
    assert counts[phone][:, 2:].sum() == 0 and counts[~phone][:, 2:].sum() > 0
    assert (counts.sum(axis=1) == 20).all()
    part = population.hold(ids[7:20], root)
    assert label_counts(part, 10).tolist() == counts[7:20].tolist()
    given["population"]["group_data"]["phone"] = {**few, "n": 5000}
    with pytest.raises(InputError, match=r"group_data must be of the data set that"):
        parse(given)
    given["population"]["group_data"]["phone"] = {**few, "points": 21}
    with pytest.raises(InputError, match=r"group_data\.phone: its shape is \(21, 8, 8\)"):
        parse(given)


def test_memory_is_that_of_the_pool_and_of_numbers():
    data = SyntheticDigits(n=60_000, points=60).among(1000)
    pool = 60_000 * (64 * 4 + 8)
    assert data.memory(1000, 2) == 2 * pool + 1000 * 62 * 8
    held = everyone(data, 1000)
    assert held.nbytes == 1000 * 61 * 8
    assert everyone(data, 1000).pool is held.pool  # one for all clients of a process
    scenario = parse(document(clients=1000, data={"kind": "synthetic-digits", "points": 60}))
    assert pool < plan(scenario, 1).memory < 2 * pool


def test_a_task_that_takes_vectors_refuses_samples():
    given = document(data={"kind": "synthetic-digits", "n": 400}) | {"task": {"kind": "mean"}}
    with pytest.raises(InputError, match="labelled samples, which only a task that trains a model"):
        parse(given)


def test_more_clients_than_samples_are_refused_by_field():
    with pytest.raises(InputError, match=r"population\.clients is 40; there are 30 samples"):
        parse(document(data={"kind": "synthetic-digits", "n": 30}))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"train_labels": [0, -1, 2]}, "sample 1 for training has label -1; classes are numbered"),
        ({"test_labels": [0, 3]}, "sample 1 for the test has label 3; .* have classes 0 to 2: "),
        ({"test_labels": [0, -1]}, "sample 1 for the test has label -1; classes are numbered"),
        ({"of": "float64"}, "labels for training are float64; number classes"),
    ],
)
def test_labels_that_are_no_classes_are_refused_before_anything_is_played(given, message):
    """A loss would be read from the logits of another sample, and a test's number be wrong."""
    own = {"kind": "tests.datasets.own_labels:OwnLabels"}
    mechanism = {"radius": 1.0, "epsilon_local": 2.0, "on_out_of_range": "clip"}
    changed = document(clients=10, data=own)
    changed |= {"task": {"kind": "fedavg"}, "mechanism": {"kind": "rinf", **mechanism}}
    plan(parse(changed), 1)
    changed["population"]["data"] = own | given
    with pytest.raises(InputError, match=message):
        plan(parse(changed), 1)


def test_numbers_of_samples_may_be_of_any_whole_type():
    pool = np.arange(8, dtype=np.uint8).reshape(4, 2)
    index = np.array([[3, 1], [0, 2]])
    held = [
        Labelled(pool, np.arange(4), index.astype(kind), np.full(2, 2)) for kind in ("i4", "i8")
    ]
    network, weights = Linear().network((2,), 4), np.full((2, 2), 0.5, np.float32)
    found = [network.slope(np.ones(12, np.float32), each.chosen(), weights) for each in held]
    np.testing.assert_array_equal(found[0].gradient, found[1].gradient)
