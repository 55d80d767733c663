"""What a task may do: sizes, an early end, several readers or values, any data, any decoder."""

import numpy as np
import pytest

from raydp_sim.actors.client import ClientActor
from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import reopen, run
from raydp_sim.run.directory import RunDir
from raydp_sim.run.summary import summarize
from raydp_sim.scenario import bound_mechanism
from raydp_sim.scenario.accounting import planned
from raydp_sim.tasks.base import Ask
from tests.conftest import (
    assert_identical,
    interrupted,
    placed_everywhere,
    scenario,
    with_placement,
)

LAPLACE = {"kind": "laplace", "radius": 6.0, "epsilon_local": 2.0}
COINS = {"kind": "bernoulli", "probability": 0.5}


def own(name, clients=60, rounds=4, **sections):
    """A scenario of one of the tasks in `examples`."""
    task = {"kind": f"tests.tasks.examples:{name}", "rounds": rounds, **sections.pop("fields", {})}
    return scenario(clients, task=task, **sections)


def people(clients=60, dimension=6, **settings):
    data = {"kind": "gaussian", "dimension": dimension, "clip": 1.0}
    return {"clients": clients, "data": data, **settings}


# Batches of a task's own size.


@pytest.mark.parametrize("kind", ["all", "uniform"])
def test_a_task_asks_for_batches_of_its_own_size(kind, tmp_path):
    policy = {"kind": "uniform", "sampled": 5} if kind == "uniform" else {"kind": "all"}
    base = own("Sized", participation=policy)
    result = placed_everywhere(base, tmp_path, stop=2)
    assert result.metrics["batch_size"].to_pylist() == [10, 20, 15, 10]
    assert result.summary["privacy"]["epsilon"] <= planned(base, bound_mechanism(base)) * (1 + 1e-9)


def test_a_task_that_is_not_adaptive_asks_for_a_size_too(tmp_path):
    result = placed_everywhere(own("StandingSize", fields={"size": 25}), tmp_path)
    assert result.metrics["batch_size"].to_pylist() == [25] * 4


def test_a_cohort_of_everyone_is_not_what_a_target_counts_on(tmp_path):
    """1000 clients would hide more than the 50 that the task asks for."""
    target = {"kind": "2rr", "target": {"epsilon": 0.5, "delta": 1e-6}}
    bits = {"clients": 1000, "data": {"kind": "bernoulli", "probability": 0.5}}
    small = own("StandingSize", rounds=2, mechanism=target, population=bits)
    large = own("StandingSize", 1, 2, fields={"size": 1000}, mechanism=target, population=bits)
    assert bound_mechanism(small).epsilon_local < bound_mechanism(large).epsilon_local
    privacy = run(small, out=tmp_path / "run").summary["privacy"]
    assert privacy["epsilon"] <= privacy["planned"] <= 0.5


def test_a_batch_below_the_minimum_of_its_ask_is_withheld_and_costs_nothing(tmp_path):
    fields = {"sizes": [60], "least": [30]}
    base = own("Sized", rounds=12, fields=fields, population=people(availability=COINS))
    result = placed_everywhere(base, tmp_path, stop=2)
    sizes = result.metrics["batch_size"].to_pylist()
    kept = streams.read(tmp_path / "base" / "metrics", "withheld")["reports"].to_pylist()
    assert base.least_batch == 1 and len(sizes) + len(kept) == 12
    assert min(sizes) >= 30 > max(kept) and kept
    charged = store.read(tmp_path / "base" / "ledger")["release"].to_pylist()
    assert charged == result.metrics["release"].to_pylist()


@pytest.mark.parametrize(
    "fields,sections,words",
    [
        ({"sizes": [61]}, {}, "asks for a batch of 61; there are only 60 clients"),
        ({"sizes": [0]}, {}, "asks for a batch of 0; it must be at least 1"),
        ({"sizes": [9], "least": [10]}, {}, "at least 10 reports; at most 9 clients"),
        ({"sizes": [9]}, {"shuffle": {"min_batch": 10}}, "shuffle.min_batch is 10; at most 9"),
        (
            {},
            {"participation": {"kind": "self", "probability": 0.5}},
            "participation.kind is 'self'; this task asks for batches of its own size",
        ),
    ],
)
def test_a_size_that_cannot_be_is_refused_before_the_run(fields, sections, words):
    with pytest.raises(InputError, match=words):
        own("Sized", fields=fields, **sections)


# The task ends the run.


def test_a_task_ends_its_run(tmp_path):
    result = placed_everywhere(own("Ending", rounds=10), tmp_path, stop=2)
    assert result.metrics.num_rows == 3 and "ended_early" not in result.summary
    assert "the task ended the run after release 2" in (tmp_path / "base/log.txt").read_text()


def test_a_task_that_ended_every_repetition_did_not_end_early(tmp_path):
    base = own("Ending", rounds=10, repeat=3)
    base = with_placement(base, checkpoint_seconds=0)
    whole = run(base, out=tmp_path / "whole").summary
    interrupted(base, tmp_path / "part", 4)  # in the second repetition
    made = reopen(tmp_path / "part")
    assert made.checkpoint.repetition == 1
    for _ in made.play():
        pass
    assert_identical(tmp_path / "whole", tmp_path / "part")
    for summary in (whole, made.result.summary):
        assert summary["metrics"]["releases"] == 3 and "ended_early" not in summary
    # Had one of them ended because nobody came, that would be said.
    other = summarize(base, RunDir(tmp_path / "whole"), 1.0, complete={0, 2})
    assert other["ended_early"].startswith("9 of 30 releases were played")


# Several readers.


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_readers_have_states_rows_and_draws_of_their_own(trust, tmp_path):
    base = own("Pair", trust=trust)
    result = placed_everywhere(base, tmp_path, stop=2)
    counted = streams.read(tmp_path / "base" / "metrics", "counted")
    each = 60 * bound_mechanism(base).messages_per_report
    assert counted["messages"].to_pylist() == [each, 2 * each, 3 * each, 4 * each]
    assert len(set(counted["drawn"].to_pylist())) == 4
    assert streams.visibility(counted.schema) == "released"
    assert "squared_error_cohort" in result.metrics.column_names
    saved = RunDir(tmp_path / "base").latest().saved
    assert saved["state"]["releases"] == 4 and "messages" not in saved["state"]
    assert saved["state-1"]["messages"] == 4 * each


def test_the_first_reader_s_rows_are_those_of_a_run_without_the_second(tmp_path):
    pair, alone = own("Pair"), scenario(60)
    both = run(pair, out=tmp_path / "both").metrics
    assert both.equals(run(alone, out=tmp_path / "alone").metrics)


def test_a_trusted_release_has_one_reader():
    """Two would draw two noises for one charge."""
    noise = {"kind": "central-laplace", "radius": 6.0, "epsilon": 1.0}
    with pytest.raises(InputError, match="would each add noise to the same data"):
        own("Pair", trust="central", mechanism=noise)


# Several values per client.


@pytest.mark.parametrize("trust,never", [("shuffle", False), ("shuffle", True), ("local", False)])
def test_clients_send_different_numbers_of_values(trust, never, tmp_path):
    base = own("Several", trust=trust, fields={"never": never})
    result = placed_everywhere(base, tmp_path, stop=2)
    mechanism, values = bound_mechanism(base), 60 if never else 120
    for row in result.metrics.to_pylist():
        assert row["batch_size"] == row["participants"] == (40 if never else 60)
        assert row["messages"] == values * mechanism.messages_per_report
        assert row["bits"] == values * mechanism.bits
        assert row["wire_bytes"] == values * -(-mechanism.bits // 8)
    assert "one item of one client's data" in result.summary["privacy"]["assumption"]
    charges = list(store.charges(tmp_path / "base" / "ledger"))
    assert {charge.event.unit for charge in charges} == {"item"}
    if trust == "shuffle":
        assert {charge.shuffled.n for charge in charges} == {values}


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_several_values_charged_per_client_are_refused_and_nothing_is_released(trust, tmp_path):
    base = own("Several", trust=trust, fields={"charged": "client"})
    with pytest.raises(RunError, match=r"clients send several values.*nothing was released"):
        run(base, out=tmp_path / "run")
    assert store.read(tmp_path / "run" / "ledger").num_rows == 0
    assert streams.read(tmp_path / "run" / "metrics", "releases").num_rows == 0


def test_the_values_of_one_client_have_noise_of_their_own():
    """1200 pairs of equal values: no two noises are equal, and they do not go together.

    The correlation of independent Laplace noises over 1200 pairs has a standard deviation of 0.029;
    0.16 is 5.5 of those.
    """
    base = own("Several", 1800, trust="local", mechanism=LAPLACE, population=people(1800, 1))
    actor = ClientActor(base.document(), 0, 0, 0, 1800)
    actor.load(0)
    _, batch = actor.report(0, 0.0, None, 1, (0,), Ask(actor.setting.mechanism), {})
    senders, data = batch.senders.listed(), actor.answers.data[:, 0]
    noise = batch.payload[:, 0] - data[senders.client]
    first, second = (noise[(senders.sequence == k) & (senders.client % 3 > 0)] for k in (0, 1))
    assert len(first) == len(second) == 1200 and len(np.unique(noise)) == len(noise) == 3600
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.16


@pytest.mark.parametrize(
    "form,words",
    [
        ("short", "Misshapen.client returns 1 values for 60 clients"),
        ("narrow", r"values have shape \(60, 2\)"),
        ("backwards", "`owner` that does not fit"),
        ("beyond", "`owner` that does not fit"),
    ],
)
def test_an_answer_that_does_not_fit_its_clients_is_refused(form, words, tmp_path):
    with pytest.raises(InputError, match=words):
        run(own("Misshapen", fields={"form": form}), out=tmp_path / "run")


# An accumulator of the task's own.


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_a_decoder_may_keep_the_messages_themselves(trust, tmp_path):
    base = own("Joint", trust=trust, mechanism=LAPLACE)
    placed_everywhere(base, tmp_path, stop=2)
    saved = RunDir(tmp_path / "base").latest().saved["public"]
    assert saved["messages"].shape == (60, 6) and (np.diff(saved["messages"], axis=0) >= 0).all()
    assert np.array_equal(saved["estimate"], saved["messages"][30])


# Data of another type and shape than the values.


def test_data_keep_their_type_and_values_have_the_tasks_width(tmp_path):
    population = {"clients": 60, "data": {"kind": "tests.tasks.examples:Images"}}
    base = own("Brightness", population=population, mechanism={**LAPLACE, "radius": 1.0})
    result = placed_everywhere(base, tmp_path, stop=2)
    assert bound_mechanism(base).dimension == 1
    actor = ClientActor(base.document(), 0, 0, 0, 60)
    actor.load(0)
    actor.report(0, 0.0, None, 1, (0,), Ask(actor.setting.mechanism), {})
    data = actor.answers.data
    assert data.dtype == np.uint8 and data.shape == (60, 4, 4)
    # Nothing but the bytes is kept of them.
    assert actor.answers._checked is None
    brightness = data.reshape(60, -1).mean() / 255.0
    kept = result.metrics.to_pylist()[0]
    saved = RunDir(tmp_path / "base").latest().saved["public"]
    assert kept["truth"] == pytest.approx(brightness, abs=1e-9) and saved["estimate"].shape == (1,)


# What readers see.


@pytest.mark.parametrize("name", ["Several", "Arms"])
def test_readers_see_the_same_order_in_any_placement(name, tmp_path, monkeypatch):
    """Sums would not tell: how many values the others of an actor send must not matter either."""
    from raydp_sim.actors.aggregator import AggregatorActor

    seen, fold = {}, AggregatorActor._fold
    bit = {"kind": "2rr", "epsilon_local": 1.0}
    # Of one message each, several clients share the words that their buckets are drawn from.
    sections = {"mechanism": LAPLACE}
    if name == "Arms":
        sections = {"mechanism": bit, "population": people(60, 3)}
    for per_actor, shufflers in ((60, 1), (1, 1), (7, 3)):
        chunks = seen[per_actor] = []

        def noting(self, release, batch, chunks=chunks):
            chunks.append((release, batch.groups.tolist(), batch.payload.tolist()))
            return fold(self, release, batch)

        monkeypatch.setattr(AggregatorActor, "_fold", noting)
        base = with_placement(
            own(name, rounds=2, **sections), shufflers, clients_per_actor=per_actor
        )
        run(base, out=tmp_path / str(per_actor))
    assert len(seen[60]) == 2 and seen[60] == seen[1] == seen[7]


# The same on Ray.


@pytest.mark.cluster
@pytest.mark.parametrize(
    "name",
    ["Arms", "Switching"]
    + [pytest.param(name, marks=pytest.mark.long) for name in ("Pair", "Several", "Ending")],
)
def test_ray_gives_what_inline_gives(name, tmp_path, ray_session):
    sections = {}
    if name == "Arms":
        bit = {"kind": "2rr", "epsilon_local": 1.0}
        sections = {"mechanism": bit, "population": people(60, 3)}
    if name == "Switching":
        latency = {"kind": "lognormal", "median": 20.0, "sigma": 1.0}
        sections["population"] = people(latency=latency)
        sections["participation"] = {"kind": "asynchronous", "batch": 20, "every": 60.0}
    base = own(name, **sections)
    run(base, out=tmp_path / "inline")
    run(with_placement(base, 2, backend="ray", clients_per_actor=40), out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")


@pytest.mark.cluster
def test_values_outside_the_domain_are_refused_on_ray_too(tmp_path, ray_session):
    base = with_placement(own("Outside", mechanism=LAPLACE), backend="ray", clients_per_actor=30)
    with pytest.raises(InputError, match=r"client \d+ is outside the l1 ball"):
        run(base, out=tmp_path / "run")
