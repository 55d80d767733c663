"""What readers are handed of slots, of versions and of a checkpoint names no client."""

import dataclasses

import numpy as np

from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.run import reopen
from raydp_sim.run.directory import RunDir
from raydp_sim.stream.batches import BUCKETS, Slotted
from tests.actors.scrambled import Scrambled
from tests.actors.test_trust import FORBIDDEN, forbidden_in
from tests.conftest import interrupted, scenario, with_placement

ARMS = {"kind": "tests.tasks.examples:Arms", "rounds": 3, "slots": [30, 40, 30]}
FOLLOWING = {"kind": "tests.actors.following:Following", "rounds": 4}
BIT = {"kind": "2rr", "epsilon_local": 1.0}
CLIENTS = 40_000  # ids too large to be mistaken for a symbol, a count or a group


def slotted():
    data = {"kind": "gaussian", "dimension": 3, "clip": 1.0}
    base = scenario(population={"clients": CLIENTS, "data": data}, task=ARMS, mechanism=BIT)
    return with_placement(base, 2, clients_per_actor=CLIENTS // 2)


def values(args):
    return [getattr(arg, "value", arg) for arg in args]


def test_nothing_that_a_reader_receives_names_a_client_of_a_slot(tmp_path):
    backend, received, heard = Scrambled(1), [], []
    crew = Crew(slotted(), backend, tmp_path)
    call = backend.call

    def recording(actor, method, *args, returns=1):
        refs = call(actor, method, *args, returns=returns)
        if actor in crew.readers:
            received.append((method, args))
        if method == "choose":
            heard.append(refs)
        return refs

    backend.call = recording
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    list(Conductor(crew).play(3))
    # The batches are small: what is handed over comes with the request to make the release.
    chunks = [part for method, args in received if method == "step" for part in values(args)[5:]]
    assert len(chunks) >= 6 and {type(part) for part in chunks} == {Slotted}
    for part in chunks:
        names = {field.name for field in dataclasses.fields(part)}
        assert names == {"release", "groups", "lengths", "payload"} and not names & FORBIDDEN
        assert part.groups.max() < 3 * BUCKETS and set(np.unique(part.payload)) <= {0, 1}
    others = [(method, values(args)[:5]) for method, args in received]
    for method, given in others:
        # Numbers, and how many reports each slot has.
        assert method in ("begin", "ask", "step")
        assert all(value is None or isinstance(value, int | float | tuple) for value in given)
    assert forbidden_in(crew.lead) == []
    # The driver is told when a batch closes and whom to ask, and no slot or id.
    for planned, _ in heard:
        timing, sources = planned.value
        assert sources == [0, 1] and all(
            isinstance(value, int | float | None) for value in dataclasses.asdict(timing).values()
        )


def test_a_reader_is_handed_nothing_of_a_checkpoint_but_its_own(tmp_path, monkeypatch):
    """The schedule of a checkpoint names clients under way, and the metrics know the truth."""
    from raydp_sim.actors.aggregator import AggregatorActor

    base = scenario(
        100,
        rounds=6,
        participation={"kind": "asynchronous", "batch": 20, "every": 60.0},
        population={
            "clients": 100,
            "data": {"kind": "gaussian", "dimension": 6, "clip": 1.0},
            "latency": {"kind": "lognormal", "median": 20.0, "sigma": 1.0},
        },
    )
    base = with_placement(base, checkpoint_seconds=0)
    interrupted(base, tmp_path / "run", 3)
    made, given, begin = reopen(tmp_path / "run"), [], AggregatorActor.begin
    checkpoint = RunDir(tmp_path / "run").latest()
    assert len(checkpoint.saved["schedule"]["client"]) > 0

    def noting(self, repetition, saved):
        given.append(saved)
        begin(self, repetition, saved)

    monkeypatch.setattr(AggregatorActor, "begin", noting)
    for _ in made.play():
        pass
    first, resumed = given  # when it is made, and when the run is taken up
    assert first is None and set(resumed) == {"state", "public"}
    assert set(resumed["state"]) == {"releases", "total", "variance"}


def test_a_broadcast_never_passes_the_driver(tmp_path):
    """Clients fetch the model; the driver hands on where it is, also while checkpoints are made."""
    backend, broadcasts, fetched = Scrambled(2), [], []
    crew = Crew(scenario(task=FOLLOWING), backend, tmp_path)
    call, get = backend.call, backend.get

    def noting(actor, method, *args, returns=1):
        refs = call(actor, method, *args, returns=returns)
        if method == "ask" or (method == "steps" and args[2] is not None):
            broadcasts.append(refs[1])
        return refs

    def fetching(ref):
        fetched.append(ref)
        return get(ref)

    backend.call, backend.get = noting, fetching
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    conductor = Conductor(crew)
    conductor.on_finished = conductor.checkpoint
    list(conductor.play(4))
    assert len(broadcasts) == 4 and all("factor" in ref.value for ref in broadcasts)
    assert fetched and not any(ref is sent for ref in fetched for sent in broadcasts)
