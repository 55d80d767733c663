"""Spans: one call carries several releases, and no result depends on how many.

What the rounds below are compared with has two shufflers, where every release goes by itself.
"""

import gc
import json
import os
import random
import signal
import subprocess
import sys
from itertools import pairwise

import pytest

from raydp_sim.actors.aggregator import AggregatorActor, ServerActor
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.dispatch import Span
from raydp_sim.actors.ledger import LedgerActor
from raydp_sim.actors.pace import Pace
from raydp_sim.errors import RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy.events import LocalReport
from raydp_sim.privacy.ledger import store
from raydp_sim.run import prepare, reopen, run
from raydp_sim.scenario.sections import Placement
from tests.actors.scrambled import Scrambled
from tests.actors.test_faults import KILLED
from tests.conftest import assert_identical, interrupted, scenario, with_placement

ROUNDS = 18
SPANS = (1, 2, 5, 16)
LAPLACE = {"kind": "central-laplace", "radius": 1.0, "epsilon": 1.0, "on_out_of_range": "clip"}
# Sizes close to what comes, so that some batches are withheld in those that say so.
WAYS = {
    "self": ({"kind": "self", "probability": 0.5}, 44, {}),
    "everyone": ({"kind": "all"}, 95, {}),
    "uniform": ({"kind": "uniform", "sampled": 60}, 30, {}),
    "over-selected": (
        {"kind": "over-selected", "sampled": 30, "deadline": 30.0, "interval": 40.0},
        10,
        {"latency": {"kind": "lognormal", "median": 20.0, "sigma": 1.0}},
    ),
}


def mean(way="uniform", trust="shuffle", **sections):
    policy, least, more = WAYS[way]
    people = {
        "clients": 200,
        "data": {"kind": "gaussian", "dimension": 6, "clip": 1.0},
        "availability": {"kind": "bernoulli", "probability": 0.5},
        **more,
    }
    given = {"participation": policy, "shuffle": {"min_batch": least}, "trust": trust, **sections}
    if trust == "central":
        given["mechanism"] = LAPLACE
    return scenario(rounds=ROUNDS, population=people, **given)


def spanning(base, span, **placement):
    return with_placement(base, clients_per_actor=60, span=span, **placement)


def conducted(base, folder, seed=1, disturb=lambda backend, crew: None):
    """Play on a backend that answers in any order; return the rows and the calls made."""
    backend, calls = Scrambled(seed), []
    backend.watch = lambda method, args: calls.append((method, args))
    folder.mkdir(exist_ok=True)
    crew = Crew(base, backend, folder)
    crew.begin(0, 0, None)
    (folder / "ledger").mkdir()
    rows, conductor = [], Conductor(crew)
    for row in conductor.play(ROUNDS):
        rows.append(row)
        disturb(backend, crew)
    return rows, calls, crew


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Runs in which every release goes by itself, made when first asked for."""
    made = {}

    def of(way, trust="shuffle"):
        if (way, trust) not in made:
            folder = tmp_path_factory.mktemp("expected") / f"{way}-{trust}"
            shufflers = 2 if trust == "shuffle" else 1
            run(with_placement(mean(way, trust), shufflers, span=1), out=folder)
            made[way, trust] = folder
        return made[way, trust]

    return of


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("way", WAYS)
def test_results_do_not_depend_on_the_span(way, span, expected, tmp_path):
    """The run directory's tables, ledger and last checkpoint are the same bytes."""
    run(spanning(mean(way), span), out=tmp_path / "run")
    assert_identical(expected(way), tmp_path / "run")
    withheld = streams.read(tmp_path / "run" / "metrics", "withheld").num_rows
    assert (withheld > 0) == (way in ("self", "everyone"))


def test_batches_are_let_go_of_without_looking_for_circles(tmp_path):
    """Else they stay in the object store, and each span takes fresh pages of it."""
    gc.collect()
    gc.disable()
    try:
        conducted(spanning(mean(), 5), tmp_path / "run")
        # By type: lazy objects of other libraries act when they are asked what they are.
        assert not [each for each in gc.get_objects() if type(each) is Span]
    finally:
        gc.enable()


@pytest.mark.parametrize("trust", ["local", "central"])
def test_a_server_that_collects_by_itself_makes_spans_too(trust, tmp_path):
    run(spanning(mean(trust=trust), 1), out=tmp_path / "one")
    run(spanning(mean(trust=trust), 5), out=tmp_path / "five")
    assert_identical(tmp_path / "one", tmp_path / "five")


def test_a_task_may_overwrite_what_it_made_public_before(tmp_path):
    """What a release made public is what it was when it was made, whoever else is in its span."""
    base = mean(task={"kind": "tests.actors.in_place:InPlace", "rounds": ROUNDS})
    run(spanning(base, 1), out=tmp_path / "one")
    run(spanning(base, 5), out=tmp_path / "five")
    assert_identical(tmp_path / "one", tmp_path / "five")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("span", SPANS)
def test_whatever_is_answered_first_the_rows_are_the_same(seed, span, expected, tmp_path):
    rows, calls, _ = conducted(spanning(mean(), span), tmp_path, seed)
    assert rows == reopen(expected("uniform")).result.metrics.to_pylist()
    # The first release shows what is asked; those that are asked for before it is made go alone.
    sizes = [len(args[0]) for method, args in calls if method == "gather"]
    assert sum(sizes) == ROUNDS and max(sizes) == min(span, max(sizes[3:])) and sizes[0] == 1
    assert len(sizes) <= 3 + -(-(ROUNDS - 3) // span) and (span == 1 or len(sizes) < ROUNDS)
    counted = [method for method, _ in calls]
    assert counted.count("pay") == counted.count("steps") == counted.count("records") == len(sizes)
    assert "collect" not in counted and "charge" not in counted and "step" not in counted


@pytest.mark.parametrize("span", [2, 5, 16])
@pytest.mark.parametrize("way", ["self", "uniform", "everyone"])
@pytest.mark.parametrize("seed", range(3))
def test_a_client_actor_that_dies_in_the_middle_changes_nothing(
    seed, way, span, expected, tmp_path
):
    dice, killed = random.Random(seed), []

    def kill(backend, crew):
        if len(killed) < 4 and dice.random() < 0.4:
            victim = dice.randrange(len(crew.clients))
            backend.kill(crew.clients[victim])
            killed.append(victim)

    rows, calls, crew = conducted(spanning(mean(way), span), tmp_path, seed, kill)
    assert rows == reopen(expected(way)).result.metrics.to_pylist()
    assert killed and (sum(crew.epochs) >= 1) == ("take" in [method for method, _ in calls])


@pytest.mark.parametrize("trust", ["shuffle", "central"])
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_released_before_its_charge_is_on_disk(seed, trust, tmp_path, monkeypatch):
    reader = AggregatorActor if trust == "shuffle" else ServerActor
    step, released = reader.step, []

    def checking(self, release, *rest):
        assert release in store.read(tmp_path / "ledger")["release"].to_pylist()
        released.append(release)
        return step(self, release, *rest)

    monkeypatch.setattr(reader, "step", checking)
    conducted(spanning(mean(trust=trust), 5), tmp_path, seed)
    assert released == list(range(ROUNDS))


def test_a_refused_charge_releases_nothing_of_its_span(tmp_path, monkeypatch):
    charge, stepped, step = LedgerActor._charge, [], AggregatorActor.step

    def refusing(self, release, *rest):
        if release == 9:
            raise RunError("refused")
        return charge(self, release, *rest)

    def noting(self, release, *rest):
        stepped.append(release)
        return step(self, release, *rest)

    monkeypatch.setattr(LedgerActor, "_charge", refusing)
    monkeypatch.setattr(AggregatorActor, "step", noting)
    with pytest.raises(RunError, match="refused"):
        conducted(spanning(mean(), 5), tmp_path, 3)
    paid = store.read(tmp_path / "ledger")["release"].to_pylist()
    assert stepped == list(range(len(stepped))) and len(stepped) < 9
    # A span after it may have been paid for before the driver heard of it; nothing is made of it.
    spans = [range(first, first + 5) for first in range(3, ROUNDS, 5)]
    assert not set(next(span for span in spans if 9 in span)) & set(paid) and set(stepped) <= set(
        paid
    )


def test_a_span_is_on_disk_as_a_whole_or_not_at_all(tmp_path):
    """A log that ends anywhere inside of its record has none of its rows."""
    rows = [store.Charge(0, r, float(r), LocalReport(1.0), range(r + 1)) for r in range(4)]
    writer = store.Writer(tmp_path, 10)
    writer.append(rows[0])
    alone = (tmp_path / store.LOG).read_bytes()
    writer.append(*rows[1:])
    whole = (tmp_path / store.LOG).read_bytes()
    assert [charge.release for charge in store.charges(tmp_path)] == [0, 1, 2, 3]
    assert all(a.same_as(b) for a, b in zip(store.charges(tmp_path), rows, strict=True))
    assert store.read(tmp_path)["participants"].to_pylist()[3] == rows[3].row(10)["participants"]
    for end in range(len(alone), len(whole)):
        (tmp_path / store.LOG).write_bytes(whole[:end])
        assert store.read(tmp_path)["release"].to_pylist() == [0]


@pytest.mark.parametrize("stop", [1, 6, 9])
def test_an_interrupted_run_is_taken_up_with_another_span(stop, expected, tmp_path):
    interrupted(spanning(mean(), 5, checkpoint_seconds=0), tmp_path / "run", stop)
    made = reopen(tmp_path / "run")
    made.scenario = spanning(made.scenario, 3)
    for _ in made.play():
        pass
    assert_identical(expected("uniform"), tmp_path / "run")


def test_checkpoints_are_made_between_spans(tmp_path, monkeypatch):
    made, saved = prepare(spanning(mean(), 5, checkpoint_seconds=0), tmp_path / "run"), []
    save = type(made)._save

    def noting(self, conductor, repetition, finished):
        saved.append(finished)
        assert int(conductor.checkpoint(finished)["state"]["releases"]) == finished
        save(self, conductor, repetition, finished)

    monkeypatch.setattr(type(made), "_save", noting)
    assert len(list(made.play())) == ROUNDS
    assert saved[-1] == ROUNDS and {b - a for a, b in pairwise(saved)} <= {1, 5}


def killed(base, folder, point):
    """Play in a process of its own, which dies before a command of the engine."""
    file = folder.with_suffix(".json")
    file.write_text(json.dumps(base.document()))
    command = [sys.executable, str(KILLED), str(file), f"{point}={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert json.loads(done.stdout) == [-signal.SIGKILL], done.stderr[-2000:]


@pytest.mark.parametrize("way", ["uniform", "self"])
def test_a_driver_that_is_killed_resumes_to_the_same_result(way, expected, tmp_path):
    point = random.Random(way).randrange(20, 60)
    base = spanning(mean(way), 5, checkpoint_seconds=0)
    killed(base, tmp_path / "run", point)
    for _ in reopen(tmp_path / "run").play():
        pass
    assert_identical(expected(way), tmp_path / "run")


@pytest.mark.cluster
@pytest.mark.parametrize(
    "way,span",
    [
        ("self", 5),
        *(pytest.param("uniform", span, marks=pytest.mark.long) for span in (1, 2, 5, 16)),
        *(pytest.param("self", span, marks=pytest.mark.long) for span in (1, 2, 16)),
    ],
)
def test_ray_gives_the_same_for_any_span(way, span, expected, tmp_path, ray_session):
    base = with_placement(mean(way), backend="ray", clients_per_actor=100, span=span)
    run(base, out=tmp_path / "ray")
    assert_identical(expected(way), tmp_path / "ray")


@pytest.mark.cluster
def test_a_client_process_killed_in_mid_span_is_respawned(expected, tmp_path, ray_session):
    import ray

    from raydp_sim.actors.on_ray import OnRay

    base = with_placement(mean(), backend="ray", clients_per_actor=100, span=5)
    backend = OnRay()
    crew = Crew(base, backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    pid = ray.get(crew.clients[1].__ray_call__.remote(lambda self: os.getpid()))
    call, spans = backend.call, []

    def killing(actor, method, *args, returns=1):
        if method == "gather":
            spans.append(len(args[0]))
            if len(spans) == 4:  # the first that is more than one, and is being answered
                os.kill(pid, signal.SIGKILL)
        return call(actor, method, *args, returns=returns)

    backend.call = killing
    rows = list(Conductor(crew).play(ROUNDS))
    assert crew.epochs[1] >= 1 and spans[:4] == [1, 1, 1, 5]
    assert rows == reopen(expected("uniform")).result.metrics.to_pylist()
    crew.stop()


@pytest.mark.cluster
@pytest.mark.slow
def test_a_driver_killed_on_ray_in_mid_span_resumes(expected, tmp_path, ray_session):
    base = with_placement(
        mean(), backend="ray", clients_per_actor=100, span=5, checkpoint_seconds=0
    )
    killed(base, tmp_path / "run", 37)
    for _ in reopen(tmp_path / "run").play():
        pass
    assert_identical(expected("uniform"), tmp_path / "run")


def test_an_adaptive_task_goes_release_by_release(tmp_path):
    task = {"kind": "tests.actors.following:Following", "rounds": ROUNDS}
    _, calls, _ = conducted(spanning(mean(task=task), 5), tmp_path)
    assert {len(args[0]) for method, args in calls if method == "gather"} == {1}


@pytest.mark.parametrize(
    "sections",
    [
        {"privacy": {"budget": {"epsilon": 100.0}}},
        {"participation": {"kind": "asynchronous", "batch": 40, "every": 60.0}},
        {"task": {"kind": "tests.actors.remembering:Remembering", "rounds": ROUNDS}},
    ],
    ids=["budget", "asynchronous", "memory"],
)
def test_what_depends_on_earlier_releases_never_makes_spans(sections, tmp_path):
    _, calls, _ = conducted(spanning(mean(**sections), 5), tmp_path)
    assert {len(args[0]) for method, args in calls if method == "gather"} <= {1}


def paced(seconds, size, **placement):
    """What `Pace` says after spans that take so many seconds a release."""
    now, span, said = 0.0, 1, []
    pace = Pace(Placement(**placement), lambda: now)
    for _ in range(10):
        now += span * seconds
        span = pace.after(span, size)
        said.append(span)
    return said


def test_spans_grow_until_they_take_half_a_second_or_their_share_of_memory():
    assert paced(0.001, 100) == [1, 2, 4, 8, 16, 32, 64, 64, 64, 64]
    assert paced(0.05, 100)[-1] == 10 and paced(0.6, 100)[-1] == 1
    assert paced(0.001, 4 << 20)[-1] == 16 and paced(0.001, (4 << 20) + 1)[-1] == 1


def test_a_span_that_is_given_is_kept_and_a_checkpoint_of_each_release_makes_it_one():
    assert set(paced(9.0, 1 << 30, span=7)) == {7}
    assert set(paced(0.001, 1, checkpoint_seconds=0)) == {1}
    assert set(paced(0.001, 1, checkpoint_seconds=0, span=3)) == {3}
