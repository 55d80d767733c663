"""`shuffle.output: counts`: the same results as permuted messages, and less of them on the way."""

import shutil

import numpy as np
import pytest

from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import run
from raydp_sim.scenario import parse
from raydp_sim.stream.batches import Counted
from raydp_sim.tasks import TASKS
from tests.actors.scrambled import Scrambled
from tests.actors.test_protocol_secrecy import ARMS, BIT
from tests.conftest import LINF, assert_identical, scenario, with_placement

BITS = {"kind": "bernoulli", "probability": 0.3}
VECTORS = {"kind": "gaussian", "dimension": 6, "clip": 1.0}
CATEGORIES = {"kind": "categorical", "categories": 5}
CASES = {
    "2rr": ({"kind": "2rr", "epsilon_local": 1.0}, BITS),
    "linf": (LINF, VECTORS),
    "krr": ({"kind": "krr", "epsilon_local": 1.0, "categories": 5}, CATEGORIES),
    "rappor": ({"kind": "rappor", "epsilon_local": 1.0, "categories": 5}, CATEGORIES),
}
# With absent clients, copies of reports that come twice, and batches that are withheld.
PEOPLE = {
    "clients": 150,
    "availability": {"kind": "bernoulli", "probability": 0.6},
}


def case(kind, output, shufflers=1, **sections):
    mechanism, data = CASES[kind]
    base = scenario(
        rounds=6,
        mechanism=mechanism,
        population={**PEOPLE, "data": data},
        participation={"kind": "self", "probability": 0.7},
        shuffle={"min_batch": 60, "output": output, "shufflers": shufflers},
        **sections,
    )
    return with_placement(base, shufflers, clients_per_actor=40)


@pytest.mark.parametrize("kind", CASES)
def test_results_and_charges_are_those_of_permuted_messages(kind, tmp_path):
    run(case(kind, "permuted"), out=tmp_path / "permuted")
    for shufflers in (1, 3):
        run(case(kind, "counts", shufflers), out=tmp_path / f"{shufflers}")
        assert_identical(tmp_path / "permuted", tmp_path / f"{shufflers}")
    assert streams.read(tmp_path / "permuted" / "metrics", "withheld").num_rows > 0
    assert store.read(tmp_path / "permuted" / "ledger").num_rows > 0


@pytest.mark.parametrize("kind", CASES)
def test_a_reader_is_handed_the_numbers_of_a_permuted_list_and_nothing_else(kind, tmp_path):
    """Both are made of the same messages: one is the histogram of the other, index by index."""

    def handed(output):
        base, backend, received = case(kind, output), Scrambled(1), []
        crew = Crew(base, backend, tmp_path / output)
        call = backend.call

        def recording(actor, method, *args, returns=1):
            if actor is crew.lead and method == "steps":
                received.extend(args[3:])
            return call(actor, method, *args, returns=returns)

        backend.call = recording
        (tmp_path / output / "ledger").mkdir(parents=True)
        crew.begin(0, 0, None)
        list(Conductor(crew).play(6))
        return crew.lead, [part for span in received for part in span.value]

    reader, lists = handed("permuted")
    _, counted = handed("counts")
    mechanism = reader.setting.mechanism
    assert len(lists) == len(counted) > 0 and {type(part) for part in counted} == {Counted}
    for messages, told in zip(lists, counted, strict=True):
        expected = mechanism.zero()
        for index, message in zip(messages.index, messages.payload, strict=True):
            place = np.array([index])
            expected = expected + mechanism.fold(mechanism.zero(), place, message[None])
        (counts,) = told.payload.parts
        assert np.array_equal(counts, expected) and len(told.payload) == len(messages.payload)


@pytest.mark.cluster
@pytest.mark.parametrize("servers", ["actors", "driver"])
def test_ray_gives_the_same(servers, tmp_path, ray_session):
    run(case("rappor", "permuted"), out=tmp_path / "inline")
    placed = {"backend": "ray", "clients_per_actor": 80, "span": 3, "servers": servers}
    run(with_placement(case("rappor", "counts"), **placed), out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")


@pytest.mark.parametrize("task", ["item-mean", "user-mean", "cldp-sgd"])
def test_tasks_of_several_values_and_of_several_stages_get_the_same(task, tmp_path):
    """Also where most of 64 shufflers are sent nothing."""
    for number, example in enumerate(TASKS.kinds[task].examples):
        given = {"clients": 40, **example, "task": {**example["task"], "kind": task}}
        people = given.pop("population", {"data": VECTORS})
        base = scenario(population={"clients": given.pop("clients"), **people}, **given)
        run(base, out=tmp_path / f"{number}-permuted")
        shuffle = {**base.document()["shuffle"], "output": "counts"}
        for shufflers in (1, 64):
            counts = parse({**base.document(), "shuffle": {**shuffle, "shufflers": shufflers}})
            run(with_placement(counts, shufflers, clients_per_actor=7), out=tmp_path / "counts")
            assert_identical(tmp_path / f"{number}-permuted", tmp_path / "counts")
            shutil.rmtree(tmp_path / "counts")


@pytest.mark.parametrize(
    "sections,why",
    [
        ({"mechanism": {"kind": "laplace", "radius": 9.0, "epsilon_local": 1.0}}, "finite"),
        ({"mechanism": {"kind": "gaussian", "radius": 9.0, "epsilon_local": 1.0,
                        "delta_local": 1e-9}, "privacy": {"delta": 1e-3}}, "finite"),
        ({"mechanism": {"kind": "split-and-mix", "epsilon": 1.0, "delta": 1e-6, "radius": 1.0,
                        "noise_clients": 1, "on_out_of_range": "clip"},
          "population": {"clients": 100, "data": {**VECTORS, "dimension": 1}},
          "privacy": {"delta": 1e-3}}, "finite"),
        ({"mechanism": {"kind": "sqkr", "epsilon_local": 4.0, "radius": 9.0}}, "finite"),
        ({"trust": "local"}, "no shuffler"),
        ({"trust": "central", "mechanism": {"kind": "central-laplace", "radius": 9.0,
                                            "epsilon": 1.0}}, "no shuffler"),
        ({"task": {"kind": "sketched-mean"}, "mechanism": {"kind": "rand-k", "radius": 9.0,
          "kept": 2}, "privacy": {"guarantee": "none"}}, "message by message"),
        (
            {
                "task": {"kind": "analysts"},
                "population": {"clients": 50, "data": CATEGORIES},
                "mechanism": {"kind": "hadamard-cascade", "categories": 5},
                "privacy": {"levels": [2.0, 1.0]},
            },
            "id of every report",
        ),
        (
            {
                "task": ARMS,
                "mechanism": BIT,
                "population": {"clients": 120, "data": {**VECTORS, "dimension": 3}},
            },
            "slot",
        ),
    ],
    ids=["laplace", "gaussian", "shares", "sets", "local", "central", "tasks", "levels", "slots"],
)  # fmt: skip
def test_what_needs_more_than_counts_is_refused(sections, why):
    with pytest.raises(InputError, match=rf"shuffle.output is 'counts'; .*{why}.*use permuted"):
        scenario(**{"shuffle": {"output": "counts"}, **sections})
