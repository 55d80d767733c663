"""CLDP-SGD and DSS-SGD: who may take part in a round, and how."""

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.privacy import events as ev
from raydp_sim.privacy.spent import spent
from raydp_sim.run.play import prepare, reopen, run
from raydp_sim.scenario import bound_mechanism, parse
from raydp_sim.scenario.accounting import release_event
from tests.tasks.sgd_scenarios import CENTRAL, CLIP, changed, charges, dealt


def test_unequal_clients_are_charged_with_the_smallest_and_refused_where_several_points_are_drawn():
    partition = {"kind": "unequal", "sigma": 1.0, "least": 2}
    population = dealt(3, n=2000, partition=partition)
    del population["data"]["points"]
    scenario = changed(population=population)
    sizes = scenario.population.hold(np.arange(120, dtype=np.uint32), scenario.stream(0)).sizes
    assert sizes.min() == 2 < sizes.max()
    event = release_event(scenario, bound_mechanism(scenario), 40)
    assert isinstance(event, ev.CldpRound) and event.points == 2
    with pytest.raises(InputError, match=r"task\.sampled_points is 2; client .* draw 1"):
        changed(population=population, task={"sampled_points": 2})


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"mechanism": {"on_out_of_range": "refuse"}}, "on_out_of_range: clip"),
        ({"mechanism": {"kind": "rbin", "epsilon_local": 1.0, **CLIP}}, "gradients point anywhere"),
        (
            {"mechanism": {"kind": "user-range", "bins": 4, "epsilon_local": 1.0, **CLIP}},
            "gradients point anywhere",
        ),
        ({"task": {"sampled_points": 2}}, "sampled_points is 2"),
        ({"task": {"patience": 2}}, "population.data.validation"),
        ({"task": {"step_size": 0}}, "step_size"),
        ({"task": {"callback": "nowhere:nothing"}}, "callback"),
        (
            {"population": {"clients": 120, "data": {"kind": "bernoulli", "probability": 0.5}}},
            "label",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(sections, words):
    with pytest.raises(InputError, match=words):
        changed(**sections)


@pytest.mark.parametrize(
    "sections",
    [
        CENTRAL,
        {"trust": "local"},
        {
            "mechanism": {"kind": "quan", "radius": 20.0, "on_out_of_range": "clip"},
            "privacy": {"guarantee": "none"},
        },
        {"participation": {"kind": "self", "probability": 0.3}},
        {"population": dealt(3), "task": {"sampled_points": 2}},
        {"population": dealt(3)},
        {
            "task": {
                "optimizer": {"kind": "fedadam"},
                "projection": {"kind": "l2-ball", "radius": 1.0},
            }
        },
        {"task": {"optimizer": {"kind": "sgd", "momentum": 0.9}}},
    ],
    ids=["central", "local", "vanilla", "coins", "several", "one-of-three", "adam", "momentum"],
)
def test_it_plays_and_its_clients_may_be_anywhere(sections, tmp_path):
    scenario = changed(**sections)
    result = run(scenario, out=tmp_path / "one")
    assert 0.0 <= result.summary["metrics"]["test_accuracy"] <= 1.0
    document = scenario.document()
    document["placement"]["clients_per_actor"] = 17
    run(parse(document), out=tmp_path / "two")
    one, two = (np.load(tmp_path / name / "model" / "last.npz") for name in ("one", "two"))
    assert all(np.array_equal(one[name], two[name]) for name in one.files)


def test_a_round_in_which_nobody_comes_is_not_counted(tmp_path):
    rare = changed(participation={"kind": "self", "probability": 0.003}, task={"rounds": 12})
    run(rare, out=tmp_path / "run")
    withheld = streams.read(tmp_path / "run" / "metrics", "withheld").num_rows
    rows = streams.read(tmp_path / "run" / "metrics", "learning").to_pylist()
    assert 0 < withheld < 12
    assert rows[-1]["round"] == 12 - withheld  # the last model is evaluated, whoever came last


def test_rounds_in_which_too_few_came_are_charged_as_what_they_are(tmp_path):
    """A round of coins costs the mean over how many may join; those that cost nothing count."""
    rare = changed(participation={"kind": "self", "probability": 0.003}, task={"rounds": 12})
    privacy = run(rare, out=tmp_path / "run").summary["privacy"]
    (event,) = set(charges(tmp_path / "run"))
    assert isinstance(event, ev.SelfSampledShuffle) and len(charges(tmp_path / "run")) == 12
    assert privacy["epsilon"] == privacy["planned"] == spent([(event, 12)], 1e-5).epsilon
    released = streams.read(tmp_path / "run" / "metrics", "releases").num_rows
    assert privacy["participation"]["mean"] * 120 >= released > 0
    # And after an interruption too.
    playing = prepare(rare, out=tmp_path / "cut").play()
    next(playing)
    playing.close()
    for _ in reopen(tmp_path / "cut").play():
        pass
    assert charges(tmp_path / "cut") == charges(tmp_path / "run")
