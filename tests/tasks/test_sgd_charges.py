"""CLDP-SGD and DSS-SGD: what rounds cost, in privacy and in bits."""

import itertools
import math

import pytest

from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.wires.symbols import histogram_bits
from raydp_sim.metrics import streams
from raydp_sim.privacy import events as ev
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import find_run
from raydp_sim.run.play import run
from raydp_sim.scenario import bound_mechanism
from raydp_sim.tasks.base import Ask, Formed, Setting
from raydp_sim.tasks.learning.sgd import CldpSgd
from tests.tasks.sgd_scenarios import BASE, CENTRAL, changed, charges, dealt


def formed(sampling, reports=40, **more):
    known = {"clients": 120, "honest": reports, "sampling": sampling, "values": reports, **more}
    return Formed(reports, changed().trust_model, **known)


def event_of(points, sampled, batch):
    rinf = make("rinf", epsilon_local=1.5, dimension=170, radius=1.0, on_out_of_range="clip")
    setting = Setting(rinf, 120, (points, 4, 4), 1e-5, 10)
    return CldpSgd(sampled_points=sampled).event(setting, Ask(rinf), batch), rinf.losses()[0]


def test_one_sample_per_client_is_a_sampled_shuffle_of_items_with_the_mechanisms_own_law():
    event, loss = event_of(1, 1, formed("uniform"))
    assert event == ev.SubsampledShuffle(loss, 120, 40, "rbin", unit="item")
    event, loss = event_of(1, 1, formed("coins", probability=0.25))
    assert event == ev.SelfSampledShuffle(loss, 120, 0.25, "rbin", unit="item")


def test_several_samples_per_client_are_a_round_of_cldp():
    event, loss = event_of(5, 1, formed("uniform"))
    assert event == ev.CldpRound(loss, 120, 5, 40, 1, "rbin")
    event, loss = event_of(5, 2, formed("uniform", fewest=2, most=2))
    assert event == ev.CldpRound(loss, 120, 5, 40, 2, "rbin")
    # Of coins only those are counted, not which sample is drawn.
    event, loss = event_of(5, 1, formed("coins", probability=0.25))
    assert event == ev.SelfSampledShuffle(loss, 120, 0.25, "rbin", unit="item")
    event, loss = event_of(5, 2, formed("coins", probability=0.25, fewest=2, most=2))
    assert event == ev.Shuffle(loss, 80, "rbin", unit="item")


def test_a_run_states_the_unit_and_both_epsilons(tmp_path):
    result = run(changed(), out=tmp_path / "run")
    privacy = result.summary["privacy"]
    assert "replace one item" in privacy["assumption"]
    rows = streams.read(tmp_path / "run" / "metrics", "releases").to_pylist()
    tested = [row for row in rows if row["epsilon"] is not None]
    assert [row["release"] for row in tested] == [1, 3] and len(rows) == 4
    own, best = ([row[name] for row in tested] for name in ("epsilon_seed", "epsilon"))
    assert own == sorted(own) and all(a >= b for a, b in zip(own, best, strict=True))
    assert privacy["epsilon_seed"] == own[-1]
    paid = list(charges(tmp_path / "run"))
    (event,) = set(paid)
    assert len(paid) == 4
    assert own[-1] == find_run("rdp-subsampled").epsilon([(event, 4)], 1e-5).epsilon


def test_epsilon_is_what_it_is_however_seldom_it_is_worked_out(tmp_path):
    names = ("epsilon", "delta", "epsilon_median", "epsilon_seed", "bound")
    found = {}
    for every in (1, 2, 3):
        folder = tmp_path / str(every)
        run(changed(task={"evaluate_every": every}), out=folder)
        rows = streams.read(folder / "metrics", "releases").to_pylist()
        found[every] = [tuple(row[name] for name in names) for row in rows]
    often, second, third = found.values()
    assert None not in [epsilon for epsilon, *_ in often]
    unknown = (None,) * len(names)
    # The last release is always accounted for.
    assert second == [unknown, often[1], unknown, often[3]]
    assert third == [unknown, unknown, *often[2:]]


def test_the_printed_experiments_cost_what_is_known_of_them():
    """Spec section 8: the papers' bound, and the best one, at the rounds of the printed figures."""
    e2 = ev.SubsampledShuffle(1.5, 60_000, 10_000, "rbin", unit="item")
    for rounds, printed, best in ((210, 1.3934, 0.164), (1060, 2.9001, 0.397)):
        table = account([(e2, rounds)], 1e-5, names=("rdp-subsampled", "pld-law"))
        assert table["rdp-subsampled"].value == pytest.approx(printed, abs=5e-5)
        assert 0.98 * best < table.epsilon < best + 5e-4


def test_a_target_is_met(tmp_path):
    target = {"epsilon": 3.0, "delta": 1e-5}
    mechanism = {k: v for k, v in BASE["mechanism"].items() if k != "epsilon_local"}
    result = run(changed(mechanism={**mechanism, "target": target}), out=tmp_path / "run")
    assert 2.0 < result.summary["privacy"]["epsilon"] <= 3.0


SAMPLES = {
    "uniform": ({}, 1, 1, ev.SubsampledGaussianRelease),
    "one-of-three": ({"population": dealt(3)}, 3, 1, ev.SubsampledGaussianRelease),
    "two-of-three": (
        {"population": dealt(3), "task": {"sampled_points": 2}},
        3,
        2,
        ev.SubsampledGaussianRelease,
    ),
    "coins": (
        {"participation": {"kind": "self", "probability": 0.3}},
        1,
        1,
        ev.SelfSampledGaussianRelease,
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_noise_of_a_trusted_server_is_amplified_by_secret_samples(name, tmp_path):
    sections, points, sampled, kind = SAMPLES[name]
    scenario = changed(**CENTRAL, **sections)
    privacy = run(scenario, out=tmp_path / "run").summary["privacy"]
    noise = bound_mechanism(scenario).release().noise_multiplier
    size = 0.3 if name == "coins" else 40
    event = kind(noise, 120, size, points, sampled, unit="item")
    assert charges(tmp_path / "run") == [event] * 4
    assert privacy["epsilon"] == account([(event, 4)], 1e-5, names=("pld-sampled-noise",)).epsilon
    alone = account([(ev.GaussianRelease(noise, unit="item"), 4)], 1e-5, names=("pld-noise",))
    assert 0.0 < privacy["epsilon"] < 0.9 * alone.epsilon
    assert privacy["sampling"] == "counted" and privacy["bound"] == "pld-sampled-noise"
    assert privacy["amplification"]["used"] == "secret sample"
    assert "replace one item" in privacy["assumption"] and "secret" in privacy["assumption"]


def test_nothing_is_gained_by_samples_that_are_no_secret(tmp_path):
    population = {**BASE["population"], "dropout": 0.2}
    late = {"kind": "uniform", "sampled": 40, "deadline": 10.0}
    scenario = changed(**CENTRAL, population=population, participation=late)
    privacy = run(scenario, out=tmp_path / "run").summary["privacy"]
    noise = bound_mechanism(scenario).release().noise_multiplier
    assert set(charges(tmp_path / "run")) == {ev.GaussianRelease(noise, unit="item")}
    assert privacy["sampling"].startswith("not counted: who reports in time decides")


def test_a_target_of_a_sampled_run_is_met_with_less_noise(tmp_path):
    known = {k: v for k, v in CENTRAL["mechanism"].items() if k not in ("epsilon", "delta")}
    aim = {"trust": "central", "mechanism": {**known, "target": {"epsilon": 1.0, "delta": 1e-5}}}
    sampled = run(changed(**aim), out=tmp_path / "some").summary["privacy"]["epsilon"]
    assert 0.999 < sampled <= 1.0
    everyone = changed(**aim, participation={"kind": "all"})
    less, more = (bound_mechanism(made).sigma(1) for made in (changed(**aim), everyone))
    assert less < 0.6 * more


@pytest.mark.parametrize(
    ("alphabet", "symbols", "bound", "exact"),
    [
        (16, 1, 5.443, 4),
        (16, 4, 14.762, 12),
        (16, 16, 38.350, 29),
        (1024, 8, 67.620, 65),
        (26_340, 32, 356.140, 353),
    ],
)
def test_a_histogram_of_a_clients_symbols_takes_the_bits_of_001(alphabet, symbols, bound, exact):
    found = histogram_bits(alphabet, symbols)
    assert found == exact <= math.ceil(bound)
    each = math.log2(math.e) + math.log2((symbols + alphabet - 1) / symbols)
    assert symbols * each == pytest.approx(bound, abs=1e-3)


def test_every_histogram_has_a_number():
    for alphabet, symbols in itertools.product((1, 2, 5), (1, 2, 4)):
        known = itertools.combinations_with_replacement(range(alphabet), symbols)
        assert 2 ** histogram_bits(alphabet, symbols) >= len(list(known))


def test_a_run_says_what_several_samples_of_a_client_take(tmp_path):
    several = changed(population=dealt(3), task={"sampled_points": 3})
    sent = run(several, out=tmp_path / "run").summary["communication"]
    # 2 x 170 symbols of 9 bits each.
    assert sent["bits_per_client"] == 3 * 9
    assert sent["bits_per_client_as_histogram"] == (math.comb(342, 3) - 1).bit_length() < 27
    one = run(changed(), out=tmp_path / "one").summary["communication"]
    assert "bits_per_client" not in one
