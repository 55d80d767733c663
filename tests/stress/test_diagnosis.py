"""Each rule fires on a case made for it and on nothing else; a calm run is told to be calm."""

from dataclasses import replace
from pathlib import Path

import pytest

from raydp_sim.cli.shipped import shipped
from raydp_sim.stress import diagnosis, facts
from raydp_sim.stress.diagnosis import RULES, diagnose
from raydp_sim.stress.row import Waste
from tests.stress.cases import CALM, CASES, SMALL, SPENT, WITHHELD


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
        # It would cost what the budgets hold, and so use them up.
        ("withheld", {"withheld": SMALL, "budget": 7.5}, "shuffle.min_batch"),
        # Twelve times the epsilon is no advice.
        ("withheld", {"withheld": replace(SMALL, epsilon=72.0)}, "shuffle.min_batch"),
        ("short", {"policy": "uniform", "deadline": None, "batch_p5": 60.0}, "deadline"),
        ("uneven", {"gini": 0.5, "policy": "uniform"}, "participation.every"),
        ("waste", {"waste": Waste(withheld=0.3), "deadline": None}, "deadline"),
        ("costly", {"epsilon": 4.0, "budget": 5.0}, "privacy.budget"),
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


# What follows if most clients have used up their budgets, as the rules alone would see it.
DRAINED = {
    "ended_early": ({"made": 30}, "so the run ended after 30 of 40 batches. Raise"),
    "withheld": (WITHHELD, "so 3 of 40 batches were withheld, from hour 10.0 to 12.0: "),
    "short": ({"batch_p5": 80.0}, "one in twenty holds at most 80 of the 100 reports"),
    "noisy": (
        {"squared_error": 0.2, "batch_median": 60.0},
        "so the squared error of a release is 2 times that of calm. Raise",
    ),
    "waste": ({"waste": Waste(withheld=0.3)}, "so 30% of the reports begun are in no release"),
    "slow": ({"seconds_per_batch": 7200.0}, "so a batch took 2.0 h, and 10 min in calm. Raise"),
}


@pytest.mark.parametrize("rule", DRAINED)
def test_spent_budgets_are_told_once_and_not_mended_otherwise(rule):
    changes, words = DRAINED[rule]
    assert rule in [found.rule for found in diagnose(replace(CALM, **changes), CALM)]
    (found,) = diagnose(replace(CALM, **changes, **SPENT), CALM)
    assert found.rule == "spent" and words in found.text
    for name in ("min_batch", "participation."):
        assert name not in found.text


def test_all_that_spent_budgets_do_is_in_one_finding():
    changes = {name: value for case, _ in DRAINED.values() for name, value in case.items()}
    run = replace(CALM, **{**changes, "made": 30}, **SPENT)
    (found,) = diagnose(run, CALM)
    for what in (
        facts.ended(run),
        facts.held(run),
        facts.few(run),
        facts.off(run, CALM),
        facts.lost(run),
        facts.long(run, CALM),
    ):
        assert what is not None and found.text.count(what) == 1


@pytest.mark.parametrize("changes", [{}, {"exhausted": 0.25, "budget": 2.0}])
def test_a_few_spent_budgets_are_not_the_cause(changes):
    run = replace(CALM, **WITHHELD, **changes)
    assert "participation.deadline" in RULES["withheld"](run, CALM)


@pytest.mark.parametrize("waste", [Waste(dropped=0.3), Waste(late=0.3)])
def test_spent_budgets_do_not_hide_what_they_did_not_cause(waste):
    found = diagnose(replace(CALM, waste=waste, **SPENT), CALM)
    assert [each.rule for each in found] == ["spent", "waste"]
    assert "no release" not in found[0].text


def test_a_run_that_ended_early_is_told_of_budgets_only_if_they_matter():
    ended = replace(CALM, made=30)
    assert "budget" not in RULES["ended_early"](ended, CALM)
    assert "budget" not in RULES["ended_early"](replace(ended, budget=2.0), CALM)
    text = RULES["ended_early"](replace(ended, budget=2.0, exhausted=0.2), CALM)
    assert "20% of the clients could not afford to" in text
    assert text.endswith("or raise privacy.budget.epsilon.")


def test_no_rule_knows_a_scenario():
    text = Path(diagnosis.__file__).read_text(encoding="utf-8")
    names = [name.removeprefix("stress/") for name in shipped() if name.startswith("stress/")]
    assert not [name for name in names if name != "steady" and name in text]
