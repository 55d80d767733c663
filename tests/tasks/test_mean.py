"""Mean estimation: its truth is exact and its scores are what they say."""

import numpy as np
import pytest

from raydp_sim.errors import RunError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.randomizer import nothing_clipped
from raydp_sim.metrics.streams import visibility
from raydp_sim.random import Stream
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism
from raydp_sim.stream.trust import TRUSTS
from raydp_sim.tasks.base import Ask, Formed, Setting, Truth
from raydp_sim.tasks.mean import Mean, exact_mean
from tests.conftest import LINF, scenario

MECHANISM = make(**LINF, dimension=6)
SETTING = Setting(MECHANISM, clients=1000, shape=(6,), delta=1e-6)


def test_truths_of_disjoint_sets_add_up_exactly():
    data = np.random.default_rng(1).uniform(-1, 1, (1000, 6))
    whole = Mean().truth(SETTING, data)
    parts = [Mean().truth(SETTING, data[i::7]) for i in range(7)]
    assert np.array_equal(whole, np.sum(parts, axis=0))
    assert whole[-1] == 1000
    assert np.allclose(exact_mean(MECHANISM, whole), data.mean(axis=0), rtol=0, atol=1e-11)


def test_scores_are_squared_distances():
    data = np.random.default_rng(1).uniform(-1, 1, (50, 6))
    task = Mean()
    whole, cohort = task.truth(SETTING, data), task.truth(SETTING, data[:20])
    public = {"estimate": np.zeros(6), "running": np.ones(6)}
    truth = Truth(cohort, cohort, whole, nothing_clipped(MECHANISM), None, 20)
    rows = task.rows(SETTING, Ask(MECHANISM), [public], truth)
    assert set(rows) == {"errors"} and visibility(rows["errors"].schema) == "simulation-only"
    (scores,) = rows["errors"].to_pylist()
    population, chosen = data.mean(axis=0), data[:20].mean(axis=0)
    assert scores["squared_error_cohort"] == pytest.approx((chosen**2).sum(), rel=1e-6)
    assert scores["squared_error_population"] == pytest.approx((population**2).sum(), rel=1e-6)
    assert scores["running_squared_error"] == pytest.approx(((population - 1) ** 2).sum(), rel=1e-6)
    # Nothing was clipped, so all that is between the estimate and the cohort's mean is noise.
    assert scores["noise"] ** 2 == pytest.approx(scores["squared_error_cohort"])
    assert scores["clipping_bias"] == 0.0
    missed = ((chosen - population) ** 2).sum()
    assert scores["participation_bias"] ** 2 == pytest.approx(missed, rel=1e-6)


def test_the_running_mean_averages_the_estimates():
    task, state = Mean(), Mean().init(SETTING)
    formed = Formed(200, TRUSTS["shuffle"])
    seen = []
    for release in range(3):
        counts = MECHANISM.zero()
        counts += release + 1
        state, public = task.step(
            SETTING, Ask(MECHANISM), 0, state, counts, formed, Stream(release)
        )
        seen.append(public["estimate"])
        assert np.allclose(public["running"], np.mean(seen, axis=0))


def test_the_error_of_a_run_is_what_the_mechanism_promises(tmp_path):
    """Mean squared error over 300 releases against the exact formula.

    The cohort is everyone, so the expected squared error is sum(mse) / n^2. A release's squared
    error has a coefficient of variation below 1 (6 coordinates), so 300 of them have a relative
    standard error below 0.058; 5.5 of those leave a false-alarm probability below 1e-6.
    """
    base = scenario(rounds=300)
    result = run(base, out=tmp_path / "run")
    ids = np.arange(200, dtype=np.uint32)
    data = base.population.data.values(ids, base.stream(0).at("data"))
    expected = bound_mechanism(base).mse(data).sum() / 200**2
    measured = result.metrics["squared_error_cohort"].to_numpy().mean()
    assert abs(measured / expected - 1) < 5.5 * 0.058
    running = result.summary["metrics"]["running_squared_error"]
    assert running < measured / 20


def test_rows_say_who_took_part_and_what_it_cost(tmp_path):
    base = scenario(rounds=5, participation={"kind": "uniform", "sampled": 40})
    result = run(base, out=tmp_path / "run")
    mechanism = bound_mechanism(base)
    for release, row in enumerate(result.metrics.to_pylist()):
        assert row["release"] == release and row["time"] == float(release)
        assert row["participants"] == row["batch_size"] == 40 and row["missing"] == 0
        assert row["messages"] == 40 * mechanism.messages_per_report
        assert row["bits"] == 40 * mechanism.bits
        assert row["wire_bytes"] == 40 * -(-mechanism.bits // 8)
        assert row["epsilon_local"] == mechanism.event().epsilon
        assert row["epsilon"] <= (release + 1) * row["epsilon_local"]
    privacy = result.summary["privacy"]
    # The end is accounted with every bound; on the way it is the divergences on a grid of orders.
    assert 0 < privacy["epsilon"] <= result.metrics["epsilon"].to_pylist()[-1]
    assert privacy["delta"] == base.privacy.delta and privacy["sampling"] == "counted"
    assert "uniform, secret" in privacy["assumption"]


def test_without_a_shuffler_epsilon_is_the_local_one_times_the_participations(tmp_path):
    chosen = {"kind": "uniform", "sampled": 40}
    base = scenario(rounds=5, trust="local", participation=chosen)
    result = run(base, out=tmp_path / "run")
    local = bound_mechanism(base).event().epsilon
    privacy = result.summary["privacy"]
    assert privacy["bound"] == "local-composition" and privacy["delta"] == 0
    assert privacy["epsilon"] == result.metrics["epsilon"].to_pylist()[-1]
    assert privacy["epsilon"] in [local * times for times in range(1, 6)]


def test_one_shot_estimation_is_one_release(tmp_path):
    result = run(scenario(rounds=1), out=tmp_path / "run")
    assert result.metrics.num_rows == 1
    privacy = result.summary["privacy"]
    assert 0 < privacy["epsilon"] < privacy["epsilon_local"]
    assert privacy["sampling"].startswith("not counted: nobody is sampled")


def test_the_gaussian_reports_its_delta(tmp_path):
    mechanism = {"kind": "gaussian", "radius": 3.0, "epsilon_local": 0.5, "delta_local": 1e-8}
    base = scenario(rounds=5, trust="local", mechanism=mechanism)
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert privacy["epsilon"] == pytest.approx(2.5) and privacy["delta"] == pytest.approx(5e-8)


def test_a_central_mechanism_claims_no_local_guarantee(tmp_path):
    mechanism = {"kind": "central-laplace", "radius": 6.0, "epsilon": 0.5}
    base = scenario(rounds=4, trust="central", mechanism=mechanism)
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert privacy["epsilon_local"] is None and "trusted" in privacy["assumption"]
    assert 1.9 < privacy["epsilon"] <= 2.0


@pytest.mark.parametrize(
    "trust,mechanism",
    [
        ("shuffle", {**LINF, "epsilon_local": None, "target": {"epsilon": 3.0}}),
        ("central", {"kind": "central-laplace", "radius": 6.0, "target": {"epsilon": 3.0}}),
        (
            "central",
            {"kind": "central-gaussian", "radius": 3.0, "target": {"epsilon": 3.0, "delta": 1e-6}},
        ),
    ],
)
def test_a_target_is_met_by_the_end_and_never_exceeded(trust, mechanism, tmp_path):
    mechanism = {key: value for key, value in mechanism.items() if value is not None}
    base = scenario(rounds=6, trust=trust, mechanism=mechanism)
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert privacy["epsilon"] <= 3.0 + 1e-9
    assert privacy["delta"] <= 1e-6 * (1 + 1e-9)
    if mechanism["kind"] == "central-laplace":
        assert privacy["epsilon"] > 2.99


def test_gaussian_noise_of_a_trusted_aggregator_is_composed_by_its_losses(tmp_path):
    mechanism = {"kind": "central-gaussian", "radius": 3.0, "epsilon": 0.2, "delta": 1e-8}
    base = scenario(rounds=50, trust="central", mechanism=mechanism)
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert privacy["bound"] == "pld-noise" and "trusted" in privacy["assumption"]
    # Basic composition would give 10; the square root of the rounds is what noise really costs.
    assert 0.2 < privacy["epsilon"] < 2.0 and privacy["delta"] == 1e-6


@pytest.mark.parametrize(
    "participation,reached",
    [({"kind": "uniform", "sampled": 400}, 0.9), ({"kind": "self", "probability": 0.5}, 0.2)],
)
def test_a_central_target_is_met_through_the_shuffler(participation, reached, tmp_path):
    """With sampling the plan is what happens; without, a client rarely is in every release."""
    target = {"epsilon": 1.0, "delta": 1e-6}
    mechanism = {"kind": "linf", "radius": 1.0, "coordinates": 2, "target": target}
    base = scenario(
        2000, 5, mechanism=mechanism, participation=participation, shuffle={"min_batch": 400}
    )
    assert bound_mechanism(base).epsilon_local > 2 * 1.0 / 5
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert reached < privacy["epsilon"] <= 1.0 and privacy["delta"] == 1e-6


def test_bad_data_of_a_later_repetition_is_not_blamed_on_the_input(tmp_path):
    """Unclipped normals leave the ball sooner or later; by then the first repetition is on disk."""
    data = {"kind": "gaussian", "dimension": 6, "sd": 0.25}
    base = scenario(population={"clients": 200, "data": data}, repeat=50)
    with pytest.raises(RunError, match=r"in repetition \d+: .*outside the linf ball"):
        run(base, out=tmp_path / "run")
