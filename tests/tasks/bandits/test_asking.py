"""Contextual bandits on the pipeline that do not know the law of contexts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import run
from raydp_sim.scenario import Scenario, parse
from raydp_sim.tasks.bandits.amplification import batch_epsilon
from tests.conftest import placed_everywhere
from tests.tasks.bandits.test_contextual import THREE

LAW = [0.5, 0.3, 0.2]
FEATURES = (THREE.features / 1.001).tolist()
SHUFFLED = {"kind": "laplace", "target": {"epsilon": 2.0, "delta": 1e-6}}
LOCAL = {"kind": "laplace", "epsilon_local": 2.0}


def bandit(kind: str, clients: int = 20_000, **sections: Any) -> Scenario:
    trust = sections.pop("trust", "shuffle")
    population = sections.pop("population", {})
    mechanism = sections.pop("mechanism", SHUFFLED if trust == "shuffle" else LOCAL)
    document = {
        "name": "asking",
        "seed": 5,
        "trust": trust,
        "population": {
            "clients": clients,
            "data": {
                "kind": "contextual-rewards",
                "theta": [0.408, 0.802],
                "probabilities": LAW,
            },
            **population,
        },
        "task": {"kind": kind, "features": FEATURES, **sections.pop("task", {})},
        "mechanism": {"radius": 1.0, **mechanism},
        "placement": {"backend": "inline"},
        **sections,
    }
    return parse(document)


def read(folder: Path, stream: str) -> list[dict[str, Any]]:
    return streams.read(folder / "metrics", stream).to_pylist()


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_clients_are_asked_within_the_budget_and_serve_in_no_batch(
    trust: str, tmp_path: Path
) -> None:
    base = bandit("asking-bandit", trust=trust, task={"asked": 3000})
    found = run(base, out=tmp_path / "run").summary
    first, *batches = store.charges(tmp_path / "run" / "ledger")
    asked = set(np.asarray(first.participants).tolist())
    assert len(asked) == 3000
    served = [set(np.asarray(each.participants).tolist()) for each in batches]
    assert not asked & set().union(*served)
    assert sum(map(len, served)) == len(set().union(*served)), "nobody serves twice"
    assert found["privacy"]["epsilon"] == pytest.approx(2.0, rel=1e-6)
    if trust == "local":
        assert first.event.epsilon <= 2.0 and first.shuffled is None
    else:
        # For the smallest batch that is released, which is four fifths of it.
        assert first.event.epsilon > 3.5
        assert batch_epsilon(first.event.epsilon, 2400, 1e-6) <= 2.0 * (1 + 1e-9)
        assert found["privacy"]["epsilon_local"] >= first.event.epsilon


def test_the_estimated_law_and_its_term_in_the_certificate(tmp_path: Path) -> None:
    base = bandit("asking-bandit", clients=100_000, task={"asked": 20_000})
    run(base, out=tmp_path / "run")
    rows = read(tmp_path / "run", "contexts")
    shares, off = np.array([row["share"] for row in rows]), rows[0]["off"]
    assert np.abs(shares - LAW).sum() < off < 0.06
    last = read(tmp_path / "run", "bandit")[-1]
    assert last["confidence"] == pytest.approx(1.0 - 2e-5)
    errors = read(tmp_path / "run", "errors")[-1]
    assert errors["linear_regret"] <= last["certificate"] < 2.0 * 100_000
    # All that the asked may lose is in it; what they lost, in the regret.
    assert last["certificate_so_far"] >= 2.0 * 20_000
    means = THREE.features / 1.001 @ np.array([0.408, 0.802])
    each = float(np.array(LAW) @ (means.max(axis=1) - means[:, 0]))
    assert errors["asked_regret"] == pytest.approx(20_000 * each, rel=0.02)
    first = read(tmp_path / "run", "errors")[0]
    assert first["regret_so_far"] == pytest.approx(first["asked_regret"], rel=0.02)
    assert last["rounds"] <= 100_000


def test_a_public_sample_costs_certainty_and_no_rounds(tmp_path: Path) -> None:
    known = bandit("contextual-bandit", task={"probabilities": LAW})
    sampled = bandit("contextual-bandit", task={"sample": [50_000, 30_000, 20_000]})
    last = {}
    for name, base in (("known", known), ("sampled", sampled)):
        run(base, out=tmp_path / name)
        last[name] = read(tmp_path / name, "bandit")[-1]
    assert last["sampled"]["certificate"] > last["known"]["certificate"]
    assert last["sampled"]["confidence"] == pytest.approx(1.0 - 2.0 / 20_000)
    assert last["known"]["confidence"] == pytest.approx(1.0 - 1.0 / 20_000)
    assert last["sampled"]["rounds"] <= last["known"]["rounds"] + 100
    # What is earned is known within less where the law of contexts is.
    assert last["known"]["within"] == last["known"]["radius"]
    assert last["sampled"]["within"] > last["sampled"]["radius"]


def test_regret_is_by_the_clients_own_law_where_the_known_one_is_wrong(tmp_path: Path) -> None:
    found = {}
    for name, law in (("right", LAW), ("wrong", [0.05, 0.05, 0.9])):
        base = bandit("contextual-bandit", task={"probabilities": law})
        run(base, out=tmp_path / name)
        found[name] = read(tmp_path / name, "errors")[-1]
    for row in found.values():
        # Both regrets are of the same clients, so that they are near each other.
        assert abs(row["regret"] - row["linear_regret"]) < 1.5 * 20_000**0.5


def test_neither_placement_nor_a_crash_changes_anything(tmp_path: Path) -> None:
    base = bandit("asking-bandit", clients=600, task={"asked": 100})
    result = placed_everywhere(base, tmp_path, stop=2)
    assert result.metrics["batch_size"].to_pylist()[0] == 100


def test_contexts_are_asked_again_where_too_few_answer(tmp_path: Path) -> None:
    base = bandit(
        "asking-bandit",
        clients=3000,
        task={"asked": 300, "least": 0.75},
        population={"dropout": 0.25},
        participation={"kind": "all", "deadline": 10.0},
        seed=1,
    )
    result = run(base, out=tmp_path / "run")
    withheld = read(tmp_path / "run", "withheld")
    assert [row["release"] for row in withheld][:3] == [0, 1, 2], "with this seed"
    assert result.summary["metrics"]["withheld"] == len(withheld)
    first = next(store.charges(tmp_path / "run" / "ledger"))
    assert first.release == 3 and len(first.participants) >= 225
    # Whoever was handed a slot in vain is spent, and counts among the rounds and their regret.
    batches, errors = read(tmp_path / "run", "bandit"), read(tmp_path / "run", "errors")
    assert batches[0]["rounds"] == 4 * 300 + batches[0]["slots"]
    means = THREE.features / 1.001 @ np.array([0.408, 0.802])
    each = float(np.array(LAW) @ (means.max(axis=1) - means[:, 0]))
    assert [row["release"] for row in errors][:5] == [0, 1, 2, 3, 4]
    assert [row["asked_regret"] for row in errors[:4]] == pytest.approx(
        [times * 300 * each for times in (1, 2, 3, 4)], rel=0.05
    )
    assert errors[-1]["asked_regret"] == pytest.approx(4 * 300 * each, rel=0.05)
    assert batches[-1]["rounds"] <= 3000


BAD = [
    ("asking-bandit", {"asked": 19_999}, {}, r"task\.asked is 19999; no batch fits"),
    (
        "asking-bandit",
        {"asked": 100},
        {"trust": "central", "mechanism": {"kind": "central-laplace", "epsilon": 1.0}},
        r"task\.asked is 100; clients who trust the aggregator",
    ),
    ("asking-bandit", {"asked": 0}, {}, r"task\.asked is 0"),
    ("asking-bandit", {"asked": 10, "rounds": 1}, {}, "two contexts or more"),
    ("asking-bandit", {"asked": 10, "probabilities": LAW}, {}, r"task\.probabilities"),
    ("contextual-bandit", {}, {}, r"give either task\.probabilities or task\.sample"),
    (
        "contextual-bandit",
        {"sample": [1, 2, 3], "probabilities": LAW},
        {},
        r"give either task\.probabilities or task\.sample",
    ),
    ("contextual-bandit", {"sample": [1, 2]}, {}, "a count for each of 3 contexts"),
    ("contextual-bandit", {"sample": [0, 0, 0]}, {}, "it is empty"),
    (
        "asking-bandit",
        {"asked": 10, "features": (2.0 * THREE.features).tolist()},
        {},
        "up to 2.0.* long; .* scale them to at most 1",
    ),
]


@pytest.mark.parametrize(("kind", "task", "sections", "words"), BAD)
def test_bad_input_is_refused_by_field(
    kind: str, task: dict[str, Any], sections: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        bandit(kind, task=task, **sections)
