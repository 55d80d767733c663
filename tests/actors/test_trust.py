"""In the shuffle model nothing the aggregator can reach names a client."""

import dataclasses
import inspect

import numpy as np
import pytest

from raydp_sim.actors.aggregator import AggregatorActor
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.inbox import Inbox
from raydp_sim.actors.ledger import LedgerActor
from raydp_sim.datasets.base import Dataset, Hidden
from raydp_sim.errors import InputError, RunError
from raydp_sim.privacy.ledger import store
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism
from raydp_sim.stream.batches import BUCKETS, Everyone, Listed, Reports, Shuffled
from raydp_sim.stream.shuffle import Gathered
from tests.actors.scrambled import Scrambled
from tests.conftest import scenario, with_placement

CLIENTS = 40_000  # ids too large to be mistaken for a symbol, a count or a group
FORBIDDEN = {"client", "clients", "ids", "source", "epoch", "sequence", "bucket", "participants"}


def shuffled_scenario(clients=CLIENTS):
    return with_placement(
        scenario(clients, rounds=2, participation={"kind": "uniform", "sampled": 100}),
        2,
        clients_per_actor=clients // 2,
    )


def played(backend, tmp_path, base):
    crew = Crew(base, backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir(exist_ok=True)
    list(Conductor(crew).play(base.task.rounds))
    return crew


def test_every_field_the_aggregator_receives_is_free_of_clients(tmp_path):
    base = shuffled_scenario()
    received = []
    backend = Scrambled(1)
    crew = Crew(base, backend, tmp_path)
    call = backend.call

    def recording(actor, method, *args, returns=1):
        if actor is crew.lead:
            received.append((method, args))
        return call(actor, method, *args, returns=returns)

    backend.call = recording
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    list(Conductor(crew).play(2))
    # The batches are small: what is handed over comes with the request to make the release.
    assert {method for method, _ in received} == {"begin", "ask", "step"}
    chunks = 0
    for method, args in received:
        given = [getattr(arg, "value", arg) for arg in args]
        if method == "step":
            assert given[0] in (0, 1)
        for place, value in enumerate(given):
            if method != "step" or place < 5:
                # The number of a release, how many reports it has, or their mean weight.
                assert value is None or isinstance(value, int | float)
                continue
            chunks += 1
            assert type(value) is Shuffled
            names = {field.name for field in dataclasses.fields(value)}
            assert names == {"release", "groups", "lengths", "payload"} and not names & FORBIDDEN
            reports = bound_mechanism(base).messages_per_report
            assert value.groups.max() < reports * BUCKETS
            assert (value.payload < 2 * bound_mechanism(base).domain.dimension).all()
            assert value.payload.ndim == 1 and len(value.payload) == value.lengths.sum()
    assert chunks >= 4


def reachable(thing, seen=None):
    """Every object that can be reached from one through attributes and containers."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, (str, bytes, int, float, type(None), type)):
        return seen
    seen[id(thing)] = thing
    if isinstance(thing, dict):
        inner = [*thing.keys(), *thing.values()]
    elif isinstance(thing, (list, tuple, set, frozenset)):
        inner = list(thing)
    else:
        inner = list(getattr(thing, "__dict__", {}).values())
    for value in inner:
        reachable(value, seen)
    return seen


def forbidden_in(aggregator):
    """Names of what must not be reachable: other actors, handles, references, reports, ids."""
    found = []
    for thing in reachable(aggregator).values():
        kind = f"{type(thing).__module__}.{type(thing).__name__}"
        if thing is not aggregator and ("raydp_sim.actors" in kind or kind.startswith("ray.")):
            found.append(kind)
        if isinstance(thing, (Reports, Listed, Everyone, Gathered, Inbox)):
            found.append(kind)
        if isinstance(thing, np.ndarray) and thing.dtype == np.uint32:
            found.append("an array of ids")
        if isinstance(thing, Dataset) and not isinstance(thing, Hidden):
            found.append("the clients' data")
    return found


def test_the_aggregator_holds_no_handle_and_no_ids(tmp_path):
    crew = played(Scrambled(2), tmp_path, shuffled_scenario())
    assert type(crew.lead) is AggregatorActor
    assert forbidden_in(crew.lead) == []
    methods = {name for name, _ in inspect.getmembers(AggregatorActor, inspect.isfunction)}
    public = {"__init__", "begin", "ask", "expect", "fold", "step", "steps"}
    public |= {"withheld", "checkpoint"}
    assert methods == public | {"_expect", "_ask", "_fold"}


@pytest.mark.cluster
def test_the_aggregator_process_holds_no_handle_either(tmp_path, ray_session):
    import ray

    from raydp_sim.actors.on_ray import OnRay

    crew = played(OnRay(), tmp_path, shuffled_scenario(200))
    assert ray.get(crew.lead.__ray_call__.remote(forbidden_in)) == []
    crew.stop()


def test_no_actor_but_the_clients_can_read_the_data(tmp_path):
    np.save(tmp_path / "data.npy", np.full((50, 6), 0.25))
    data = {"kind": "file", "path": str(tmp_path / "data.npy")}
    base = scenario(population={"clients": 50, "data": data}, rounds=2)
    crew = played(Scrambled(2), tmp_path, base)
    assert forbidden_in(crew.lead) == []
    for actor in (*crew.collectors, crew.lead, crew.ledger, crew.metrics):
        assert isinstance(actor.scenario.population.data, Hidden)
        with pytest.raises(InputError, match="hidden"):
            actor.scenario.population.data.values(np.arange(1, dtype=np.uint32), None)


def test_the_search_for_handles_would_find_one(tmp_path):
    crew = played(Scrambled(2), tmp_path, shuffled_scenario())
    crew.lead.ledger = [crew.ledger]
    assert "raydp_sim.actors.ledger.LedgerActor" in forbidden_in(crew.lead)


def test_the_aggregator_has_a_seed_of_its_own(tmp_path):
    crew = played(Scrambled(2), tmp_path, shuffled_scenario())
    assert crew.lead.scenario.seed != crew.scenario.seed


def test_the_aggregator_refuses_reports():
    column = np.zeros(1, np.uint8)
    senders = Listed(column.astype(np.uint32), column.astype(np.uint16))
    reports = Reports(0, 0, 0, senders, column, column)
    with pytest.raises(RunError, match="not Shuffled"):
        AggregatorActor(scenario().document()).fold(0, reports)


def test_the_ledger_row_is_on_disk_before_anything_of_its_release_is_let_out(tmp_path, monkeypatch):
    base = shuffled_scenario(500)
    seen = []
    fold = AggregatorActor.fold

    def checked(self, release, *parts):
        rows = store.read(tmp_path / "run" / "ledger")["release"].to_pylist()
        seen.append(release in rows and all(part.release == release for part in parts))
        return fold(self, release, *parts)

    monkeypatch.setattr(AggregatorActor, "fold", checked)
    run(base, out=tmp_path / "run")
    assert seen and all(seen)


def test_a_charge_that_fails_stops_the_release(tmp_path, monkeypatch):
    folded = []
    fold = AggregatorActor.fold
    monkeypatch.setattr(
        AggregatorActor, "fold", lambda self, *args: (folded.append(1), fold(self, *args))[1]
    )

    def refused(self, *args):
        raise OSError("disk full")

    monkeypatch.setattr(LedgerActor, "charge", refused)
    with pytest.raises(RunError, match="disk full"):
        run(shuffled_scenario(500), out=tmp_path / "run")
    assert not folded


def test_a_batch_below_min_batch_is_never_released(tmp_path):
    base = scenario(
        rounds=30,
        population={
            "clients": 40,
            "data": {"kind": "gaussian", "dimension": 6, "clip": 1.0},
            "availability": {"kind": "bernoulli", "probability": 0.5},
        },
        shuffle={"min_batch": 20},
    )
    result = run(base, out=tmp_path / "run")
    sizes = result.metrics["batch_size"].to_pylist()
    withheld = result.summary["metrics"]["withheld"]
    assert min(sizes) >= 20 and withheld > 0 and len(sizes) + withheld == 30
    charged = store.read(tmp_path / "run" / "ledger")["release"].to_pylist()
    assert charged == result.metrics["release"].to_pylist()
