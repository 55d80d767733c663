"""Placement changes nothing: every way to place a scenario gives the same bytes."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from raydp_sim.actors import client, on_ray
from raydp_sim.actors.backend import Inline
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.inbox import Inbox
from raydp_sim.actors.payloads import Kept
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.run import prepare, run
from raydp_sim.scenario import parse
from raydp_sim.stream.batches import Summed
from tests.actors.scrambled import Scrambled
from tests.conftest import LINF, assert_identical, scenario, with_placement

COINS = {"kind": "bernoulli", "probability": 0.7}
CHOSEN = {"kind": "uniform", "sampled": 60}
# What adds no noise is played where the file says so; see test_no_guarantee.
PLAYED = sorted(kind for kind, cls in MECHANISMS.kinds.items() if cls.guarantee != "none")


def example(kind):
    """The last example is the one with the most options."""
    return dict(MECHANISMS.kinds[kind].examples[-1])


def of_each_form():
    """One mechanism for each form that reports have on the wire and each way they travel.

    That what a mechanism sends is the same in any company, and its counts in any order, the shared
    suite of mechanisms shows for every one of them.
    """
    found = {}
    for kind in PLAYED:
        mechanism = MECHANISMS.kinds[kind].model_validate(example(kind))
        way = (type(mechanism.wire), mechanism.where, mechanism.routing)
        found[way] = max(found.get(way, (0, "")), (mechanism.messages_per_report, kind))
    return sorted(kind for _, kind in found.values())


FORMS = of_each_form()


def of_kind(kind):
    """A scenario that exercises one mechanism with sampling and absence."""
    given = example(kind)
    # Zeros and ones are categories too.
    norm = MECHANISMS.kinds[kind].model_validate(given).domain.norm
    dimension = given.pop("dimension", None) or 1
    given.pop("clients", None)
    binary = norm in ("binary", "category")
    data = {"kind": "bernoulli", "probability": 0.3} if binary else {"kind": "gaussian", "sd": 0.1}
    ball = {} if binary else {"clip": 0.3, "norm": "l2"}
    trust = "central" if MECHANISMS.kinds[kind].where == "aggregator" else "shuffle"
    return scenario(
        trust=trust,
        rounds=3,
        population={
            "clients": 61,
            "data": {**data, **ball, "dimension": dimension},
            "availability": COINS,
        },
        participation={"kind": "self", "probability": 0.6},
        mechanism={"kind": kind, **given, "on_out_of_range": "clip"},
        privacy={"delta": 0.5},
    )


def test_forms_of_reports_are_found():
    assert {"central-laplace", "split-and-mix", "r2", "rp", "sqkr"} <= set(FORMS)
    assert len(FORMS) >= 9


@pytest.mark.parametrize("kind", FORMS)
def test_inline_results_do_not_depend_on_clients_per_actor_or_shufflers(kind, tmp_path):
    base = of_kind(kind)
    result = run(base, out=tmp_path / "base")
    assert result.metrics.num_rows == 3 and max(result.metrics["batch_size"].to_pylist()) < 61
    for per_actor, shufflers in ((1, 2), (7, 5), (1000, 1)):
        out = tmp_path / f"{per_actor}-{shufflers}"
        run(with_placement(base, shufflers, clients_per_actor=per_actor), out=out)
        assert_identical(tmp_path / "base", out)


# Votes are told at once: one that comes late would be counted for another question.
@pytest.mark.parametrize("kind", [k for k in FORMS if MECHANISMS.kinds[k].tells == "mean"])
def test_batches_smaller_than_the_number_of_shufflers_are_released(kind, tmp_path):
    """Three clients, batches of one or two of them: most shufflers have no share."""
    document = of_kind(kind).document()
    document["population"] = {"clients": 3, "data": document["population"]["data"]}
    for batch, shufflers in ((1, 2), (2, 5)):
        document["participation"] = {"kind": "asynchronous", "batch": batch, "every": 60.0}
        base = parse(document)
        result = run(base, out=tmp_path / f"{batch}")
        assert set(result.metrics["batch_size"].to_pylist()) == {batch}
        placed = with_placement(base, shufflers, clients_per_actor=batch)
        run(placed, out=tmp_path / f"{batch}-placed")
        assert_identical(tmp_path / f"{batch}", tmp_path / f"{batch}-placed")


@pytest.mark.parametrize("trust", ["shuffle", "local"])
@pytest.mark.parametrize("seed", range(5))
def test_results_do_not_depend_on_the_order_of_answers(trust, seed, tmp_path):
    base = scenario(
        trust=trust,
        rounds=6,
        population={
            "clients": 200,
            "data": {"kind": "gaussian", "dimension": 6, "clip": 1.0},
            "availability": COINS,
        },
        participation=CHOSEN,
        shuffle={"min_batch": 60},
    )
    run(base, out=tmp_path / "base")
    placed = with_placement(base, 3, clients_per_actor=30)
    made = prepare(placed, out=tmp_path / "scrambled")
    made._backend = lambda: _Holding(Scrambled(seed))
    assert len(list(made.play())) == 6
    assert_identical(tmp_path / "base", tmp_path / "scrambled")


def test_results_do_not_depend_on_whom_the_driver_hears_first(tmp_path):
    """Whatever is ready is handled newest first, the reverse of what Ray usually does."""

    class NewestFirst(Inline):
        def wait(self, refs):
            return refs[-1:]

    base = scenario(rounds=6, participation=CHOSEN)
    run(base, out=tmp_path / "base")
    made = prepare(with_placement(base, 2, clients_per_actor=30), out=tmp_path / "newest")
    made._backend = lambda: _Holding(NewestFirst())
    assert len(list(made.play())) == 6
    assert_identical(tmp_path / "base", tmp_path / "newest")


def test_the_aggregator_sees_the_same_chunks_for_any_number_of_shufflers(tmp_path, monkeypatch):
    from raydp_sim.actors import aggregator
    from raydp_sim.stream import shuffle

    monkeypatch.setattr(shuffle, "_CHUNK_BYTES", 64)
    seen = {}
    for shufflers in (1, 2, 5):
        chunks = seen[shufflers] = []

        def recording(parts, chunks=chunks):
            whole = shuffle.interleave(parts)
            chunks.append((whole.release, whole.groups.tolist(), whole.payload.tolist()))
            return whole

        monkeypatch.setattr(aggregator, "interleave", recording)
        run(with_placement(scenario(), shufflers), out=tmp_path / str(shufflers))
    assert len(seen[1]) > 8 and seen[1] == seen[2] == seen[5]
    assert all(groups == sorted(groups) for _, groups, _ in seen[5])


def test_only_actors_that_hold_somebody_of_the_cohort_are_asked(tmp_path):
    base = scenario(participation={"kind": "uniform", "sampled": 3}, rounds=5)
    backend, asked = Scrambled(1), []
    backend.watch = lambda method, args: asked.append(method)
    crew = Crew(with_placement(base, clients_per_actor=5), backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    assert len(list(Conductor(crew).play(5))) == 5
    assert 0 < asked.count("reports") <= 15 < 5 * len(crew.clients)


class _Holding:
    def __init__(self, backend):
        self.backend = backend

    def __enter__(self):
        return self.backend

    def __exit__(self, *exc):
        return False


@pytest.mark.cluster
@pytest.mark.parametrize("clients,per_actor,shufflers", [(4, 1, 3), (2100, "auto", 1)])
def test_ray_gives_what_inline_gives(clients, per_actor, shufflers, tmp_path, ray_session):
    base = scenario(
        clients,
        participation={"kind": "uniform", "sampled": clients // 2},
        population={
            "clients": clients,
            "data": {"kind": "gaussian", "dimension": 6, "clip": 1.0},
            "availability": COINS,
        },
    )
    run(base, out=tmp_path / "inline")
    placed = with_placement(base, shufflers, backend="ray", clients_per_actor=per_actor)
    run(placed, out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")


@pytest.mark.cluster
@pytest.mark.parametrize("trust,kind", [("local", "gaussian"), ("central", "central-laplace")])
def test_ray_gives_what_inline_gives_without_a_shuffler(trust, kind, tmp_path, ray_session):
    document = of_kind(kind).document() | {"trust": trust}
    base = scenario(**{k: v for k, v in document.items() if k not in ("name", "seed", "task")})
    run(base, out=tmp_path / "inline")
    run(with_placement(base, backend="ray", clients_per_actor=100), out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")


@pytest.mark.cluster
def test_two_nodes_give_what_inline_gives(tmp_path):
    """Clients and shufflers take turns on them; who writes to the disk is where the driver is."""
    base = scenario(300, shuffle={"shufflers": 2})
    run(base, out=tmp_path / "inline")
    placed = with_placement(base, 2, backend="ray", clients_per_actor=80)
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(placed.document()))
    script = Path(__file__).with_name("two_nodes.py")
    command = [sys.executable, str(script), str(file), str(tmp_path / "cluster")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    beside = json.loads(done.stdout.splitlines()[-1])
    assert sorted(beside["clients"]) == [False, False, True, True]
    assert sorted(beside["shufflers"]) == [False, True]
    assert beside["others"] == [True] * 3
    assert_identical(tmp_path / "inline", tmp_path / "cluster")


def test_nodes_take_turns_but_for_those_that_do_not_answer(monkeypatch):
    """A lost node is alive to Ray until its head notices; one without CPUs gets nobody."""
    with socket.create_server(("127.0.0.1", 0)) as there, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen

        def node(name, cpus, place=there, alive=True):
            host, port = place.getsockname()
            about = {"NodeID": name, "Alive": alive, "Resources": {"CPU": cpus} if cpus else {}}
            return {**about, "NodeManagerAddress": host, "NodeManagerPort": port}

        nodes = [node("c", 1), node("a", 2), node("b", 1, closed), node("d", 0)]
        nodes.append(node("e", 4, alive=False))
        monkeypatch.setattr(on_ray.ray, "nodes", lambda: nodes)
        assert [on_ray._first_there(turn) for turn in range(5)] == ["a", "c", "c", "a", "a"]
        monkeypatch.setattr(on_ray.ray, "nodes", lambda: [node("b", 1, closed)])
        assert on_ray._first_there(0) is None


def test_repetitions_differ_and_the_first_is_the_single_run(tmp_path):
    run(scenario(), out=tmp_path / "one")
    run(scenario(repeat=3), out=tmp_path / "three")
    from raydp_sim.metrics import streams

    one = streams.read(tmp_path / "one" / "metrics", "releases")
    three = streams.read(tmp_path / "three" / "metrics", "releases")
    first = three.filter(three["repetition"].to_numpy() == 0)
    assert first.equals(one)
    errors = streams.read(tmp_path / "three" / "metrics", "errors")["squared_error_population"]
    assert len(set(errors.to_pylist())) == len(errors) == 12


def test_no_more_than_four_chunks_are_in_flight(tmp_path, monkeypatch):
    from raydp_sim.stream import shuffle

    monkeypatch.setattr(shuffle, "_CHUNK_BYTES", 16)
    backend = Scrambled(3)
    crew = Crew(with_placement(scenario(rounds=3), 2, clients_per_actor=50), backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    conductor = Conductor(crew)
    seen = []

    def watch(method, args):
        if method == "fold":
            out = sum(dispatch.folding for dispatch in conductor.collecting.open.values())
            seen.append(out + 1)

    backend.watch = watch
    assert len(list(conductor.play(3))) == 3
    assert len(seen) > 30 and max(seen) == 4


@pytest.mark.parametrize("kind", ["rp", "linf", "2rr"])
def test_batches_smaller_than_the_number_of_shufflers_are_all_the_same(kind, tmp_path):
    """Most shufflers have nothing of a batch of one, whatever form its message has."""
    mechanism = {
        "rp": {"kind": "rp", "radius": 1.0, "power": 3.0, "epsilon_local": 2.0},
        "linf": LINF,
        "2rr": {"kind": "2rr", "epsilon_local": 2.0},
    }[kind]
    data = {"kind": "gaussian", "dimension": 4, "sd": 0.2, "clip": 0.5}
    if kind == "2rr":
        data = {"kind": "bernoulli", "probability": 0.5}
    base = scenario(
        rounds=6,
        population={"clients": 3, "data": data},
        mechanism=mechanism,
        participation={"kind": "asynchronous", "batch": 1, "every": 10.0},
    )
    run(base, out=tmp_path / "one")
    for shufflers in (2, 7):
        out = tmp_path / f"{shufflers}"
        run(with_placement(base, shufflers, clients_per_actor=1), out=out)
        assert_identical(tmp_path / "one", out)


@pytest.mark.parametrize("kind", ["central-gaussian", "central-laplace"])
def test_sums_that_travel_instead_of_vectors_change_nothing(kind, tmp_path, monkeypatch):
    more = {"delta": 1e-8} if kind == "central-gaussian" else {}
    mechanism = {"kind": kind, "radius": 6.0, "epsilon": 2.0, **more}
    base = with_placement(scenario(60, rounds=3, mechanism=mechanism, trust="central"), 1)
    made = []
    collect = Inbox.collect

    def noting(self, batch):
        made.append(type(batch.payload))
        return collect(self, batch)

    monkeypatch.setattr(Inbox, "collect", noting)
    run(base, out=tmp_path / "sums")
    monkeypatch.setattr(client, "payloads", lambda *_: Kept())
    run(base, out=tmp_path / "vectors")
    assert set(made[: len(made) // 2]) == {Summed} and set(made[len(made) // 2 :]) == {np.ndarray}
    assert_identical(tmp_path / "sums", tmp_path / "vectors")
