"""Device classes and regions: who they are, what they hold, and tables that tell them apart."""

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import run
from raydp_sim.scenario import load
from raydp_sim.stress.measures import participations
from tests.conftest import placed_everywhere, scenario

DATA = {"kind": "gaussian", "dimension": 3, "mean": 0.4, "sd": 0.1, "clip": 1.0}
OTHER = {**DATA, "mean": -0.4}
CLASSES = [
    {"name": "new", "share": 0.7},
    {"name": "old", "share": 0.3, "availability": {"kind": "bernoulli", "probability": 0.1}},
]
REGIONS = {"kind": "outages", "regions": 3, "outage": 0.5}


def people(**more):
    return {"clients": 300, "data": DATA, **more}


def made(rounds=4, **more):
    return scenario(rounds=rounds, trust="local", population=people(**more))


def test_clients_of_a_group_hold_what_it_says_wherever_they_are():
    base = made(classes=CLASSES, group_data={"old": OTHER})
    ids, root = np.arange(300, dtype=np.uint32), base.stream(0)
    held, members = base.population.hold(ids, root), base.population.members(ids, root)
    for place, sign in enumerate((1.0, -1.0)):
        # Means of 3 normal values of standard deviation 0.1: none is 0.4 away.
        assert (sign * held[members == place].mean(axis=1) > 0.0).all()
    assert np.array_equal(base.population.hold(ids[70:75], root), held[70:75])


def test_groups_are_classes_or_else_regions_or_none():
    assert made(classes=CLASSES).population.groups == ("new", "old")
    assert made(availability=REGIONS).population.groups == ("region-0", "region-1", "region-2")
    night = {"kind": "diurnal", "low": 0.1, "high": 0.9, "zones": [0.0, 8.0]}
    assert made(availability=night).population.groups == ("zone-0", "zone-1")
    for alone in ({}, {"availability": {**night, "zones": [1.0]}}):
        assert made(**alone).population.groups == ()
    assert made(availability={**REGIONS, "regions": 1000}).population.groups == ()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"group_data": {"old": OTHER}}, "population.*group_data has 'old'.*there are none"),
        ({"classes": CLASSES, "group_data": {"odl": OTHER}}, "'odl'.*there are new, old"),
        (
            {"classes": CLASSES, "group_data": {"old": {**OTHER, "dimension": 2}}},
            r"population.group_data.old: its shape is \(2,\); it must be \(3,\)",
        ),
    ],
)
def test_groups_that_are_not_there_are_refused(more, says):
    with pytest.raises(InputError, match=says):
        made(**more)


def test_tables_of_groups_add_up_and_do_not_depend_on_placement(tmp_path):
    base = made(classes=CLASSES, group_data={"old": OTHER})
    result = placed_everywhere(base, tmp_path, stop=2)
    folder = tmp_path / "base"
    rows = streams.read(folder / "metrics", "groups")
    assert streams.visibility(rows.schema) == "simulation-only"
    reports = rows["reports"].to_numpy().reshape(4, 2)
    assert reports.sum(axis=1).tolist() == result.metrics["batch_size"].to_pylist()
    new, old = result.summary["breakdown"]["groups"]
    assert result.summary["breakdown"]["by"] == "class"
    assert new["clients"] + old["clients"] == 300
    turns = participations(store.charges(folder / "ledger"), 300)[0]
    members = base.population.members(np.arange(300, dtype=np.uint32), base.stream(0))
    for place, row in enumerate((new, old)):
        own = turns[members == place]
        assert row["participations"] == own.mean() and row["never"] == (own == 0).mean()
        assert row["share_of_reports"] == reports[:, place].sum() / reports.sum()
        # One report costs 2, and all are added up.
        assert row["epsilon"]["max"] == pytest.approx(2.0 * own.max())
    # The answer is where the new devices are; the old ones, 0.8 away in 3 coordinates, are not.
    assert old["squared_error"] > 10.0 * new["squared_error"]
    privacy = result.summary["privacy"]["presence"]
    assert privacy.startswith("not protected") and privacy.endswith("depend on the class")


def test_regions_are_told_apart_too(tmp_path):
    result = run(made(availability=REGIONS, group_data={"region-1": OTHER}), out=tmp_path / "run")
    found = result.summary["breakdown"]
    assert found["by"] == "region" and len(found["groups"]) == 3
    assert sum(row["share_of_reports"] for row in found["groups"]) == pytest.approx(1.0)
    assert result.summary["privacy"]["presence"].endswith("depend on the region")


def test_only_clients_hold_the_data_of_groups(tmp_path):
    from raydp_sim.actors.crew import _without_data

    document = _without_data(made(classes=CLASSES, group_data={"old": OTHER}))
    assert document["population"]["group_data"] == {} and "-0.4" not in str(document)


def test_the_shipped_scenario_is_as_mixed_devices_but_for_what_old_ones_hold():
    ours, mixed = (
        load(f"scenarios/stress/{name}.yaml").document()
        for name in ("unheard-devices", "mixed-devices")
    )
    assert ours["population"].pop("group_data")["old"]["mean"] == -0.25
    assert mixed["population"].pop("group_data") == {}
    for name in ("name", "description"):
        assert ours.pop(name) != mixed.pop(name)
    assert ours == mixed
