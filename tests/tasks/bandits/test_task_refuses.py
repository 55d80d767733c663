"""Bad input of a bandit is refused before anything is played: one line that names the field."""

import copy

import pytest
import yaml

from raydp_sim.errors import InputError
from raydp_sim.scenario import parse
from tests.cli.test_bad_input import call, refused
from tests.tasks.bandits.playing import FEATURES, MECHANISMS, SHARES, THETA, document

NAN, INF = float("nan"), float("inf")
LAPLACE = MECHANISMS["local"]
CASES = {
    "no rounds": ({"task.horizon": 2}, "task.horizon is 2"),
    "more rounds than clients": ({"task.horizon": 601}, "task.horizon is 601; each round is"),
    "no room for a batch": ({"task.horizon": 3}, "task.horizon is 3; not even the first batch"),
    "no actions": ({"task.actions": []}, "task.actions is []"),
    "one action": ({"task.actions": [[1.0, 0.0]]}, "task.actions is [[1.0, 0.0]]"),
    "a long action": (
        {"task.actions": [[1.0, 0.0], [1.0, 0.1]]},
        "actions[1] has length 1.00499; scale it to at most 1",
    ),
    "not a number": ({"task.actions": [[1.0, 0.0], [NAN, 0.1]]}, "task.actions.1.0 is nan"),
    "infinite": ({"task.actions": [[1.0, 0.0], [INF, 0.1]]}, "task.actions.1.0 is inf"),
    "all zero": ({"task.actions": [[0.0, 0.0], [0.0, 0.0]]}, "all zero; give at least one"),
    "ragged": ({"task.actions": [[1.0, 0.0], [1.0]]}, "they have 1 to 2 numbers; give all as"),
    "names for others": ({"task.names": ["a"]}, "task.names is ['a']; give one for each of 5"),
    "theta too long": ({"population.data.theta": [1.0, 0.2]}, "it has length 1.0198; scale it"),
    "theta not finite": ({"population.data.theta": [NAN, 0.2]}, "population.data.theta.0 is nan"),
    "theta of another length": (
        {"population.data.theta": [0.5, 0.2, 0.1]},
        "population.data: clients hold rows of shape (4,); 3 numbers are needed",
    ),
    "rewards that cannot be": (
        {"task.rewards": {"low": 0.0, "high": 1.0}, "mechanism.radius": 0.5},
        "theta of client 0 gives action 2 a mean reward of -0.3; it must lie in [0, 1]",
    ),
    "an empty range": ({"task.rewards": {"low": 0.5, "high": 0.5}}, "task.rewards.high is 0.5"),
    "a range beyond 1": ({"task.rewards": {"high": 2.0}}, "task.rewards.high is 2"),
    "noise for another range": ({"mechanism.radius": 2.0}, "mechanism.radius is 2.0; rewards are"),
    "epsilon 0": ({"mechanism.target.epsilon": 0.0}, "mechanism.target.epsilon is 0"),
    "epsilon not a number": ({"mechanism.target.epsilon": NAN}, "mechanism.target.epsilon is nan"),
    "delta 1": ({"mechanism.target.delta": 1.0}, "mechanism.target.delta is 1"),
    "two deltas": (
        {"privacy": {"delta": 1e-5}},
        "mechanism.target.delta is 1e-06; batches are made for privacy.delta, which is 1e-05",
    ),
    "pure": ({"mechanism.target.delta": 0.0}, "mechanism.target.delta is 0.0; batches are made"),
    "no share": ({"task.least": 0.0}, "task.least is 0"),
    "too large a share": ({"task.least": 1.5}, "task.least is 1.5"),
    "other noise": (
        {"mechanism": {"kind": "2rr", "epsilon_local": 1.0}},
        "mechanism.kind is '2rr'; bandits take laplace",
    ),
    "noise in the wrong place": ({"trust": "central"}, "trust is 'central'"),
    "clients that decide alone": (
        {"participation": {"kind": "self", "probability": 0.5}},
        "participation.kind is 'self'; this task asks for batches of its own size",
    ),
    "too small a budget": (
        {"privacy": {"delta": 1e-6, "budget": {"epsilon": 1.0, "delta": 1e-6}}},
        "privacy.budget.epsilon is 1.0; one release may cost more than that",
    ),
    "a budget just below epsilon": (
        {"privacy": {"delta": 1e-6, "budget": {"epsilon": 2.9999998, "delta": 1e-6}}},
        "privacy.budget.epsilon is 2.9999998; one release may cost more than that",
    ),
    "a budget at a smaller delta": (
        {"privacy": {"delta": 1e-6, "budget": {"epsilon": 3.0, "delta": 1e-9}}},
        "privacy.budget.delta is 1e-09; batches are made for privacy.delta",
    ),
    "drop-outs without an end": ({"population.dropout": 0.1}, "participation.deadline is None"),
}


def changed(base, changes):
    found = copy.deepcopy(base)
    for path, value in changes.items():
        *sections, last = path.split(".")
        place = found
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return found


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_in_one_line(name, tmp_path, monkeypatch):
    changes, words = CASES[name]
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "bad.yaml"
    file.write_text(yaml.safe_dump(changed(document(), changes)))
    refused(call("run", str(file)), words)
    assert {path.name for path in tmp_path.iterdir()} == {"bad.yaml"}


def contextual_document():
    found = document()
    data = {"kind": "contextual-rewards", "theta": THETA, "probabilities": SHARES}
    task = {"kind": "contextual-bandit", "features": FEATURES, "probabilities": SHARES}
    return {**found, "population": {"clients": 600, "data": data}, "task": task}


@pytest.mark.parametrize(
    "changes,words",
    [
        ({"task.probabilities": [0.5, 0.3]}, "task.probabilities is"),
        ({"task.probabilities": [0.5, 0.3, 0.3]}, "they must add up to 1"),
        ({"population.data.probabilities": [0.5, 0.3]}, "they add up to 0.8; it must be 1"),
        ({"task.features": [[[1.0, 0.0]], [[1.0]]]}, "give every context as many actions"),
        ({"task.candidates": [[1.0, 0.0]]}, "in the plane the table has every policy"),
        (
            {"population.data.probabilities": [0.2, 0.2, 0.2, 0.4]},
            "is in context 3; task.features has 3 contexts, from 0",
        ),
        ({"population.data.theta": [0.5]}, "clients hold rows of shape (3,); 4 numbers"),
        (
            {"task.rewards": {"low": 0.0, "high": 1.0}, "mechanism.radius": 0.5},
            "theta of client 0 gives a mean reward of",
        ),
    ],
)
def test_bad_contexts_are_refused(changes, words):
    with pytest.raises(InputError) as refused:
        parse(changed(contextual_document(), changes))
    assert words in str(refused.value)


def test_the_good_ones_are_good():
    assert parse(document()).task.kind == "bandit"
    assert parse(contextual_document()).task.kind == "contextual-bandit"
    assert parse({**document("local"), "mechanism": LAPLACE}).task.once
