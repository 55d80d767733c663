"""User-level means: two stages in one run, each charged for what it is, and errors that fall."""

import numpy as np
import pytest

from raydp_sim.actors.backend import Inline
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.datasets.samples import Samples
from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.privacy.events import MultiMessageShuffle, Shuffle, SubsampledShuffle
from raydp_sim.privacy.ledger import store
from raydp_sim.random import Stream
from raydp_sim.run import prepare, reopen, run
from raydp_sim.scenario import bound_mechanism, parse, setting_of
from raydp_sim.scenario.accounting import planned, release_event
from raydp_sim.stream.trust import TRUSTS
from raydp_sim.tasks.base import Formed, Setting
from raydp_sim.tasks.user_mean import UserMean
from tests.conftest import assert_identical, placed_everywhere, scenario, with_placement
from tests.mechanisms.support import folded

MECHANISM = {"kind": "projected-mean", "radius": 10.0, "epsilon_local": 2.0, "levels": 3}


def user_level(clients=4000, samples=100, dimension=1, mean=3.7, **sections):
    data = {"kind": "samples", "samples": samples, "dimension": dimension, "mean": mean}
    split = sections.pop("range_split", "clients")
    task = {"kind": "user-mean", "samples": samples, "sigma": 1.0, "range_split": split}
    usual = {
        "trust": "local",
        "population": {"clients": clients, "data": data},
        "task": task,
        "mechanism": MECHANISM,
    }
    return scenario(**{**usual, **sections})


def known(mechanism):
    return Setting(mechanism, mechanism.clients, (mechanism.dimension,), delta=1e-6)


def formed(reports):
    return Formed(reports, TRUSTS["local"])


def stages(base):
    return [part.ask.mechanism for part in base.task.plan(setting_of(base))]


def answered(task, setting, ask, data, stream):
    own = stream.clients(np.arange(len(data), dtype=np.uint32))
    return task.client(setting, ask, data, {}, None, Randomizer(ask.mechanism), own)


def test_the_densest_bin_becomes_the_centre_and_the_first_of_equals():
    task = UserMean(samples=100, sigma=1.0)
    mechanism = make(**MECHANISM, clients=4000, dimension=1)
    setting, search = known(mechanism), task.search(mechanism)
    state = task.init(setting)
    ask = task.ask(setting, state)
    assert ask.mechanism == search
    # A stream of signs that match one code word and no other.
    payload = np.arange(32) * 2 + 1 - np.bitwise_count(np.arange(32) & 13) % 2
    counts = search.fold(search.zero(), np.zeros(32), payload.astype(np.uint8))
    after, public = task.step(setting, ask, 0, state, counts, formed(32), Stream(0))
    grid = task.grid(mechanism)
    assert after["centre"] == pytest.approx(-10 + grid.tau * 27) and int(after["stage"]) == 1
    assert public["estimate"] == after["centre"]
    mean = task.ask(setting, after).mechanism
    assert mean.centre == after["centre"].tolist() and mean.reach == 3 * grid.tau
    nothing, _ = task.step(setting, ask, 0, state, search.zero(), formed(0), Stream(0))
    assert nothing["centre"] == pytest.approx(-10 + grid.tau)


def test_a_value_is_in_the_bin_whose_centre_is_within_tau():
    task = UserMean(samples=100, sigma=1.0)
    mechanism = make(**MECHANISM, clients=4000, dimension=1)
    setting, grid = known(mechanism), task.grid(mechanism)
    ask = task.ask(setting, task.init(setting))
    data = np.linspace(-10, 10, 1001)[:, None]
    bins = answered(task, setting, ask, data, Stream(0)).values
    assert bins.min() == 0 and bins.max() == grid.bins - 1
    far = np.abs(data - grid.centre_of(bins)).max()
    assert far <= grid.tau * (1 + 1e-9)


def test_vectors_are_rotated_and_rotated_back():
    task = UserMean(samples=100, sigma=1.0)
    mechanism = make(**MECHANISM, clients=4000, dimension=3)
    setting = known(mechanism)
    state = {**task.init(setting), "stage": np.asarray(1)}
    data = np.random.default_rng(1).uniform(-10, 10, (50, 3))
    rotated = answered(task, setting, task.ask(setting, state), data, Stream(0)).values
    assert rotated.shape == (50, 4)
    assert np.linalg.norm(rotated, axis=1) == pytest.approx(np.linalg.norm(data, axis=1))
    assert np.abs(rotated).max() <= task.grid(mechanism).half
    assert task._rotation(3).back(rotated)[:, :3] == pytest.approx(data)


@pytest.mark.parametrize(
    "trust,dimension,split",
    [
        ("local", 3, "clients"),
        ("local", 2, "budget"),
        ("shuffle", 1, "clients"),
        ("shuffle", 2, "budget"),
    ],
)
def test_results_do_not_depend_on_placement(trust, dimension, split, tmp_path):
    base = user_level(600, 400, dimension, trust=trust, range_split=split)
    run(base, out=tmp_path / "base")
    run(with_placement(base, 5, clients_per_actor=50), out=tmp_path / "placed")
    assert_identical(tmp_path / "base", tmp_path / "placed")


@pytest.mark.cluster
def test_ray_gives_what_inline_gives(tmp_path, ray_session):
    base = user_level(600, 400, 3, trust="shuffle")
    run(base, out=tmp_path / "inline")
    run(with_placement(base, 2, backend="ray", clients_per_actor=200), out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")


@pytest.mark.parametrize("trust", ["local", "shuffle"])
def test_a_run_stopped_between_the_stages_resumes_with_the_centre(trust, tmp_path):
    base = user_level(600, 400, trust=trust, placement={"backend": "inline"})
    base = with_placement(base, checkpoint_seconds=0)
    run(base, out=tmp_path / "whole")
    rows = prepare(base, out=tmp_path / "part").play()
    next(rows)
    rows.close()
    for _ in reopen(tmp_path / "part").play():
        pass
    assert_identical(tmp_path / "whole", tmp_path / "part")


def test_late_reports_of_the_search_are_discarded_behind_a_shuffler(tmp_path):
    """Work takes about as long as a batch takes to fill, so many come late to the mean."""
    latency = {"kind": "lognormal", "median": 20.0, "sigma": 1.0}
    data = {"kind": "samples", "samples": 400, "mean": 3.7}
    base = user_level(
        trust="shuffle",
        population={"clients": 1000, "data": data, "latency": latency},
        participation={"kind": "asynchronous", "batch": 300, "every": 60.0},
        shuffle={"min_batch": 50},
    )
    search, mean = placed_everywhere(base, tmp_path).metrics.to_pylist()
    assert search["discarded"] == 0 and search["batch_size"] == 300
    assert 0 < mean["discarded"] and mean["batch_size"] == 300 - mean["discarded"] >= 50
    assert mean["staleness"] == 0.0 and mean["squared_error_cohort"] < 0.1
    with pytest.raises(InputError, match=r"participation.kind is 'asynchronous'; this task has"):
        user_level(participation={"kind": "asynchronous", "batch": 300, "every": 60.0})


def played(task, mechanism, data, seed):
    """The two stages without actors; returns the estimate and how much was clipped."""
    setting = known(mechanism)
    state, clipped = task.init(setting), 0
    ids = np.arange(len(data))
    for release in range(2):
        ask = task.ask(setting, state)
        stage, place = ask.mechanism, Stream(seed).at("randomize", release)
        values = answered(task, setting, ask, data, place).values
        payload, more, _ = stage.randomize(values, place.clients(ids))
        counts = folded(stage, payload)
        state, public = task.step(setting, ask, 0, state, counts, formed(len(data)), Stream(seed))
        clipped += more
    return public["estimate"], clipped


def test_the_error_falls_with_the_samples():
    """log-log slope over samples 100 to 6400 of the squared error, averaged over 100 runs each.

    A run's squared error is about a chi-square with one degree of freedom, so the log of the mean
    of 100 has a standard error of 0.145, and the slope of four points one of 0.047. 5 of those: a
    false alarm has probability below 1e-6. What is far outside the range would show as clipped.
    """
    samples = np.array([100, 400, 1600, 6400])
    mechanism = make(**MECHANISM, clients=4000, dimension=1)
    ids, errors, bounds = np.arange(4000, dtype=np.uint32), [], []
    for m in samples:
        task = UserMean(samples=int(m), sigma=1.0)
        squares = []
        for seed in range(100):
            data = Samples(samples=int(m), mean=3.7).values(ids, Stream(seed).at("data", int(m)))
            estimate, clipped = played(task, mechanism, data, seed)
            assert clipped == 0
            squares.append(float(((estimate - data.mean(axis=0)) ** 2).sum()))
        errors.append(np.mean(squares))
        bounds.append(task.error_bound(mechanism, 4000))
        assert errors[-1] < bounds[-1] * (1 + 5 * 0.145)
    slopes = [np.polyfit(np.log(samples), np.log(y), 1)[0] for y in (bounds, errors)]
    assert slopes[0] == pytest.approx(-1.0, abs=1e-9) and abs(slopes[1] + 1.0) < 5 * 0.047
    naive = make("laplace", epsilon_local=2.0, dimension=1, radius=10.0).worst_mse() / 4000
    assert errors[0] < naive / 4 and errors[-1] < naive / 250


@pytest.mark.parametrize("split", ["clients", "budget"])
def test_vectors_are_found_within_the_bound(split, tmp_path):
    """The bound is one on the mean; that of 20 errors with four coordinates each has a coefficient
    of variation of 0.16, so it stays below 1.8 times the bound but for a probability of 1e-6. A
    coordinate whose search failed would alone add 100 times the bound.
    """
    mechanism = {**MECHANISM, "epsilon_local": 8.0}
    mean = [3.0, -6.0, 1.5]
    base = user_level(
        6000, 100, 3, mean, mechanism=mechanism, range_split=split, repeat=20, trust="local"
    )
    summary = run(base, out=tmp_path / "run").summary
    metrics = summary["metrics"]
    assert metrics["squared_error_cohort"] < 1.8 * metrics["error_bound"]
    assert metrics["error_bound"] == pytest.approx(
        base.task.error_bound(bound_mechanism(base), 6000)
    )
    stated = base.task.failure_probability(bound_mechanism(base), 6000)
    assert metrics["failure_probability"] == pytest.approx(stated)
    assert summary["privacy"]["epsilon"] == pytest.approx(8.0)


def test_each_stage_is_charged_for_what_it_is(tmp_path):
    base = user_level()
    result = run(base, out=tmp_path / "run")
    privacy = result.summary["privacy"]
    assert privacy["epsilon"] == pytest.approx(2.0, rel=1e-9) and privacy["epsilon"] <= 2.0
    assert privacy["delta"] == 0 and privacy["bound"] == "local-composition"
    assert privacy["epsilon"] == planned(base, bound_mechanism(base))
    search, mean = stages(base)
    first, second = result.metrics.to_pylist()
    for row, stage in ((first, search), (second, mean)):
        assert row["bits"] == 4000 * stage.bits
        assert row["wire_bytes"] == 4000 * -(-stage.bits // 8)
        assert row["messages"] == 4000 * stage.messages_per_report
        assert row["epsilon_local"] == stage.event().epsilon == pytest.approx(1.0)
    assert (search.bits, mean.bits) == (6, 3)
    rows = store.read(tmp_path / "run" / "ledger").to_pylist()
    charged = [store.Charge.of_row(row).event for row in rows]
    assert charged == [search.event(), mean.event()]


def test_behind_a_shuffler_each_stage_is_a_shuffle_of_its_own(tmp_path):
    base = user_level(500, trust="shuffle")
    search, mean = stages(base)
    assert isinstance(release_event(base, search, 500), Shuffle)
    assert isinstance(release_event(base, mean, 500), MultiMessageShuffle)
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert 0 < privacy["epsilon"] < 1.0 < 2.0
    assert privacy["epsilon"] <= planned(base, bound_mechanism(base))
    sampled = user_level(500, trust="shuffle", participation={"kind": "uniform", "sampled": 200})
    assert isinstance(release_event(sampled, search, 200), SubsampledShuffle)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_target_is_the_guarantee_of_both_stages(delta, tmp_path):
    target = {"epsilon": 0.5, "delta": delta}
    mechanism = {"kind": "projected-mean", "radius": 10.0, "target": target}
    base = user_level(500, trust="shuffle", mechanism=mechanism)
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert privacy["epsilon"] <= 0.5
    if delta:
        assert bound_mechanism(base).epsilon_local > 1.0
        assert planned(base, bound_mechanism(base), delta) > 0.49
    else:
        assert bound_mechanism(base).epsilon_local == 0.5


def test_values_outside_the_range_found_are_counted(tmp_path):
    """The data are ten times as wide as the server was told, so many means are clipped."""
    data = {"kind": "samples", "samples": 1, "mean": 3.7}
    wide = {"clients": 2000, "data": data}
    base = user_level(
        2000, 100, population=wide, mechanism={**MECHANISM, "on_out_of_range": "clip"}
    )
    search, mean = run(base, out=tmp_path / "run").metrics.to_pylist()
    assert search["clipped"] == 0 and 50 < mean["clipped"] < 2000


def test_a_search_that_was_withheld_is_made_again(tmp_path):
    """Half of the clients are there; the first batch is too small, and no mean is taken blindly."""
    base = user_level(40, 100, trust="shuffle")
    document = base.document()
    document["population"]["availability"] = {"kind": "bernoulli", "probability": 0.5}
    for seed in range(30):
        document["seed"], document["shuffle"] = seed, {"shufflers": 1, "min_batch": 20}
        made = scenario(**document)
        crew = Crew(made, Inline(), tmp_path / str(seed))
        crew.begin(0, 0, None)
        (tmp_path / str(seed) / "ledger").mkdir(parents=True)
        rows = list(Conductor(crew).play(2))
        if [row["release"] for row in rows] == [1]:
            assert int(crew.lead.task_state["stage"]) == 1
            assert (
                rows[0]["bits"]
                == 20 * 0 + rows[0]["batch_size"] * base.task.search(bound_mechanism(made)).bits
            )
            return
    raise AssertionError("no seed withheld the first batch only")


@pytest.mark.parametrize(
    "sections,says",
    [
        (
            {"mechanism": {"kind": "linf", "radius": 10.0, "epsilon_local": 1.0}},
            "mechanism.kind is 'linf'.*'projected-mean'",
        ),
        ({"mechanism": {**MECHANISM, "reach": 1.0}}, "mechanism.reach is 1.0.*leave it out"),
        ({"mechanism": {**MECHANISM, "centre": 1.0}}, "mechanism.centre is 1.0.*leave it out"),
        ({"task": {"kind": "user-mean", "samples": 9, "sigma": 1.0, "rounds": 3}}, "task.rounds"),
        ({"mechanism": {**MECHANISM, "epsilon_local": 60.0}}, "mechanism.epsilon_local is 60"),
    ],
)
def test_what_does_not_fit_is_named(sections, says):
    with pytest.raises(InputError, match=says):
        user_level(**sections)


@pytest.mark.parametrize(
    ("task", "mechanism", "words"),
    [
        ({"sigma": 1e-9}, {}, r"task\.sigma is 1e-09; the search takes \d+ bins"),
        ({"sigma": 9e8}, {}, r"task\.sigma is 900000000\.0; clients' means"),
        ({}, {"radius": 1e9}, r"mechanism\.radius is 1000000000\.0; rotated"),
        ({}, {"epsilon_local": 1e-9}, r"mechanism\.epsilon_local is 1e-09; each of the two"),
    ],
)
def test_what_the_stages_cannot_do_is_said_of_the_field_that_was_given(task, mechanism, words):
    document = {
        "name": "users",
        "trust": "local",
        "population": {
            "clients": 100,
            "data": {"kind": "gaussian", "dimension": 2, "clip": 1.0},
        },
        "task": {"kind": "user-mean", "samples": 10, "sigma": 1.0, **task},
        "mechanism": {"kind": "projected-mean", "radius": 10.0, "epsilon_local": 2.0, **mechanism},
    }
    with pytest.raises(InputError, match=words):
        parse(document)


def test_the_second_stage_may_send_all_rotated_coordinates():
    document = {
        "name": "users",
        "trust": "local",
        "population": {
            "clients": 100,
            "data": {"kind": "gaussian", "dimension": 3, "clip": 1.0},
        },
        "task": {"kind": "user-mean", "samples": 10, "sigma": 1.0},
        "mechanism": {
            "kind": "projected-mean",
            "radius": 10.0,
            "epsilon_local": 2.0,
            "coordinates": 4,
        },
    }
    made = parse(document)
    assert stages(made)[1].messages_per_report == 4
