"""Which event a release is: by policy alone, never smaller than what can be proved."""

import math
from typing import ClassVar

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.linf import LInfVector
from raydp_sim.mechanisms.rr2 import RandomizedResponse
from raydp_sim.metrics import streams
from raydp_sim.population.availability.always import Always
from raydp_sim.population.availability.base import Availability
from raydp_sim.population.participation.uniform import Uniform
from raydp_sim.privacy.curves.gaussian import gaussian_delta
from raydp_sim.privacy.events import (
    GaussianShuffle,
    LocalReport,
    MultiMessageShuffle,
    Shuffle,
    SubsampledMultiMessage,
)
from raydp_sim.privacy.ledger import store
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism
from raydp_sim.scenario.accounting import planned, release_event, sampling_counts
from tests.conftest import scenario

SAMPLED = {"kind": "uniform", "sampled": 100}
COINS = {"kind": "bernoulli", "probability": 0.9}
DATA = {"kind": "gaussian", "dimension": 6, "clip": 1.0}


def event(n=100, **sections):
    base = scenario(1000, **sections)
    return release_event(base, bound_mechanism(base), n)


def test_a_uniform_cohort_of_clients_that_are_always_there_is_sampled():
    made = event(participation=SAMPLED)
    assert isinstance(made, SubsampledMultiMessage)
    assert (made.clients, made.sampled, len(made.losses)) == (1000, 100, 6)


@pytest.mark.parametrize(
    "sections,why",
    [
        ({"participation": {"kind": "self", "probability": 0.1}}, "not uniform"),
        ({}, "not uniform"),
        (
            {
                "participation": SAMPLED,
                "population": {"clients": 1000, "data": DATA, "availability": COINS},
            },
            "availability",
        ),
        ({"participation": SAMPLED, "privacy": {"honest_fraction": 0.9}}, "colluding"),
    ],
)
def test_anything_else_voids_sampling_and_says_why(sections, why):
    assert isinstance(event(**sections), MultiMessageShuffle)
    assert why in sampling_counts(scenario(1000, **sections))


class Favoured(Uniform):
    """Always the same clients, as a user might write it: chosen by the shuffler, not uniformly."""

    kind: ClassVar[str] = "favoured"
    uniform_and_secret = False

    def choose(self, clients, available, rate, stream):
        return np.arange(self.sampled, dtype=np.uint32)


class Boastful(Always):
    """Says in its hint that everyone is there, and half of them are not."""

    kind: ClassVar[str] = "boastful"
    everyone = Availability.everyone

    def available(self, ids, time, stream):
        return ids % 2 == 0


class Silent(RandomizedResponse):
    """A mechanism whose declarations leave the accounting nothing to amplify."""

    kind: ClassVar[str] = "silent"

    def losses(self):
        return None


class Careless(RandomizedResponse):
    """Calls itself pure and states a delta."""

    kind: ClassVar[str] = "careless"

    def event(self):
        return LocalReport(1.0, 1e-9)


class Together(LInfVector):
    """A pure mechanism that gives all messages of a report to one shuffler."""

    kind: ClassVar[str] = "together"
    routing = "single"


def test_a_users_policy_or_hint_is_not_taken_for_uniform_sampling():
    mine = {"kind": "tests.test_accounting:Favoured", "sampled": 100}
    assert isinstance(event(participation=mine), MultiMessageShuffle)
    there = {"kind": "tests.test_accounting:Boastful"}
    population = {"clients": 1000, "data": DATA, "availability": there}
    made = event(participation=SAMPLED, population=population)
    assert isinstance(made, MultiMessageShuffle)


@pytest.mark.parametrize("kind", ["Silent", "Careless"])
def test_a_users_mechanism_is_amplified_only_by_what_it_states(kind, tmp_path):
    bits = {"kind": "bernoulli", "probability": 0.5}
    base = scenario(
        population={"clients": 300, "data": bits},
        mechanism={"kind": f"tests.test_accounting:{kind}", "epsilon_local": 1.0},
    )
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert privacy["bound"] == "local-composition" and privacy["epsilon"] == pytest.approx(4.0)


@pytest.mark.parametrize("coordinates", [1, 3])
def test_several_messages_to_one_shuffler_are_not_amplified(coordinates, tmp_path):
    """What is proved for one shuffler per message says nothing about a multiset of them all."""
    parameters = {"radius": 1.0, "epsilon_local": 1.0, "coordinates": coordinates}
    together = {"kind": "tests.test_accounting:Together", **parameters}
    assert isinstance(
        event(mechanism={"kind": "linf", **parameters}), Shuffle | MultiMessageShuffle
    )
    if coordinates == 1:
        assert isinstance(event(mechanism=together), Shuffle)
        return
    assert event(mechanism=together) is None
    privacy = run(scenario(300, mechanism=together), out=tmp_path / "run").summary["privacy"]
    assert privacy["bound"] == "local-composition" and privacy["epsilon"] == pytest.approx(4.0)


def test_a_batch_that_is_private_only_as_a_whole_is_charged_as_it_is():
    shares = {"kind": "split-and-mix", "radius": 1.0, "epsilon": 0.5, "delta": 1e-8}
    base = scenario(
        rounds=3,
        population={"clients": 300, "data": {"kind": "gaussian", "dimension": 1, "clip": 1.0}},
        mechanism=shares,
        shuffle={"min_batch": 100},
        participation=SAMPLED,
    )
    assert release_event(base, bound_mechanism(base), 100) is None
    assert planned(base, bound_mechanism(base)) == pytest.approx(1.5)


def test_only_honest_clients_hide_anyone():
    one = {"kind": "linf", "radius": 1.0, "epsilon_local": 1.0, "coordinates": 1}
    all_honest = event(n=1000, mechanism=one)
    some = event(n=1000, mechanism=one, privacy={"honest_fraction": 0.3})
    assert isinstance(all_honest, Shuffle) and all_honest.n <= 1000 and some.n <= 300


def test_gaussian_noise_is_amplified_by_a_shuffler_and_by_nothing_else():
    noise = {"kind": "gaussian", "radius": 3.0, "epsilon_local": 1.0, "delta_local": 1e-9}
    assert event(trust="local", mechanism=noise) is None
    shuffled = event(trust="shuffle", mechanism=noise)
    assert isinstance(shuffled, GaussianShuffle)
    # Noise for that guarantee, where two values are at most a diameter apart.
    assert gaussian_delta(1.0, shuffled.noise_multiplier) <= 1e-9 * (1 + 1e-6)


@pytest.mark.parametrize("kind", sorted(MECHANISMS.kinds))
def test_the_losses_of_the_messages_add_up_to_the_reports(kind):
    for example in MECHANISMS.kinds[kind].examples:
        mechanism = MECHANISMS.parse({"kind": kind, "dimension": 1, "clients": 50, **example})
        if mechanism.guarantee != "pure" or mechanism.where != "client":
            continue
        total, stated = math.fsum(mechanism.losses()), mechanism.event().epsilon
        assert stated * (1 - 1e-9) <= total <= stated * 1.001


@pytest.mark.parametrize("kind", ["2rr", "rbin", "linf"])
def test_each_stated_loss_is_that_of_the_messages_law(kind):
    """By enumeration: the largest log ratio of a message's exact law over all pairs of corners."""
    for example in MECHANISMS.kinds[kind].examples:
        mechanism = MECHANISMS.parse({"kind": kind, **example})
        width = mechanism.domain.dimension
        corners = np.indices((2,) * width).reshape(width, -1).T.astype(float)
        if kind == "linf":
            corners = (2 * corners - 1) * mechanism.radius
        found = []
        for law in mechanism.laws(corners):
            logs = np.log(law[:, law.min(axis=0) > 0])
            found.append(float((logs.max(axis=0) - logs.min(axis=0)).max()))
        real = sorted(loss for loss in found if loss > 1e-12)
        assert np.allclose(real, sorted(mechanism.losses()), rtol=1e-9)
        assert all(np.array(sorted(mechanism.losses())) >= np.array(real) * (1 - 1e-12))


def test_the_plan_is_never_below_what_the_run_ends_with(tmp_path):
    for name, sections in {
        "sampled": {"participation": SAMPLED},
        "self": {"participation": {"kind": "self", "probability": 0.5}},
        "all": {},
    }.items():
        base = scenario(1000, 6, shuffle={"min_batch": 50}, **sections)
        ended = run(base, out=tmp_path / name).summary["privacy"]["epsilon"]
        assert 0 < ended <= planned(base, bound_mechanism(base)) * (1 + 1e-9)


def test_every_release_states_its_bound_and_the_ledger_its_event(tmp_path):
    base = scenario(1000, 3, participation=SAMPLED)
    run(base, out=tmp_path / "run")
    rows = streams.read(tmp_path / "run" / "metrics", "releases")
    assert rows["bound"].to_pylist() == ["pld-variation"] * 3
    assert np.all(np.diff(rows["epsilon"].to_numpy()) > 0)
    ledger = store.read(tmp_path / "run" / "ledger")
    assert set(ledger["shuffled"].to_pylist()) == {"SubsampledMultiMessage"}


def test_a_target_beyond_the_privacy_delta_is_refused():
    target = {"epsilon": 1.0, "delta": 1e-3}
    mechanism = {"kind": "linf", "radius": 1.0, "target": target}
    with pytest.raises(InputError, match=r"mechanism.target.delta is 0.001; .*privacy.delta"):
        scenario(1000, mechanism=mechanism, privacy={"delta": 1e-6})


@pytest.mark.parametrize(
    "epsilon,delta,rounds,clients",
    [(0.01, 1e-6, 100, 1000), (0.05, 1e-6, 1000, 1000), (0.001, 1e-6, 100, 3), (1.0, 1e-8, 3, 500)],
)
def test_a_calibrated_run_never_exceeds_its_target_as_the_ledger_counts(
    epsilon, delta, rounds, clients
):
    bits = {"kind": "bernoulli", "probability": 0.5}
    base = scenario(
        rounds=rounds,
        population={"clients": clients, "data": bits},
        mechanism={"kind": "2rr", "target": {"epsilon": epsilon, "delta": delta}},
    )
    mechanism = bound_mechanism(base)
    assert planned(base, mechanism, delta) <= epsilon
    assert mechanism.epsilon_local >= epsilon / rounds * (1 - 1e-9)


def test_a_target_too_small_for_any_amplification_is_shared_out():
    bits = {"kind": "bernoulli", "probability": 0.5}
    base = scenario(
        rounds=1000,
        population={"clients": 1000, "data": bits},
        mechanism={"kind": "2rr", "target": {"epsilon": 1e-5, "delta": 1e-6}},
    )
    assert bound_mechanism(base).epsilon_local == pytest.approx(1e-8)


@pytest.mark.parametrize(
    "mechanism",
    [
        {"kind": "privacy-blanket", "radius": 1.0, "steps": 4},
        {"kind": "priv", "radius": 1.0},
        {"kind": "privunit", "radius": 1.0},
        {"kind": "linf", "radius": 1.0, "levels": 3},
    ],
    ids=lambda mechanism: mechanism["kind"],
)
def test_a_target_is_used_up_where_all_are_charged_alike(mechanism):
    """Every bound that the summary will use is used to calibrate, the mechanism's own included."""
    target = {"epsilon": 2.0, "delta": 1e-7}
    data = {"kind": "gaussian", "dimension": 1, "clip": 1.0}
    base = scenario(
        rounds=2,
        population={"clients": 1000, "data": data},
        mechanism={**mechanism, "target": target},
    )
    assert 1.99 < planned(base, bound_mechanism(base), 1e-7) <= 2.0


@pytest.mark.parametrize("least", [1, 40])
def test_a_target_that_shuffling_cannot_help_with_is_met_at_once(least):
    """The answer is the target itself, which the search once approached in tiny steps."""
    base = scenario(
        rounds=1,
        population={
            "clients": 1000,
            "data": {"kind": "gaussian", "dimension": 3, "clip": 0.3},
            "availability": {"kind": "bernoulli", "probability": 0.5},
        },
        mechanism={"kind": "r1", "radius": 1.0, "target": {"epsilon": 1.0, "delta": 1e-12}},
        shuffle={"min_batch": least},
    )
    assert bound_mechanism(base).epsilon_local == pytest.approx(1.0, rel=1e-5)


def test_a_target_too_small_to_share_is_refused_by_name():
    with pytest.raises(InputError, match=r"mechanism\.target\.epsilon is 1e-09; shared between 4"):
        scenario(
            mechanism={"kind": "linf", "radius": 1.0, "target": {"epsilon": 1e-9, "delta": 1e-6}}
        )


def test_a_budget_caps_the_plan_at_its_own_delta_and_no_smaller_one():
    base = scenario(
        rounds=50,
        shuffle={"min_batch": 50},
        privacy={"delta": 1e-6, "budget": {"epsilon": 3.0, "delta": 1e-6}},
    )
    assert planned(base, bound_mechanism(base)) == 3.0
    assert planned(base, bound_mechanism(base), 1e-9) > 3.0
