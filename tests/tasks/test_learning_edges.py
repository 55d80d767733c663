"""Ends of what may be trained: fields that are refused by name, and sizes of one, all and none."""

import math

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.metrics import streams
from raydp_sim.privacy import events as ev
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.run.play import run
from raydp_sim.scenario import bound_mechanism, parse
from raydp_sim.scenario.accounting import release_event

DATA = {"kind": "synthetic-digits", "n": 120, "side": 4, "classes": 3, "test": 9, "points": 3}
ONE = {"kind": "rinf", "radius": 0.5, "epsilon_local": 2.0, "on_out_of_range": "clip"}
STEPS = {"kind": "gaussian-steps", "radius": 0.5, "steps": 2, "sigma": 0.5}
STEPS |= {"scalar_radius": 0.05, "scalar_sigma": 0.2}
TASKS = {
    "cldp-sgd": ({}, ONE, "shuffle"),
    "adaped": ({}, STEPS, "local"),
    "fedavg": ({}, {**ONE, "kind": "l2"}, "shuffle"),
    "mms-sgd": ({"step_size": 0.5}, {**ONE, "kind": "l2"}, "shuffle"),
}


def small(kind="cldp-sgd", **sections):
    """A scenario of 40 clients with three samples each, with fields of its sections replaced."""
    own, mechanism, trust = TASKS[kind]
    known = {
        "name": "edges",
        "seed": 1,
        "trust": trust,
        "task": {"kind": kind, "rounds": 2, **own},
        "population": {"clients": 40, "data": DATA},
        "mechanism": mechanism,
        "participation": {"kind": "uniform", "sampled": 20},
        "privacy": {"delta": 1e-5},
        "placement": {"backend": "inline"},
    }
    for name, fields in sections.items():
        known[name] = fields if "kind" in fields else {**known[name], **fields}
    return known


@pytest.mark.parametrize(
    ("kind", "sections", "named"),
    [
        ("cldp-sgd", {"participation": {"sampled": 0}}, "participation.sampled is 0"),
        ("cldp-sgd", {"participation": {"sampled": 41}}, "participation.sampled is 41"),
        ("adaped", {"participation": {"sampled": 41}}, "participation.sampled is 41"),
        ("cldp-sgd", {"task": {"sampled_points": 0}}, "task.sampled_points is 0"),
        ("cldp-sgd", {"task": {"sampled_points": 4}}, "task.sampled_points is 4"),
        ("cldp-sgd", {"task": {"rounds": 0}}, "task.rounds is 0"),
        ("cldp-sgd", {"task": {"step_size": -0.1}}, "task.step_size"),
        ("cldp-sgd", {"task": {"step_size": math.nan}}, "task.step_size"),
        ("cldp-sgd", {"mechanism": {"epsilon_local": 0.0}}, "mechanism.epsilon_local is 0"),
        ("cldp-sgd", {"mechanism": {"epsilon_local": math.nan}}, "mechanism.epsilon_local is nan"),
        ("cldp-sgd", {"mechanism": {"epsilon_local": math.inf}}, "mechanism.epsilon_local is inf"),
        ("cldp-sgd", {"mechanism": {"epsilon_local": 60.0}}, "mechanism.epsilon_local is 60"),
        ("cldp-sgd", {"mechanism": {"radius": 0.0}}, "mechanism.radius is 0"),
        ("cldp-sgd", {"mechanism": {**ONE, "kind": "rp", "power": 0.5}}, "mechanism.power is 0.5"),
        ("cldp-sgd", {"privacy": {"delta": 1.0}}, "privacy.delta is 1"),
        ("cldp-sgd", {"privacy": {"delta": -1e-9}}, "privacy.delta is -1e-09"),
        ("cldp-sgd", {"participation": {"kind": "self", "probability": 0.0}}, "probability is 0"),
        ("cldp-sgd", {"participation": {"kind": "self", "probability": 1.5}}, "probability is 1.5"),
        ("adaped", {"task": {"psi": 0.0}}, "task.psi is 0"),
        ("adaped", {"task": {"psi_least": 0.0}}, "task.psi_least is 0"),
        ("adaped", {"task": {"step_sizes": [0.1, -0.1, 0.1]}}, "task.step_sizes"),
        ("adaped", {"task": {"batch": 4}}, "task.batch is 4"),
        ("adaped", {"mechanism": {"steps": 0}}, "mechanism.steps is 0"),
        ("adaped", {"mechanism": {"scalar_radius": 0.0}}, "mechanism.scalar_radius is 0"),
        ("adaped", {"mechanism": {"sigma": 0.0}}, "mechanism.sigma is 0"),
        ("fedavg", {"task": {"proximal": -1.0}}, "task.proximal is -1"),
        ("fedavg", {"task": {"steps": 0}}, "task.steps is 0"),
        ("mms-sgd", {"task": {"smoothness": 1.0}}, "step_size, or both smoothness and gap"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_makes_no_sense_is_refused_by_field(kind, sections, named):
    with pytest.raises(InputError, match=named.replace(".", r"\.").replace("+", r"\+")):
        parse(small(kind, **sections))


def charged(**sections):
    """What a release of a scenario is planned to be charged as, and its epsilon."""
    scenario = parse(small(**sections))
    sampled = sections.get("participation", {}).get("sampled", 20)
    event = release_event(scenario, bound_mechanism(scenario), sampled)
    return event, account([(event, 2)], 1e-5).epsilon


def test_a_shuffle_of_one_message_hides_nothing_but_who_was_drawn():
    event, epsilon = charged(participation={"sampled": 1})
    assert event == ev.CldpRound(event.epsilon0, 40, 3, 1, 1, "rbin")
    drawn = math.log1p((math.exp(event.epsilon0) - 1.0) / 120.0)
    assert epsilon <= 2.0 * drawn * (1 + 1e-9)


def test_all_samples_of_all_clients_are_one_shuffle_without_any_sampling():
    everyone = {"participation": {"sampled": 40}, "task": {"sampled_points": 3}}
    event, epsilon = charged(**everyone)
    assert (event.rate, event.sampled_clients * event.sampled_points) == (1.0, 120)
    shuffled = account([(ev.Shuffle(event.epsilon0, 120, "rbin", unit="item"), 2)], 1e-5).epsilon
    assert epsilon == pytest.approx(shuffled, rel=1e-6)


def test_budgets_too_large_to_be_hidden_cost_no_more_than_by_themselves():
    for epsilon0 in (20.0, 24.9, 35.0):
        for event in (
            ev.SubsampledShuffle(epsilon0, 1000, 10, unit="item"),
            ev.CldpRound(epsilon0, 1000, 5, 10, 1),
            ev.CldpRound(epsilon0, 1000, 5, 10, 2),
            ev.SelfSampledShuffle(epsilon0, 1000, 0.01, unit="item"),
        ):
            found = account([(event, 3)], 1e-6).epsilon
            assert 0.0 < found <= 3.0 * epsilon0 * (1.0 + 1e-9)


@pytest.mark.parametrize("epsilon0", [35.0, 60.0, 400.0, 1e6])
def test_a_report_that_nothing_hides_is_charged_by_itself(epsilon0, tmp_path):
    """Laplace noise takes any budget, and e to the power of some is no number."""
    given = {**ONE, "kind": "laplace", "epsilon_local": epsilon0}
    everyone = {"kind": "all"}
    summary = run(parse(small(mechanism=given, participation=everyone)), out=tmp_path / "run")
    privacy = summary.summary["privacy"]
    assert 1.9 * epsilon0 < privacy["epsilon"] <= 2.0 * epsilon0 * (1.0 + 1e-9)
    assert privacy["amplification"]["used"] == "none" or epsilon0 < 36.0


def test_one_dimension_is_one_bit():
    assert make("rinf", epsilon_local=1.0, dimension=1, radius=1.0).bits == 1


def test_where_few_join_the_sources_bound_of_coins_is_silent_and_ours_is_not():
    """000 Theorem 4.4.1 charges too few and too many of them to delta: too much of it here."""
    few, many = (ev.SelfSampledShuffle(1.0, n, 0.1, "rbin", unit="item") for n in (1000, 60_000))
    with pytest.raises(NotApplicable, match="too few clients join"):
        find_run("self-sampling+dwork").epsilon([(few, 10)], 1e-5)
    assert find_run("self-sampling+dwork").epsilon([(many, 10)], 1e-5).epsilon < 10.0
    assert account([(few, 10)], 1e-5).epsilon < 10.0


CENTRAL = {
    "kind": "central-gaussian",
    "radius": 0.5,
    "epsilon": 1.0,
    "delta": 1e-8,
    "on_out_of_range": "clip",
}


@pytest.mark.parametrize("task", ["cldp-sgd", "fedavg", "adaptive"])
def test_a_round_in_which_nobody_comes_moves_nothing_for_a_trusted_server_too(task, tmp_path):
    """Its coins are charged all the same: how many came is seen."""
    kind = "fedavg" if task == "adaptive" else task
    more = {"adaptive_clip": {"rate": 0.3}} if task == "adaptive" else {}
    rare = small(
        kind,
        task={"rounds": 14, "evaluate_every": 1, **more},
        mechanism=CENTRAL,
        participation={"kind": "self", "probability": 0.015},
    ) | {"trust": "central"}
    summary = run(parse(rare), out=tmp_path / "run").summary
    withheld, released = (
        streams.read(tmp_path / "run" / "metrics", name).num_rows
        for name in ("withheld", "releases")
    )
    assert withheld + released == 14 and withheld > 2 and released > 2
    trained = streams.read(tmp_path / "run" / "metrics", "training").to_pylist()
    assert [row["round"] for row in trained] == list(range(1, released + 1))
    assert min(row["participants"] for row in trained) >= 1
    assert summary["privacy"]["epsilon"] == summary["privacy"]["planned"]
    with np.load(tmp_path / "run" / "model" / "last.npz") as last:
        assert all(np.isfinite(last[name]).all() for name in last.files)
