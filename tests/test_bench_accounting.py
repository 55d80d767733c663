"""The accounting benchmark works, on small sizes; how fast it is, is for the benchmark to say."""

import json

from click.testing import CliRunner

from raydp_sim.bench import accounting
from raydp_sim.bench.accounting import TABLES, Row
from raydp_sim.cli.bench import command
from raydp_sim.privacy.bound import find_run, run_bounds
from raydp_sim.privacy.curves.clones import clone_pair
from raydp_sim.privacy.events import Shuffle

SMALL = {"small": (Shuffle(1.0, 50), 3)}


def test_every_row_of_a_table_is_measured_with_its_goal():
    found = list(accounting.rows(SMALL, counts=(4,), most=1000, figures=False, late=3))
    table = [row.name for row in found if row.group == "small"]
    assert {"pld-clones", "rdp-upper1", "fmt_numeric+kov", "balle+kov"} <= set(table)
    assert "rdp-subsampled" not in table
    composed = [row for row in found if row.group.startswith("composition")]
    assert len(composed) == 2 * len(accounting.COMPOSED)
    assert all(row.seconds >= 0.0 and row.goal is not None for row in found)
    made = json.loads(json.dumps(accounting.document(found, {"cpu": "any"})))
    assert len(made["rows"]) == len(found) and made["benchmark"] == "accounting"


def test_a_goal_is_met_or_not_or_absent():
    assert Row("a", "b", 0.4).met is True
    assert Row("a", "b", 1.5).met is False
    assert Row("a", "b", 1.5, None).met is None
    assert accounting.document([Row("a", "b", 1.5)], {})["met"] is False


def test_forgetting_empties_caches_but_keeps_the_bounds():
    bounds = run_bounds()
    find_run("pld-clones").epsilon([(Shuffle(1.0, 50), 3)], 1e-6)
    assert clone_pair.cache_info().currsize > 0
    accounting.forget()
    assert clone_pair.cache_info().currsize == 0
    assert run_bounds() is bounds


def test_the_command_prints_a_table_and_a_document(monkeypatch):
    rows = [Row("one", "fast", 0.2), Row("one", "slow", 2.0)]
    monkeypatch.setattr(accounting, "rows", lambda progress: iter(rows))
    result = CliRunner().invoke(command, ["accounting"])
    assert result.exit_code == 0, result.stderr
    assert "1 of 2 goals met" in result.stdout and "< 0.5 NO" in result.stdout
    made = json.loads(CliRunner().invoke(command, ["accounting", "--json"]).stdout)
    assert [row["met"] for row in made["rows"]] == [True, False]


def test_the_largest_cases_are_in_the_table():
    """Ten million clients, all or sampled, and a million rounds."""
    sizes = {(getattr(e, "n", None), getattr(e, "clients", None), t) for e, t in TABLES.values()}
    for times in (1, 10**6):
        assert (10**7, None, times) in sizes and (None, 10**7, times) in sizes
    assert accounting.GOAL == 0.5
