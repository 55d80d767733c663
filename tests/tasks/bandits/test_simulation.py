"""The fast simulation: its laws, the good event, regret against references and certificates.

Seeds are fixed. Where a number is compared with a reference to within 25 %, that is five standard
errors or more of either: false alarms are rarer than 1e-6.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from raydp_sim.errors import InputError
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits import batch as batches
from raydp_sim.tasks.bandits.batch import plan_batch
from raydp_sim.tasks.bandits.instance import Instance, random_instance
from raydp_sim.tasks.bandits.learner import committed, next_batch, start, step
from raydp_sim.tasks.bandits.linucb import linucb
from raydp_sim.tasks.bandits.problem import Model, Problem
from raydp_sim.tasks.bandits.rewards import RewardRange
from raydp_sim.tasks.bandits.simulate import Runs, noise_of_sums, simulate, sums_of_rewards

MODELS: tuple[Model, ...] = ("none", "central", "local", "shuffle")


def circle(count: int, first: float, theta: float) -> Instance:
    angles = first + 2.0 * math.pi * np.arange(count) / count
    actions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Instance(actions, np.array([math.cos(theta), math.sin(theta)]))


TEN = circle(10, 0.1, 0.3)


def runs_of(
    instance: Instance, model: Model, horizon: int, epsilon: float, runs: int, **other: object
) -> Runs:
    problem = Problem(instance.actions, horizon, model, epsilon, **other)  # type: ignore[arg-type]
    place = Stream(21).at(model, horizon, str(epsilon))
    return simulate(problem, instance, runs, place.generator())


@pytest.mark.parametrize("rewards", [RewardRange(), RewardRange(0.0, 1.0)])
def test_sums_of_rewards_have_their_law(rewards: RewardRange) -> None:
    """Chi-square against the exact law of the number of high rewards, alarm at 1e-6."""
    instance = Instance(np.eye(2), np.array([0.3, 0.8]))
    problem = Problem(instance.actions, 100, "none", rewards=rewards)
    batch = plan_batch(problem, np.array([True, True]), 2)
    sums = sums_of_rewards(problem, instance, batch, 20_000, Stream(1).generator())
    for j, n in enumerate(batch.slots):
        high = (sums[:, j] - n * rewards.low) / rewards.width
        seen = np.bincount(np.round(high).astype(int), minlength=n + 1)
        chance = (instance.means[batch.actions[j]] - rewards.low) / rewards.width
        expected = 20_000 * stats.binom.pmf(np.arange(n + 1), n, chance)
        kept = expected > 5.0
        statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
        assert stats.chi2.sf(statistic, kept.sum()) > 1e-6


@pytest.mark.parametrize("model", ["central", "local", "shuffle"])
def test_noise_of_sums_has_its_law(model: Model) -> None:
    """Kolmogorov and Smirnov against noise drawn one by one, alarm at 1e-6."""
    problem = Problem(np.eye(2), 100, model, 0.7)
    batch = plan_batch(problem, np.array([True, True]), 2)
    noise = noise_of_sums(problem, batch, 20_000, Stream(2).generator())
    each = 1 if model == "central" else int(batch.slots[0])
    one_by_one = Stream(3).generator().laplace(0.0, batch.scale, (20_000, each)).sum(axis=1)
    assert stats.ks_2samp(noise[:, 0], one_by_one).pvalue > 1e-6
    assert abs(np.corrcoef(noise.T)[0, 1]) < 5.0 / math.sqrt(20_000)


@pytest.mark.parametrize("model", MODELS)
def test_whole_runs_have_the_law_of_runs_played_client_by_client(model: Model) -> None:
    """Regret of 400 runs either way, every reward and every noise drawn; alarm at 1e-6."""
    instance = random_instance(20, 2, Stream(41))
    epsilon = math.inf if model == "none" else 3.0
    problem = Problem(instance.actions, 300, model, epsilon, radius="paper")
    fast = simulate(problem, instance, 400, Stream(42).at(model).generator()).regret
    generator, slow = Stream(43).at(model).generator(), []
    for _ in range(400):
        state, regret = start(problem), 0.0
        while (batch := next_batch(problem, state)) is not None:
            played = batch.action_of_slot
            chance = (1.0 + instance.means[played]) / 2.0
            rewards = np.where(generator.random(len(played)) < chance, 1.0, -1.0)
            if model in ("local", "shuffle"):
                rewards += generator.laplace(0.0, batch.scale, len(played))
            sums = np.array([rewards[played == action].sum() for action in batch.actions])
            if model == "central":
                sums += generator.laplace(0.0, batch.scale, len(sums))
            regret += instance.gaps[played].sum()
            state = step(problem, state, batch, sums)
        rest = problem.horizon - state.used
        slow.append(regret + rest * instance.gaps[committed(problem, state)])
    # Regrets are added up in another order; rounding must not tell them apart.
    fast, one_by_one = np.round(fast, 6), np.round(slow, 6)
    assert len(set(one_by_one)) > 3, "runs differ"
    assert stats.ks_2samp(fast, one_by_one).pvalue > 1e-6


@pytest.mark.parametrize("design", ["core-set", "uniform"])
@pytest.mark.parametrize("model", MODELS)
def test_the_good_event_holds_as_often_as_is_proved(model: Model, design: str) -> None:
    """All radii hold but with probability 1/T: T = 100, 20,000 runs, exact binomial at 1e-6."""
    instance = random_instance(6, 2, Stream(31))
    epsilon = math.inf if model == "none" else 2.0
    found = runs_of(instance, model, 100, epsilon, 20_000, design=design)
    failures = int((~found.good).sum())
    assert stats.binom.sf(failures - 1, 20_000, 1.0 / 100) > 1e-6
    assert (found.regret <= found.certificate + 1e-9)[found.good].all()
    assert (found.certificate <= 200.0).all()


def test_radii_that_are_too_small_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "confidence_radius", lambda *_: 0.3)
    found = runs_of(random_instance(6, 2, Stream(31)), "local", 100, 2.0, 20_000)
    failures = int((~found.good).sum())
    assert stats.binom.sf(failures - 1, 20_000, 1.0 / 100) < 1e-6


@pytest.mark.parametrize("model", MODELS)
def test_actions_in_a_plane_of_a_larger_space_are_played_as_in_the_plane(model: Model) -> None:
    """V is singular there: least squares in the span, radii wider by the dimension alone."""
    flat = random_instance(12, 2, Stream(36))
    turn = np.linalg.qr(Stream(37).generator().standard_normal((5, 2)))[0]
    deep = Instance(flat.actions @ turn.T, turn @ flat.theta)
    epsilon = math.inf if model == "none" else 3.0
    for radius in ("paper", "corrected"):
        found = runs_of(deep, model, 10**6, epsilon, 20, radius=radius)
        assert found.good.all()
        assert (found.regret <= found.certificate).all()
    assert (found.active[:, 0] == 12).all() and (np.nanmin(found.active, axis=1) < 12).all()
    # Radii have the dimension of the space in them, and nothing else differs.
    in_plane = runs_of(flat, model, 10**6, epsilon, 20)
    shared = ~np.isnan(found.radius[0]) & ~np.isnan(in_plane.radius[0])
    ratio = found.radius[0, shared][0] / in_plane.radius[0, shared][0]
    assert math.sqrt(2.5) - 1e-9 <= ratio <= 2.5 + 1e-9


@pytest.mark.parametrize("model", MODELS)
def test_regret_is_within_the_certificate_on_long_runs(model: Model) -> None:
    epsilon = math.inf if model == "none" else 1.0
    for r in range(3):
        instance = random_instance(20, 3, Stream(32).at(r))
        found = runs_of(instance, model, 10**6, epsilon, 20)
        assert found.good.all()
        assert (found.regret <= found.certificate).all()
        last = np.array([radii[~np.isnan(radii)][-1] for radii in found.radius])
        assert (instance.gaps[found.committed] <= 2.0 * last).all()


# Spec section 5, mean regret at T = 10^4, 10^5, 10^6 of 60 runs on the ten actions above.
REFERENCE = [
    ("none", math.inf, (2672, 5345, 19312)),
    ("central", 1.0, (2689, 7758, 24281)),
    ("shuffle", 1.0, (3581, 12004, 30528)),
    ("local", 5.0, (3581, 12188, 24540)),
    ("local", 1.0, (3587, 26272, 87485)),
    ("local", 0.2, (3640, 27013, 199924)),
]


@pytest.mark.parametrize(("model", "epsilon", "printed"), REFERENCE)
def test_mean_regrets_are_near_the_reference(
    model: Model, epsilon: float, printed: tuple[float, ...]
) -> None:
    other = {"radius": "paper", "amplification": "closed"}
    for horizon, reference in zip((10**4, 10**5, 10**6), printed, strict=True):
        found = runs_of(TEN, model, horizon, epsilon, 60, **other).regret
        assert found.mean() == pytest.approx(reference, rel=0.25)


@pytest.mark.parametrize("model", MODELS)
def test_regret_is_sublinear(model: Model) -> None:
    epsilon = math.inf if model == "none" else 1.0
    short, long = (
        runs_of(TEN, model, horizon, epsilon, 60, radius="paper").regret.mean() / horizon
        for horizon in (10**4, 10**6)
    )
    assert long < short / 2.0


def test_models_are_ordered_by_whom_they_trust() -> None:
    """On 20 common instances, epsilon = 1, T = 10^6; every step is five standard errors or more."""
    means = {}
    for model in MODELS:
        epsilon = math.inf if model == "none" else 1.0
        regret = [
            runs_of(
                random_instance(10, 2, Stream(33).at(r)), model, 10**6, epsilon, 10, radius="paper"
            ).regret.mean()
            for r in range(20)
        ]
        means[model] = float(np.mean(regret))
    assert means["none"] <= means["central"] < means["shuffle"] < means["local"]


def test_more_privacy_costs_more_and_clones_cost_less_than_the_closed_form() -> None:
    instance = random_instance(10, 2, Stream(34))

    def mean(model: Model, epsilon: float, by: str = "clones") -> float:
        other = {"radius": "paper", "amplification": by}
        return float(runs_of(instance, model, 10**6, epsilon, 20, **other).regret.mean())

    for model in ("central", "local"):
        assert mean(model, 0.05) > mean(model, 0.5) > mean(model, 5.0)
    assert mean("shuffle", 1.0) < mean("shuffle", 1.0, "closed")


def test_a_core_set_pays_at_high_privacy_only() -> None:
    """One of figure 6.2b's claims, on three instances at once."""
    ratio = {}
    for epsilon in (0.05, 5.0):
        both = [
            [
                runs_of(
                    random_instance(1000, 2, Stream(35).at(r)),
                    "central",
                    10**7,
                    epsilon,
                    1,
                    radius="paper",
                    design=design,
                ).regret[0]
                for r in range(3)
            ]
            for design in ("core-set", "uniform")
        ]
        ratio[epsilon] = np.mean(both[0]) / np.mean(both[1])
    assert ratio[0.05] < 0.6
    assert ratio[5.0] > 1.4


def test_linucb_is_a_fair_reference() -> None:
    """Sequential and without noise, it is far below batches at T = 2000, and sublinear."""
    short, long = (
        linucb(TEN, horizon, 20, Stream(6).generator()).mean() for horizon in (500, 2000)
    )
    assert long < 2.5 * short
    assert long < runs_of(TEN, "none", 2000, math.inf, 20).regret.mean()
    with pytest.raises(InputError, match="ridge is 0"):
        linucb(TEN, 100, 1, Stream(1).generator(), ridge=0.0)


def test_runs_are_reproducible_and_start_anew_with_another_seed() -> None:
    problem = Problem(TEN.actions, 10**5, "shuffle", 1.0, radius="paper")
    first, again = (simulate(problem, TEN, 5, Stream(1).generator()).regret for _ in range(2))
    assert (first == again).all()
    other = simulate(replace(problem, model="local"), TEN, 5, Stream(2).generator()).regret
    assert not (first == other).all()


@pytest.mark.parametrize(
    ("theta", "words"),
    [
        ([0.8, 0.7], r"theta has length 1\.06"),
        ([math.nan, 0.0], "theta has length nan"),
        ([1.0, 0.0, 0.0], r"theta has shape \(3,\)"),
    ],
)
def test_bad_instances_are_refused(theta: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Instance(np.eye(2), np.array(theta))


def test_bad_simulations_are_refused() -> None:
    problem = Problem(TEN.actions, 100, "none")
    with pytest.raises(InputError, match="not the problem's"):
        simulate(problem, Instance(np.eye(2), np.zeros(2)), 1, Stream(1).generator())
    with pytest.raises(InputError, match="runs is 0"):
        simulate(problem, TEN, 0, Stream(1).generator())
    narrow = Problem(TEN.actions, 100, "none", rewards=RewardRange(0.0, 1.0))
    with pytest.raises(InputError, match=r"theta gives a mean reward of -0\.9.*\[0, 1\]"):
        simulate(narrow, TEN, 1, Stream(1).generator())
