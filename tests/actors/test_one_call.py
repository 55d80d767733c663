"""A release that is collected and closed in one call, paid for by reference and asked for ahead.

With two shufflers none of this is done, and the results must be the same: that is what the rounds
below are compared with.
"""

import random

import pytest

from raydp_sim.actors.aggregator import AggregatorActor, ServerActor
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.ledger import LedgerActor
from raydp_sim.errors import RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import run
from tests.actors.scrambled import Scrambled
from tests.conftest import assert_identical, scenario, with_placement

ROUNDS = 9
POLICIES = {
    "uniform": {"kind": "uniform", "sampled": 60},
    "self": {"kind": "self", "probability": 0.5},
    "everyone": {"kind": "all"},
}


def following(kind="Following", policy="uniform", **sections):
    task = {"kind": f"tests.actors.following:{kind}", "rounds": ROUNDS}
    availability = {"kind": "bernoulli", "probability": 0.5}
    data = {"kind": "gaussian", "dimension": 6, "clip": 1.0}
    people = {"clients": 200, "data": data, "availability": availability}
    # Close to what comes, where clients decide for themselves, so that some are withheld.
    least = 48 if policy == "self" else 30
    given = {"participation": POLICIES[policy], "shuffle": {"min_batch": least}, **sections}
    return scenario(task=task, population=people, **given)


class Late(Scrambled):
    """The driver looks only when nobody has anything left to do, and at all answers."""

    def wait(self, refs):
        while any(queue and self._can_run(queue[0]) for queue in self.queues.values()):
            self._run_one()
        return [ref for ref in refs if ref.done]


def conducted(base, folder, seed, disturb=lambda crew, row: None, backend=None):
    """Play on a backend that answers in any order; return the rows and the calls made."""
    backend, calls = backend or Scrambled(seed), []
    backend.watch = lambda method, args: calls.append(method)
    crew = Crew(with_placement(base, clients_per_actor=60), backend, folder)
    crew.begin(0, 0, None)
    (folder / "ledger").mkdir()
    rows, conductor = [], Conductor(crew)
    for row in conductor.play(ROUNDS):
        rows.append(row)
        disturb(backend, crew)
    return rows, calls, conductor


def expected(base, folder):
    """Return the rows with two shufflers, one call after the other."""
    return run(with_placement(base, 2), out=folder).metrics.to_pylist()


@pytest.mark.parametrize(
    "kind,policy",
    [
        *(("Following", policy) for policy in POLICIES),
        ("Alternating", "uniform"),
        ("Alternating", "everyone"),
    ],
)
def test_rows_are_those_of_two_shufflers(kind, policy, tmp_path):
    base = following(kind, policy)
    rows, calls, _ = conducted(base, tmp_path, 1)
    assert rows == expected(base, tmp_path / "two")
    assert calls.count("gather") == ROUNDS and "collect" not in calls and "close" not in calls
    if policy == "self":
        assert len(rows) < ROUNDS, "no batch was too small"


@pytest.mark.parametrize("kind", ["Following", "Alternating", "Ending"])
def test_a_driver_that_comes_late_to_all_answers_gets_the_same_rows(kind, tmp_path):
    base = following(kind)
    rows, _, _ = conducted(base, tmp_path, 1, backend=Late(1))
    assert rows == expected(base, tmp_path / "two")


def test_what_was_prepared_for_another_ask_is_dropped(tmp_path):
    (tmp_path / "alike").mkdir()
    (tmp_path / "other").mkdir()
    _, alike, _ = conducted(following("Following"), tmp_path / "alike", 1)
    _, other, _ = conducted(following("Alternating"), tmp_path / "other", 1)
    assert alike.count("choose_all") == ROUNDS < other.count("choose_all")
    assert alike.count("reports") < other.count("reports")


def test_a_task_that_ends_the_run_leaves_nothing_half_done(tmp_path):
    base = following("Ending")
    rows, calls, conductor = conducted(base, tmp_path, 2)
    assert conductor.done and len(rows) == 3 and calls.count("pay") == 3
    assert rows == expected(base, tmp_path / "two")
    # Clients were asked for a fourth by reference, and told nothing.
    assert calls.count("gather") == 3 < calls.count("choose_all")


@pytest.mark.parametrize("policy", ["uniform", "everyone"])
@pytest.mark.parametrize("seed", range(3))
def test_a_client_actor_that_dies_leaves_the_same_rows(seed, policy, tmp_path):
    base, dice = following("Following", policy), random.Random(seed)

    def kill(backend, crew):
        if dice.random() < 0.4:
            backend.kill(crew.clients[dice.randrange(len(crew.clients))])

    rows, calls, conductor = conducted(base, tmp_path, seed, kill)
    assert sum(conductor.crew.epochs) >= 1 and "take" in calls
    assert rows == expected(base, tmp_path / "two")


@pytest.mark.parametrize("trust", ["shuffle", "central"])
@pytest.mark.parametrize("seed", range(3))
def test_no_reader_is_handed_a_batch_before_its_charge_is_on_disk(
    seed, trust, tmp_path, monkeypatch
):
    mechanism = {
        "kind": "central-laplace",
        "radius": 1.0,
        "epsilon": 1.0,
        "on_out_of_range": "clip",
    }
    more = {} if trust == "shuffle" else {"trust": trust, "mechanism": mechanism}
    reader = AggregatorActor if trust == "shuffle" else ServerActor
    step, released = reader.step, []

    def checking(self, release, *rest):
        assert release in store.read(tmp_path / "ledger")["release"].to_pylist()
        released.append(release)
        return step(self, release, *rest)

    monkeypatch.setattr(reader, "step", checking)
    rows, _, _ = conducted(following(**more), tmp_path, seed)
    assert released == [row["release"] for row in rows] and len(rows) == ROUNDS


def test_a_charge_that_is_refused_releases_nothing(tmp_path, monkeypatch):
    charge, stepped = LedgerActor._charge, []

    def refusing(self, release, *rest):
        if release == 2:
            raise RunError("refused")
        return charge(self, release, *rest)

    monkeypatch.setattr(LedgerActor, "_charge", refusing)
    step = AggregatorActor.step
    monkeypatch.setattr(
        AggregatorActor,
        "step",
        lambda self, release, *rest: stepped.append(release) or step(self, release, *rest),
    )
    with pytest.raises(RunError, match="refused"):
        conducted(following(), tmp_path, 3)
    assert stepped == [0, 1]


def test_batches_too_small_never_leave_the_shuffler(tmp_path, monkeypatch):
    folded, fold = [], AggregatorActor.fold

    def noting(self, release, *parts):
        folded.append(release)
        return fold(self, release, *parts)

    monkeypatch.setattr(AggregatorActor, "fold", noting)
    rows, _, conductor = conducted(following(policy="self"), tmp_path, 4)
    conductor.crew.ask(conductor.crew.metrics, "flush")
    withheld = streams.read(tmp_path / "metrics", "withheld")["release"].to_pylist()
    assert withheld and sorted(folded + withheld) == list(range(ROUNDS))
    assert folded == [row["release"] for row in rows]
    assert not conductor.crew.collectors[0].closed


@pytest.mark.cluster
def test_ray_gives_what_inline_gives(tmp_path, ray_session):
    base = following("Alternating")
    run(base, out=tmp_path / "inline")
    run(with_placement(base, backend="ray", clients_per_actor=100), out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")


def test_a_batch_of_several_chunks_waits_for_its_charge_at_the_shuffler(tmp_path, monkeypatch):
    from raydp_sim.stream import shuffle

    monkeypatch.setattr(shuffle, "_CHUNK_BYTES", 16)
    base = following()
    rows, calls, _ = conducted(base, tmp_path, 6)
    assert rows == expected(base, tmp_path / "two")
    assert calls.count("gather") == calls.count("charge") == ROUNDS and "pay" not in calls
    first = [calls.index("chunk"), calls.index("charge")]
    assert first == sorted(first, reverse=True)
