"""Each rule fires on a case made for it and on nothing else; a calm run is told to be calm."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from raydp_sim.cli.shipped import shipped
from raydp_sim.scenario import Scenario
from raydp_sim.schema import scenario_schema
from raydp_sim.stress import diagnosis
from raydp_sim.stress.diagnosis import RULES, diagnose
from raydp_sim.stress.measures import Measures, Waste, Withheld

CALM = Measures(
    name="calm",
    policy="asynchronous",
    clients=1000,
    batches=40,
    made=40,
    withheld_count=0,
    withheld=None,
    squared_error=0.1,
    running_error=0.003,
    noise=0.0025,
    bias=0.004,
    chance_bias=0.005,
    wanted=100.0,
    batch_p5=100.0,
    batch_median=100.0,
    min_batch=50,
    deadline=1800.0,
    epsilon=2.0,
    planned=6.0,
    gini=0.1,
    never=0.0,
    effective=950.0,
    most_turns=9,
    staleness=0.4,
    stalest=3,
    started=4000,
    waste=Waste(under_way=0.01),
    seconds_per_batch=600.0,
)
SMALL = Withheld(least=20, most=45, first=36_000.0, last=43_200.0, half=40, epsilon=7.5)
# What makes each rule fire alone, words that its text must have, and what just does not.
CASES = {
    "ended_early": (
        {"made": 30},
        ["30 of 40 batches", "participation.batch", "participation.patience"],
        {"made": 40},
    ),
    "withheld": (
        {"made": 37, "withheld_count": 3, "withheld": SMALL},
        [
            "3 of 40 batches were withheld, from hour 10.0 to 12.0",
            "20 to 45 reports came and 50 are needed",
            "participation.deadline",
            "participation.on_short",
            "shuffle.min_batch to 40",
            "from 6 to about 7.5",
        ],
        {"withheld": None},
    ),
    "spent": (
        {"budget": 2.0, "exhausted": 0.3},
        ["30% of the clients", "budget of 2", "privacy.budget.epsilon", "shuffle.min_batch"],
        {"budget": 2.0, "exhausted": 0.04},
    ),
    "short": (
        {"batch_p5": 80.0},
        ["at most 80 of the 100", "deadline closed them", "participation.deadline"],
        {"batch_p5": 90.0},
    ),
    "noisy": (
        {"squared_error": 0.2},
        ["2 times that of calm", "participation.batch", "task.rounds"],
        {"squared_error": 0.12},
    ),
    "biased": (
        {"bias": 0.05, "never": 0.1},
        ["off by 0.05", "10 times what chance explains", "50% of the final error", "10% of the"],
        {"bias": 0.0149},
    ),
    "uneven": (
        {"gini": 0.5, "never": 0.2, "effective": 400.0},
        ["Gini 0.50", "20% never", "400 of 1,000 clients", "participation.every"],
        {"gini": 0.29},
    ),
    "costly": (
        {"epsilon": 4.0, "most_turns": 30},
        ["epsilon 4, and 2 in calm", "30 releases", "there in 9", "privacy.budget"],
        {"epsilon": 2.9},
    ),
    "beyond_plan": ({"planned": 1.9}, ["epsilon 2, planned 1.9"], {"planned": 2.0}),
    "stale": (
        {"stalest": 9},
        ["0.4 releases behind on average and 9 at worst", "participation.staleness_exponent"],
        {"stalest": 4},
    ),
    "waste": (
        {"waste": Waste(dropped=0.2, late=0.0, withheld=0.05, under_way=0.001)},
        [
            "25% of the reports begun",
            "20% lost on the way, 5% in withheld",
            "1.2 times the clients",
        ],
        {"waste": Waste(dropped=0.09)},
    ),
    "slow": (
        {"seconds_per_batch": 7200.0},
        ["2.0 h, and 10 min in calm", "participation.every"],
        {"seconds_per_batch": 890.0},
    ),
}


def test_nothing_is_found_where_nothing_is_wrong():
    assert diagnose(CALM, CALM) == []


def test_every_rule_has_a_case():
    assert set(CASES) == set(RULES)


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_fires_alone_and_names_what_to_change(rule):
    changes, words, silent = CASES[rule]
    (found,) = diagnose(replace(CALM, **changes), CALM)
    assert found.rule == rule
    for part in words:
        assert part in found.text, found.text
    assert found.text.endswith(".")
    assert diagnose(replace(CALM, **silent), CALM) == []


@pytest.mark.parametrize(
    ("rule", "changes", "words"),
    [
        ("withheld", {"withheld": replace(SMALL, epsilon=None)}, "shuffle.min_batch"),
        # Twelve times the epsilon is no advice.
        ("withheld", {"withheld": replace(SMALL, epsilon=72.0)}, "shuffle.min_batch"),
        ("short", {"policy": "uniform", "deadline": None, "batch_p5": 60.0}, "deadline"),
        ("uneven", {"gini": 0.5, "policy": "uniform"}, "participation.every"),
        ("waste", {"waste": Waste(late=0.3), "policy": "over-selected"}, "deadline"),
    ],
)
def test_advice_that_would_not_help_is_not_given(rule, changes, words):
    run = replace(CALM, withheld_count=0, **changes)
    text = RULES[rule](run, CALM)
    assert text is not None and words not in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"waste": Waste(late=0.3), "policy": "over-selected"}, "Lower participation.factor."),
        (
            {"waste": Waste(late=0.3), "policy": "over-selected", "batch_median": 90.0},
            "Raise participation.deadline.",
        ),
        (
            {"waste": Waste(dropped=0.5), "policy": "over-selected"},
            "participation.factor to about 2",
        ),
        ({"waste": Waste(under_way=0.3)}, "raise task.rounds"),
        ({"waste": Waste(withheld=0.3)}, "participation.on_short to wait"),
    ],
)
def test_waste_is_mended_at_its_largest_cause(changes, words):
    assert words in RULES["waste"](replace(CALM, **changes), CALM)


def test_uneven_turns_of_slow_clients_ask_for_a_later_deadline():
    text = RULES["uneven"](replace(CALM, gini=0.5, waste=Waste(late=0.2)), CALM)
    assert "participation.deadline" in text


def test_a_baseline_that_is_uneven_too_is_no_excuse_below_it():
    uneven = replace(CALM, gini=0.45)
    assert RULES["uneven"](replace(CALM, gini=0.5), uneven) is None


def test_a_run_without_releases_is_told_what_can_be_told():
    nothing = dict.fromkeys(("squared_error", "running_error", "noise", "bias", "chance_bias"))
    run = replace(CALM, **nothing, made=0, batch_p5=0.0, batch_median=0.0, epsilon=0.0)
    assert [found.rule for found in diagnose(run, CALM)] == ["ended_early"]


def test_the_settings_that_are_named_exist():
    """Every `section.field` of any text is a field of the scenario file."""
    named = set()
    for changes, _, _ in CASES.values():
        for policy in ("asynchronous", "over-selected"):
            for found in diagnose(replace(CALM, policy=policy, **changes), CALM):
                named |= set(re.findall(r"\b([a-z]+\.[a-z_]+(?:\.[a-z_]+)?)\b", found.text))
    fields = {name for name in named if name.split(".")[0] in Scenario.model_fields}
    assert len(fields) >= 8
    schema = scenario_schema()["$defs"]
    pieces = [choice for room in schema.values() for choice in room.get("oneOf", [room])]
    known = {key for piece in pieces for key in piece.get("properties", {})}
    assert {name.rpartition(".")[2] for name in fields} <= known


def test_no_rule_knows_a_scenario():
    text = Path(diagnosis.__file__).read_text(encoding="utf-8")
    names = [name.removeprefix("stress/") for name in shipped() if name.startswith("stress/")]
    assert not [name for name in names if name != "steady" and name in text]
