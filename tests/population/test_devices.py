"""Device classes, and the population as the one place to ask."""

import numpy as np
import pytest
from scipy.stats import binom

from raydp_sim.cli.schema import scenario_schema
from raydp_sim.errors import InputError
from raydp_sim.population.devices import DeviceClass, Devices
from raydp_sim.random import Stream
from raydp_sim.scenario import parse

ROOT, ASK = Stream(9), Stream(9).at("ask", 0)
IDS = np.arange(40_000, dtype=np.uint32)
PHONE = {"name": "phone", "share": 3, "latency": {"kind": "constant", "seconds": 6.0}}
TABLET = {
    "name": "tablet",
    "share": 1,
    "speed": 2.0,
    "latency": {"kind": "lognormal", "median": 4.0, "sigma": 0.5},
    "availability": {"kind": "bernoulli", "probability": 0.25},
}
DATA = {"kind": "bernoulli", "probability": 0.5}


def scenario(clients=40_000, **population):
    return parse(
        {
            "name": "small",
            "population": {"clients": clients, "data": DATA, **population},
            "participation": {"kind": "all", "deadline": 1000.0},
            "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
        }
    )


def devices():
    return Devices((DeviceClass.model_validate(PHONE), DeviceClass.model_validate(TABLET)))


def test_classes_have_their_shares():
    """Binomial, false alarm 1e-7."""
    members = devices().members(IDS, ROOT)
    low, high = binom.ppf((5e-8, 1 - 5e-8), len(IDS), 0.75)
    assert low <= (members == 0).sum() <= high and set(members) == {0, 1}
    assert np.array_equal(devices().members(IDS[70:80], ROOT), members[70:80])


def test_the_last_class_takes_what_rounding_leaves():
    thirds = tuple(DeviceClass(name=name, share=0.1) for name in "abcdefghij")
    assert set(Devices(thirds).members(IDS, ROOT)) == set(range(10))


def test_each_class_has_its_own_availability_latency_and_speed():
    """Binomials and medians, false alarm below 1e-6 in all."""
    mixed = devices()
    tablet = mixed.members(IDS, ROOT) == 1
    there = mixed.available(IDS, 3.0, ROOT)
    assert there[~tablet].all()
    low, high = binom.ppf((5e-8, 1 - 5e-8), tablet.sum(), 0.25)
    assert low <= there[tablet].sum() <= high
    took = mixed.durations(IDS, ASK, ROOT)
    assert set(took[~tablet]) == {6.0}
    low, high = binom.ppf((5e-8, 1 - 5e-8), tablet.sum(), 0.5)
    assert low <= (took[tablet] < 2.0).sum() <= high
    assert mixed.least_latency() == 0.0
    assert mixed.rate() == pytest.approx(0.75 + 0.25 * 0.25)


def test_classes_are_random_access():
    mixed, times = devices(), np.linspace(0.0, 50.0, len(IDS))
    whole, took = mixed.available(IDS, times, ROOT), mixed.durations(IDS, ASK, ROOT)
    rows = np.array([17, 3, 3, 39_999, 20_000])
    assert np.array_equal(mixed.available(IDS[rows], times[rows], ROOT), whole[rows])
    assert np.array_equal(mixed.durations(IDS[rows], ASK, ROOT), took[rows])
    alone = [mixed.available(IDS[row : row + 1], float(times[row]), ROOT)[0] for row in rows]
    assert np.array_equal(alone, whole[rows])


def test_a_population_of_one_kind_asks_its_own_models():
    coins = {"kind": "bernoulli", "probability": 0.4}
    work = {"kind": "pareto", "minimum": 2.0, "shape": 3.0}
    plain = scenario(availability=coins, latency=work, dropout=0.1).population
    there = plain.availability.available(IDS, 4.0, ROOT.at("availability"))
    assert np.array_equal(plain.available(IDS, 4.0, ROOT), there)
    took = plain.durations(IDS, ASK, ROOT)
    assert np.array_equal(took, plain.latency.durations(ASK.clients(IDS)))
    assert (plain.least_latency(), plain.rate(), plain.everyone, plain.instant) == (
        2.0,
        0.4,
        False,
        False,
    )


def test_a_population_of_classes_asks_them():
    mixed = scenario(classes=[PHONE, TABLET]).population
    assert np.array_equal(mixed.available(IDS, 4.0, ROOT), devices().available(IDS, 4.0, ROOT))
    took = devices().durations(IDS, ASK, ROOT)
    assert np.array_equal(mixed.durations(IDS, ASK, ROOT), took)
    assert (mixed.least_latency(), mixed.rate()) == (0.0, 0.8125)
    assert not mixed.everyone and not mixed.instant


def test_the_default_is_everyone_at_once():
    usual = scenario().population
    assert usual.everyone and usual.instant and usual.least_latency() == 0.0 and usual.rate() == 1.0
    assert not usual.needs_influence
    quick = [{"name": "a", "share": 1}, {"name": "b", "share": 1, "speed": 3}]
    assert scenario(classes=quick).population.instant
    assert scenario(classes=quick).population.everyone


@pytest.mark.parametrize("field", ["dropout", "duplicates"])
def test_lost_or_repeated_reports_are_not_instant(field):
    assert not scenario(**{field: 0.1}).population.instant
    with pytest.raises(InputError, match=rf"population.{field} is 1.0; .*less than 1"):
        scenario(**{field: 1.0})


def test_what_is_resolved_loads_again():
    made = scenario(classes=[PHONE, TABLET], dropout=0.25)
    assert parse(made.document()).document() == made.document()
    assert parse(scenario().document()).document() == scenario().document()


@pytest.mark.parametrize(
    ("population", "message"),
    [
        (
            {"classes": [PHONE], "availability": {"kind": "bernoulli", "probability": 0.5}},
            "population.availability is given for all clients, and so are classes; leave it out",
        ),
        (
            {"classes": [PHONE], "latency": {"kind": "constant", "seconds": 1.0}},
            "population.latency is given for all clients, and so are classes; leave it out",
        ),
        ({"classes": [PHONE, PHONE]}, "'phone' twice"),
        (
            {"classes": [{**PHONE, "availability": {"kind": "adversarial", "share": 0.5}}]},
            "in 'phone' that looks at all clients",
        ),
        ({"classes": [{**PHONE, "share": 0}]}, "population.classes.0.share is 0; "),
        ({"classes": [{**PHONE, "sped": 1}]}, "did you mean 'speed'?"),
        (
            {"classes": [TABLET, {**PHONE, "availability": {"kind": "sometimes"}}]},
            "population.classes.1.availability.kind is 'sometimes'; ",
        ),
        (
            {"clients": 9, "availability": {"kind": "adversarial", "share": 0.01}},
            "population.availability.share is 0.01; of 9 clients that is nobody; raise it",
        ),
        (
            {"classes": [{**PHONE, "availability": {"kind": "trace", "path": "nowhere.csv"}}]},
            "population.classes.0.availability.path is 'nowhere.csv'; it cannot be read",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(population, message):
    with pytest.raises(InputError) as caught:
        scenario(**population)
    assert message in str(caught.value)


def test_the_schema_explains_latencies_and_classes():
    definitions = scenario_schema()["$defs"]
    for choice in definitions["Latency"]["oneOf"]:
        for name, field in choice["properties"].items():
            assert field.get("description"), name
    for name, field in definitions["DeviceClass"]["properties"].items():
        assert field.get("description") or "$ref" in field, name
    assert definitions["DeviceClass"]["properties"]["latency"]["default"]["kind"] == "constant"
