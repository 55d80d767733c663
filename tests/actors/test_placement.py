"""Placement changes nothing: every way to place a scenario gives the same bytes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from raydp_sim.actors.backend import Inline
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.run import prepare, run
from tests.actors.scrambled import Scrambled
from tests.conftest import assert_identical, scenario, with_placement

COINS = {"kind": "bernoulli", "probability": 0.7}
CHOSEN = {"kind": "uniform", "sampled": 60}
# What adds no noise cannot be played at all.
PLAYED = sorted(kind for kind, cls in MECHANISMS.kinds.items() if cls.guarantee != "none")


def of_kind(kind):
    """A scenario that exercises one mechanism with sampling and absence."""
    example = dict(MECHANISMS.kinds[kind].examples[0])
    # Zeros and ones are categories too.
    norm = MECHANISMS.kinds[kind].model_validate(example).domain.norm
    dimension = example.pop("dimension", None) or 1
    example = {k: v for k, v in example.items() if k != "clients"}
    binary = norm in ("binary", "category")
    data = {"kind": "bernoulli", "probability": 0.3} if binary else {"kind": "gaussian", "sd": 0.1}
    ball = {} if binary else {"clip": 0.3, "norm": "l2"}
    trust = "central" if MECHANISMS.kinds[kind].where == "aggregator" else "shuffle"
    return scenario(
        clients=231,
        trust=trust,
        population={
            "clients": 231,
            "data": {**data, **ball, "dimension": dimension},
            "availability": COINS,
        },
        participation={"kind": "self", "probability": 0.6},
        mechanism={"kind": kind, **example, "on_out_of_range": "clip"},
        privacy={"delta": 0.5},
    )


@pytest.mark.parametrize("kind", PLAYED)
def test_inline_results_do_not_depend_on_clients_per_actor_or_shufflers(kind, tmp_path):
    base = of_kind(kind)
    run(base, out=tmp_path / "base")
    for per_actor, shufflers in ((1, 2), (7, 5), (1000, 1)):
        out = tmp_path / f"{per_actor}-{shufflers}"
        run(with_placement(base, shufflers, clients_per_actor=per_actor), out=out)
        assert_identical(tmp_path / "base", out)


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
    from raydp_sim import shuffle
    from raydp_sim.actors import aggregator

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
    assert 0 < asked.count("report") <= 15 < 5 * len(crew.clients)


class _Holding:
    def __init__(self, backend):
        self.backend = backend

    def __enter__(self):
        return self.backend

    def __exit__(self, *exc):
        return False


@pytest.mark.cluster
@pytest.mark.parametrize(
    "clients,per_actor,shufflers", [(14, 1, 1), (14, 7, 5), (2100, 1000, 2), (2100, "auto", 1)]
)
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
    base = scenario(300, shuffle={"shufflers": 2})
    run(base, out=tmp_path / "inline")
    placed = with_placement(base, 2, backend="ray", clients_per_actor=80)
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(placed.document()))
    script = Path(__file__).with_name("two_nodes.py")
    command = [sys.executable, str(script), str(file), str(tmp_path / "cluster")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1])["client_nodes"] == 2
    assert_identical(tmp_path / "inline", tmp_path / "cluster")


def test_repetitions_differ_and_the_first_is_the_single_run(tmp_path):
    run(scenario(), out=tmp_path / "one")
    run(scenario(repeat=3), out=tmp_path / "three")
    from raydp_sim.metrics import streams

    one = streams.read(tmp_path / "one" / "metrics", "releases")
    three = streams.read(tmp_path / "three" / "metrics", "releases")
    first = three.filter(three["repetition"].to_numpy() == 0)
    assert first.equals(one)
    errors = three["squared_error_population"].to_numpy()
    assert len(set(errors)) == len(errors)


def test_no_more_than_four_chunks_are_in_flight(tmp_path, monkeypatch):
    from raydp_sim import shuffle

    monkeypatch.setattr(shuffle, "_CHUNK_BYTES", 16)
    backend = Scrambled(3)
    crew = Crew(with_placement(scenario(rounds=3), 2, clients_per_actor=50), backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    conductor = Conductor(crew)
    seen = []

    def watch(method, args):
        if method == "fold":
            out = sum(dispatch.folding for dispatch in conductor.open.values())
            seen.append(out + 1)

    backend.watch = watch
    assert len(list(conductor.play(3))) == 3
    assert len(seen) > 30 and max(seen) == 4
