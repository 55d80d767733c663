"""A run without a guarantee: only where the file says so, infinite everywhere, never mixed."""

import json
import math
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from raydp_sim.errors import InputError, RunError
from raydp_sim.mechanisms import make
from raydp_sim.metrics import streams
from raydp_sim.privacy.events import LocalReport
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.run import prepare, reopen, run
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario import bound_mechanism
from raydp_sim.scenario.accounting import planned
from raydp_sim.tasks.base import Ask, Planned
from raydp_sim.tasks.mean import Mean
from tests.cli.test_bad_input import call
from tests.conftest import placed_everywhere, scenario

QUAN = {"kind": "quan", "radius": 3.0}
NONE = {"guarantee": "none"}


def bare(**sections):
    usual = {"mechanism": QUAN, "privacy": NONE, "rounds": 3}
    return scenario(**{**usual, **sections})


class Mixing(Mean):
    """Asks without privacy in its second release, or in its first; its plan may say so."""

    kind: ClassVar[str] = "mixing"
    adaptive = True
    open_about_it: bool = False

    def _mechanism(self, setting, release):
        private = make("laplace", epsilon_local=1.0, dimension=6, radius=6.0)
        return private if release == 0 else make("quan", dimension=6, radius=3.0)

    def plan(self, setting):
        if not self.open_about_it:
            return (Planned(Ask(setting.mechanism), self.rounds),)
        return tuple(Planned(Ask(self._mechanism(setting, r)), 1) for r in range(2))

    def ask(self, setting, state):
        return Ask(self._mechanism(setting, int(state["releases"])))


def test_it_takes_the_words_of_the_file(tmp_path):
    with pytest.raises(InputError, match=r"mechanism.kind is 'quan'; it adds no noise.*guarantee"):
        bare(privacy={})
    linf = {"kind": "linf", "radius": 1.0, "epsilon_local": 1.0}
    with pytest.raises(InputError, match=r"privacy.guarantee is 'none'; mechanism 'linf' has a"):
        bare(mechanism=linf)


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_epsilon_is_infinite_everywhere(trust, tmp_path):
    base = bare(trust=trust)
    result = placed_everywhere(base, tmp_path, stop=2)
    assert planned(base, bound_mechanism(base)) == math.inf
    for row in result.metrics.to_pylist():
        for name in ("epsilon", "epsilon_median", "epsilon_local"):
            assert row[name] == math.inf
        assert row["bound"] == "none"
    privacy = result.summary["privacy"]
    assert privacy["guarantee"] == "none" and privacy["bound"] == "none"
    assert privacy["epsilon"] == privacy["planned"] == privacy["epsilon_local"] == math.inf
    assert privacy["per_client"]["min"] == privacy["per_client"]["max"] == math.inf
    assert (
        privacy["assumption"].startswith("nothing") and privacy["amplification"]["used"] == "none"
    )
    for charge in store.charges(tmp_path / "base" / "ledger"):
        assert charge.event == LocalReport(math.inf) and charge.shuffled is None


def test_who_never_came_has_lost_nothing(tmp_path):
    base = bare(rounds=1, participation={"kind": "uniform", "sampled": 20})
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert privacy["epsilon"] == math.inf and privacy["per_client"]["median"] == 0.0
    assert privacy["per_client"]["never"] == 0.9


def strict(text):
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_summary_is_valid_json_and_is_read_back_as_it_was(tmp_path):
    result = run(bare(), out=tmp_path / "run")
    document = strict((tmp_path / "run" / "summary.json").read_text())
    assert document["privacy"]["epsilon"] is None and document["privacy"]["guarantee"] == "none"
    assert RunDir(tmp_path / "run").read_summary() == result.summary
    assert reopen(tmp_path / "run").result.summary["privacy"]["epsilon"] == math.inf
    private = run(scenario(), out=tmp_path / "private")
    assert private.summary["privacy"]["guarantee"] == "required"
    assert RunDir(tmp_path / "private").read_summary() == private.summary


def test_what_is_printed_says_so(tmp_path, monkeypatch, drawn):
    monkeypatch.chdir(tmp_path)
    Path("bare.yaml").write_text(yaml.safe_dump(bare().document()))
    result = call("run", "bare.yaml", "--out", "made")
    assert result.exit_code == 0, result.stderr
    assert "epsilon infinite for a client in every release" in result.stderr
    words = " ".join(result.stdout.split())
    assert "epsilon infinite for the client charged most, infinite median" in words
    assert "guarantee none: the scenario says privacy.guarantee: none" in words
    assert "inf " not in words and "nan" not in words
    again = call("resume", "made", "--json")
    assert strict(again.stdout)["privacy"]["epsilon"] is None
    assert Path("made/plot.png").is_file()
    ledger = call("ledger", "made", "--plot", "spent.png")
    assert ledger.exit_code == 0, ledger.stderr
    assert "infinite" in ledger.stdout and Path("spent.png").is_file()
    history = call("ledger", "made", "--client", "3", "--json")
    assert history.exit_code == 0, history.stderr
    entries = strict(history.stdout)["history"]
    assert len(entries) == 3 and entries[-1]["epsilon"] is None


def test_a_budget_without_a_guarantee_is_refused():
    with pytest.raises(InputError, match=r"privacy.budget.epsilon is 5.0; one release may cost"):
        bare(privacy={**NONE, "budget": {"epsilon": 5.0, "delta": 1e-7}})


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_a_plan_with_and_without_a_guarantee_is_refused(trust):
    task = {"kind": "tests.test_no_guarantee:Mixing", "rounds": 2, "open_about_it": True}
    private = {"kind": "laplace", "radius": 6.0, "epsilon_local": 1.0}
    with pytest.raises(InputError, match=r"mechanism.kind is 'quan'; it adds no noise"):
        scenario(task=task, mechanism=private, trust=trust)
    with pytest.raises(InputError, match="mechanism 'laplace' has a guarantee, and the two"):
        bare(task=task, trust=trust)


def test_a_run_that_turns_to_no_guarantee_is_stopped_before_it_is_released(tmp_path):
    task = {"kind": "tests.test_no_guarantee:Mixing", "rounds": 2}
    private = {"kind": "laplace", "radius": 6.0, "epsilon_local": 1.0}
    base = scenario(task=task, mechanism=private)
    with pytest.raises(RunError, match="with and without a guarantee are never in one run"):
        for _ in prepare(base, out=tmp_path / "run").play():
            pass
    assert store.read(tmp_path / "run" / "ledger")["release"].to_pylist() == [0]
    rows = streams.read(tmp_path / "run" / "metrics", "releases")["epsilon"].to_pylist()
    assert all(math.isfinite(epsilon) for epsilon in rows)


def test_a_ledger_never_adds_the_two_up():
    for first, second in ((1.0, math.inf), (math.inf, 1.0)):
        ledger = Ledger(2)
        ledger.charge(LocalReport(first), range(2))
        with pytest.raises(ValueError, match="with and without a guarantee are never added up"):
            ledger.charge(LocalReport(second), range(2))
        assert ledger.guarantee().epsilon == first
