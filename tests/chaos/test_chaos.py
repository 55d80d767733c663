"""Fault campaigns: what is drawn, what is proved, and a few kills for real."""

import json
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from raydp_sim.chaos.campaign import Campaign, applicable
from raydp_sim.chaos.plan import KINDS, Kill, planned
from raydp_sim.chaos.record import Record, tallies
from raydp_sim.errors import RunError
from tests.actors.test_faults import exit_code
from tests.conftest import scenario, with_placement


def written(folder, base):
    path = folder / "chaos.yaml"
    path.write_text(yaml.safe_dump(base.document()))
    return str(path)


def test_kills_are_drawn_from_the_seed_and_every_kind_comes_alike_often():
    plan = planned(KINDS, 1000, seed=3, apart=4)
    assert plan == planned(KINDS, 1000, seed=3, apart=4) != planned(KINDS, 1000, seed=4, apart=4)
    counts = {kind: sum(kill.kind == kind for kill in plan) for kind in KINDS}
    assert max(counts.values()) - min(counts.values()) <= 1
    assert {kill.after for kill in plan} == set(range(1, 8))
    assert all(0 <= kill.pick < 1 and 0 <= kill.delay < 0.2 for kill in plan)


@pytest.mark.parametrize(
    "trust,backend,nodes,absent",
    [
        ("shuffle", "ray", True, set()),
        ("shuffle", "ray", False, {"node"}),
        ("local", "ray", True, {"shuffler"}),
        ("shuffle", "inline", True, set(KINDS) - {"driver"}),
    ],
)
def test_only_those_are_killed_who_are_there(trust, backend, nodes, absent):
    base = with_placement(scenario(40, trust=trust), backend=backend)
    assert set(applicable(base, nodes)) == set(KINDS) - absent


@pytest.mark.parametrize(
    "words,says",
    [
        (("--kill", "ledger"), "--kill is 'ledger'"),
        (("--kills", "0"), "--kills is 0"),
        (("--nodes", "0"), "--nodes is 0"),
        (("--apart", "0"), "--apart is 0"),
    ],
)
def test_bad_input_is_named(words, says, tmp_path, capsys):
    path = written(tmp_path, scenario(40))
    assert exit_code("chaos", path, "--out", str(tmp_path / "out"), *words) == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_drivers_that_are_killed_end_with_the_same_run(tmp_path, capsys):
    path = written(tmp_path, scenario(60, rounds=12))
    table = str(tmp_path / "kills.csv")
    words = ("--kills", "2", "--seed", "2", "--apart", "3", "--json", "--csv", table)
    assert exit_code("chaos", path, "--out", str(tmp_path / "out"), *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["identical"] and found["legs"] > found["runs"]
    assert found["kinds"]["driver"]["kills"] == 2
    assert found["kinds"]["driver"]["resumed"] >= 1
    assert json.loads((tmp_path / "out" / "chaos.json").read_text()) == found
    # What was written is shown again.
    assert exit_code("chaos", table) == 0
    shown = capsys.readouterr().out
    assert "driver" in shown and f"2 kills in {found['runs']} run" in shown


def test_an_interrupted_campaign_is_continued(tmp_path, capsys, monkeypatch):
    path = written(tmp_path, scenario(60, rounds=12))
    line = ("chaos", path, "--kills", "2", "--apart", "3", "--json", "--out", str(tmp_path / "out"))
    save = Record.save

    def interrupt(self, folder):
        save(self, folder)
        if len(self.fates) == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Record, "save", interrupt)
        assert exit_code(*line) == 130
    assert "interrupted after 1 of 2 kills; continue with" in capsys.readouterr().err
    assert exit_code(*line, "--seed", "1") == 2
    assert "another seed" in capsys.readouterr().err
    assert exit_code(*line) == 0
    said = capsys.readouterr()
    assert "continuing after 1 of 2 kills" in said.err
    assert json.loads(said.out)["kinds"]["driver"]["kills"] == 2


@pytest.fixture
def played(tmp_path):
    """A campaign without a kill, up to its proof."""
    campaign = Campaign(scenario(40, rounds=3), tmp_path / "out", Record({}))
    whole = campaign._undisturbed()
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "out" / "undisturbed", copy)
    campaign._prove(whole, copy)
    return campaign, whole, copy


def rewrite(path, change):
    pq.write_table(change(pq.read_table(path)), path)


def doubled(rows):
    return pa.concat_tables([rows, rows.slice(0, 1)])


@pytest.mark.parametrize("change", [doubled, lambda rows: rows.slice(1)], ids=["twice", "lost"])
def test_a_release_that_is_lost_or_recorded_twice_is_noticed(change, played):
    campaign, whole, copy = played
    rewrite(next(copy.glob("metrics/releases/*.parquet")), change)
    with pytest.raises(RunError, match="stream 'releases' differs"):
        campaign._prove(whole, copy)


def test_a_charge_that_is_lost_is_noticed(played):
    campaign, whole, copy = played
    rewrite(copy / "ledger" / "ledger.parquet", lambda rows: rows.slice(1))
    with pytest.raises(RunError, match="the ledger differs"):
        campaign._prove(whole, copy)


def test_what_a_kill_led_to_is_counted_for_its_kind(tmp_path):
    campaign = Campaign(scenario(40), tmp_path, Record({}))
    kills = (("client", False, 10.0), ("ledger", True, 20.0), ("client", True, 30.0))
    for kind, resumed, at in kills:
        campaign._struck(Kill(kind, 1, 0.5, 0.0), at)
        campaign.wound.row(at + 3.0)
        campaign.wound.resumed = resumed
    campaign._healed()
    counts = {
        kind: (tally.kills, tally.went_on, tally.resumed, tally.seconds, tally.longest_s)
        for kind, tally in tallies(campaign.record.fates).items()
    }
    # Between two kills the longest pause was the one from the row to the second.
    assert counts == {"client": (2, 1, 1, 10.0, 7.0), "ledger": (1, 0, 1, 7.0, 7.0)}
    assert Record.taken_up(tmp_path, {}).fates == campaign.record.fates


def campaign_on_ray(tmp_path, kills, rounds, *words):
    """In a process of its own, as this one may have a Ray already."""
    base = scenario(200, rounds=rounds, shuffle={"shufflers": 2})
    path = written(tmp_path, with_placement(base, 2, backend="ray", clients_per_actor=100))
    options = ("--kills", str(kills), "--json", "--out", str(tmp_path / "out"), *words)
    command = [sys.executable, "-m", "raydp_sim", "chaos", path, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["identical"] and sum(kind["kills"] for kind in found["kinds"].values()) == kills
    return found["kinds"]


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_five_kills_of_several_kinds(tmp_path):
    """Two nodes; only the driver's death is anything to the user."""
    kinds = ("client", "shuffler", "ledger", "node", "driver")
    words = [word for kind in kinds for word in ("--kill", kind)]
    found = campaign_on_ray(tmp_path, 5, 60, "--nodes", "2", "--seed", "4", "--apart", "4", *words)
    assert set(found) == set(kinds)
    assert found["driver"]["resumed"] == 1


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.timeout(7200)
def test_two_hundred_kills(tmp_path):
    """Many short releases, and many kills in one run."""
    found = campaign_on_ray(tmp_path, 200, 600, "--nodes", "3", "--seed", "5", "--apart", "3")
    assert set(found) == set(KINDS)
