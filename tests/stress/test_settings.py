"""Advice names settings that the scenario at hand really has, whatever pieces it is made of."""

import re
from dataclasses import replace

import pytest

from raydp_sim.population.participation import PARTICIPATION
from raydp_sim.scenario import Scenario
from raydp_sim.stress.diagnosis import diagnose
from raydp_sim.stress.row import Waste
from raydp_sim.stress.settings import Settings
from tests.conftest import LINF, scenario
from tests.stress.cases import CALM, CASES, POLICIES, SMALL, WITHHELD, made

# What may be left out, and be given when it is needed.
UNSET = {"participation.patience", "participation.deadline", "privacy.budget"}
PHONES = {
    "clients": 200,
    "data": {"kind": "gaussian", "dimension": 6, "clip": 1.0},
    "classes": [{"name": "phone", "share": 1.0}],
}


def test_every_policy_is_tried():
    assert set(POLICIES) == set(PARTICIPATION.kinds)


@pytest.mark.parametrize("budget", [None, {"epsilon": 2.0, "delta": 1e-6}])
@pytest.mark.parametrize("deadline", [None, 30.0])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_settings_that_are_named_are_the_scenarios_own(policy, deadline, budget):
    """Each is a field of the very pieces the scenario is made of, and says something there."""
    one = made(policy, deadline, privacy={"budget": budget})
    named = _named(one)
    assert len(named) >= 6 and {name for name in named if not _has(one, name)} == set()
    if deadline is None:
        assert not [text for text in _advice(one) if re.search("[Rr]aise participation.dead", text)]


@pytest.mark.parametrize(
    ("sections", "name"),
    [
        ({}, "mechanism.epsilon_local"),
        (
            {"mechanism": {**LINF, "epsilon_local": None, "target": {"epsilon": 2.0}}},
            "mechanism.target.epsilon",
        ),
        (
            {
                "mechanism": {"kind": "central-laplace", "radius": 10.0, "epsilon": 1.0},
                "trust": "central",
            },
            "mechanism.epsilon",
        ),
        ({}, "population.availability"),
        ({"population": PHONES}, "population.classes"),
    ],
)
def test_mechanisms_and_populations_have_names_of_their_own(sections, name):
    one = made("uniform", **sections)
    named = _named(one)
    assert name in named
    assert {each for each in named if not _has(one, each)} == set()
    assert not {"population.availability", "population.classes"} <= named


def test_a_coin_that_always_says_yes_cannot_be_raised():
    sure = scenario(participation={"kind": "self", "probability": 1.0})
    assert Settings.of(sure).larger == "population.clients"


def _named(one: Scenario) -> set[str]:
    """Every `section.field` of any advice."""
    sections = "|".join(Scenario.model_fields)
    name = re.compile(rf"\b(?:{sections})(?:\.[a-z_]+)+")
    return {found for text in _advice(one) for found in name.findall(text)}


def _advice(one: Scenario) -> list[str]:
    """All that the rules say about runs of a scenario that go wrong."""
    budget, policy = one.privacy.budget, one.participation
    wrong = [changes for changes, _, _ in CASES.values() if "budget" not in changes]
    wrong += [{**WITHHELD, "withheld": replace(SMALL, epsilon=None)}]
    wrong += [{"waste": Waste(**{part: 0.3})} for part in ("late", "withheld", "under_way")]
    wrong += [{"waste": Waste(late=0.3), "gini": 0.5}, {"waste": Waste(late=0.3), "wanted": 200.0}]
    if budget is not None:
        spent = [{"exhausted": share} for share in (0.0, 0.2, 0.8)]
        wrong = [{"budget": budget.epsilon, **more, **each} for each in wrong for more in spent]
    calm = replace(
        CALM,
        policy=str(policy.kind),
        settings=Settings.of(one),
        deadline=policy.deadline,
    )
    runs = [replace(calm, **changes) for changes in wrong]
    return [found.text for run in runs for found in diagnose(run, calm)]


def _has(one: Scenario, name: str) -> bool:
    """Whether the path leads from field to field, and to a value if it is one to raise or lower."""
    place = one
    for part in name.split("."):
        if part not in type(place).model_fields:
            return False
        place = getattr(place, part)
    return place is not None or name in UNSET
