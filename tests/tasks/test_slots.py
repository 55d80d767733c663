"""Slots: the shuffler assigns them at random and in secret; readers get batches slot by slot."""

import numpy as np
import pytest

from raydp_sim.actors.shuffler import ShufflerActor
from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism
from raydp_sim.stream.batches import Slotted
from raydp_sim.tasks.base import Ask
from tests.conftest import placed_everywhere, with_placement
from tests.tasks.test_protocol import own, people

BIT = {"kind": "2rr", "epsilon_local": 1.0}
TWO = {"kind": "linf", "radius": 1.0, "epsilon_local": 1.0, "coordinates": 1}


def arms(**sections):
    fields = {"echo": sections.pop("echo", False), "slots": sections.pop("slots", [4, 8, 12])}
    return own("Arms", fields=fields, mechanism=sections.pop("mechanism", BIT), **sections)


def test_slots_are_assigned_uniformly():
    """Each of 10 clients has slot j in a share of all releases that is the slot's of the cohort.

    30 counts over 3000 releases, each within 5.6 standard deviations of a binomial: a false alarm
    has probability below 30 * 2.2e-8 < 1e-6.
    """
    base = arms(slots=[2, 3, 5], population=people(10, 3))
    shuffler = ShufflerActor(base.document())
    shuffler.plan(None, None)
    ask, counts = Ask(bound_mechanism(base), slots=(2, 3, 5)), np.zeros((10, 3))
    for release in range(3000):
        (_, sources), cohort = shuffler.choose(release, 0.0, 10, ask, None)
        assert sources == [0] and np.bincount(cohort.slots).tolist() == [2, 3, 5]
        counts[cohort.ids, cohort.slots] += 1
    share = np.array([2, 3, 5]) / 10
    assert (np.abs(counts - 3000 * share) < 5.6 * np.sqrt(3000 * share * (1 - share))).all()


@pytest.mark.parametrize("shufflers", [1, 3])
def test_the_reader_is_handed_every_slot_s_reports_in_the_order_of_slots(
    shufflers, tmp_path, monkeypatch
):
    """At epsilon 20 a bit is flipped with probability 2e-9; 120 reports, so a false alarm 2e-7."""
    from tests.tasks.examples import Arms

    seen, fold = [], Arms.fold

    def noting(self, setting, ask, reader, accumulator, batch):
        assert type(batch) is Slotted
        seen.append((batch.slot, batch.payload))
        return fold(self, setting, ask, reader, accumulator, batch)

    monkeypatch.setattr(Arms, "fold", noting)
    base = arms(echo=True, rounds=5, mechanism={**BIT, "epsilon_local": 20.0})
    run(with_placement(base, shufflers, clients_per_actor=7), out=tmp_path / "run")
    assert len(seen) == 5
    for slot, payload in seen:
        assert (np.diff(slot) >= 0).all() and np.bincount(slot).tolist() == [4, 8, 12]
        # Clients said whether the slot that they were shown is odd.
        assert (payload == slot % 2).all()


def test_slots_do_not_depend_on_placement(tmp_path):
    result = placed_everywhere(arms(population=people(60, 3)), tmp_path, stop=2)
    rows = streams.read(tmp_path / "base" / "metrics", "arms")
    assert rows["served"].to_pylist() == [4, 8, 12] * 4
    assert (rows["no"].to_numpy() + rows["yes"].to_numpy()).tolist() == [4, 8, 12] * 4
    assert result.metrics["batch_size"].to_pylist() == [24] * 4
    assert streams.visibility(rows.schema) == "released"


def test_drop_outs_leave_slots_short(tmp_path):
    base = arms(
        rounds=8,
        population=people(60, 3, dropout=0.3),
        participation={"kind": "all", "deadline": 10.0},
    )
    result = placed_everywhere(base, tmp_path, stop=3)
    served = streams.read(tmp_path / "base" / "metrics", "arms")["served"].to_numpy()
    by_release = served.reshape(8, 3)
    assert (by_release <= [4, 8, 12]).all() and (by_release < [4, 8, 12]).any(axis=0).all()
    assert by_release.sum(axis=1).tolist() == result.metrics["batch_size"].to_pylist()


def test_a_slotted_batch_is_a_shuffle_of_no_named_law(tmp_path):
    """Slots ask different questions, so that bounds that know one law of all messages are out."""
    base = arms(rounds=1, population=people(60, 3))
    run(base, out=tmp_path / "run")
    (row,) = store.charges(tmp_path / "run" / "ledger")
    assert type(row.shuffled).__name__ == "Shuffle" and row.shuffled.randomizer is None
    assert row.shuffled.n <= 24 and bound_mechanism(base).randomizer() is not None


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_clients_that_come_when_they_can_are_gathered_before_slots_are_handed_out(trust, tmp_path):
    """A batch of 24 is asked at once when the last of them has checked in, so nobody is late."""
    base = arms(
        trust=trust,
        population=people(60, 3, latency={"kind": "lognormal", "median": 2.0, "sigma": 0.5}),
        participation={"kind": "asynchronous", "batch": 5, "every": 9.0},
    )
    result = placed_everywhere(base, tmp_path, stop=2)
    rows = result.metrics.to_pylist()
    assert [row["batch_size"] for row in rows] == [24] * 4
    assert all(row["late"] == row["stalest"] == 0 for row in rows)
    # 24 of 60 check in within about two fifths of a period, and then they work.
    assert all(1.0 < row["time"] - row["opened"] < 30.0 for row in rows)
    served = streams.read(tmp_path / "base" / "metrics", "arms")["served"]
    assert served.to_pylist() == [4, 8, 12] * 4


def test_no_slot_is_handed_out_before_there_are_clients_for_all(tmp_path):
    """Half of 40 clients are there at a time: 24 seldom, and fewer are not asked."""
    coins = {"kind": "bernoulli", "probability": 0.5}
    base = arms(rounds=40, population=people(40, 3, availability=coins))
    result = placed_everywhere(base, tmp_path, stop=1)
    kept = streams.read(tmp_path / "base" / "metrics", "withheld").to_pylist()
    assert kept and all(row["asked"] == row["reports"] == 0 for row in kept)
    assert set(result.metrics["batch_size"].to_pylist()) <= {24}
    waiting = arms(
        rounds=3,
        population=people(40, 3, availability=coins),
        participation={"kind": "all", "on_short": "wait"},
    )
    result = run(waiting, out=tmp_path / "waiting")
    assert result.metrics["batch_size"].to_pylist() == [24] * 3
    assert (result.metrics["time"].to_numpy() - result.metrics["opened"].to_numpy()).max() >= 1.0


@pytest.mark.parametrize(
    "sections,words",
    [
        (
            {
                "population": people(60, 3, dropout=0.1),
                "participation": {"kind": "asynchronous", "batch": 5, "every": 9.0},
            },
            "participation.deadline is None; give one: task 'arms' assigns slots, clients drop out",
        ),
        (
            {"participation": {"kind": "over-selected", "sampled": 5}},
            "participation.kind is 'over-selected'; this task asks for batches of its own size",
        ),
        (
            {"mechanism": {**TWO, "levels": 2}},
            "mechanism.kind is 'linf'; task 'arms' assigns slots, which take reports of one",
        ),
    ],
)
def test_slots_are_refused_where_they_cannot_be(sections, words):
    with pytest.raises(InputError, match=words):
        arms(**{"population": people(60, 3), **sections})
    assert arms(population=people(60, 3), mechanism={**TWO, "levels": 1})
