"""What noise hides: exact likelihood ratios, printed scales, and the guarantee of a run."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from raydp_sim.errors import InputError
from raydp_sim.privacy.events import LaplaceRelease, LocalReport, Shuffle
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits.amplification import batch_epsilon
from raydp_sim.tasks.bandits.batch import plan_batch
from raydp_sim.tasks.bandits.guarantee import batch_event, run_guarantee
from raydp_sim.tasks.bandits.learner import Record
from raydp_sim.tasks.bandits.problem import Model, Problem
from raydp_sim.tasks.bandits.rewards import RewardRange
from raydp_sim.tasks.bandits.simulate import noise_of_sums

CORRECT, PRINTED = RewardRange(), RewardRange(sensitivity=1.0)


def largest_ratio(rewards: RewardRange, epsilon: float) -> float:
    """Return the largest log ratio of the densities of two rewards' reports, where it is taken."""
    scale = rewards.scale(epsilon)
    x = np.concatenate([np.linspace(rewards.low, rewards.high, 101), [-50.0, 50.0]])
    return float((np.abs(x - rewards.low) - np.abs(x - rewards.high)).max() / scale)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 7.0])
@pytest.mark.parametrize(
    ("rewards", "times"),
    [
        (RewardRange(), 1.0),
        (PRINTED, 2.0),
        (RewardRange(0.0, 1.0), 1.0),
        (RewardRange(0.0, 1.0, sensitivity=1.0), 1.0),
        (RewardRange(-0.5, 0.25, sensitivity=1.5), 0.5),
    ],
)
def test_the_loss_is_the_exact_likelihood_ratio(
    rewards: RewardRange, times: float, epsilon: float
) -> None:
    assert rewards.loss(epsilon) == pytest.approx(times * epsilon)
    assert largest_ratio(rewards, epsilon) == pytest.approx(times * epsilon)


@pytest.mark.parametrize("rewards", [CORRECT, PRINTED, RewardRange(0.0, 1.0)])
@pytest.mark.parametrize("model", ["central", "local", "shuffle"])
def test_what_is_released_has_the_exact_ratio_of_its_event(
    model: Model, rewards: RewardRange
) -> None:
    """Noise has the density of the planned scale (Kolmogorov and Smirnov, alarm at 1e-6), and the
    densities of neighbours' sums (central) or of a report differ by e^loss exactly.
    """
    problem = Problem(np.eye(3), 10**4, model, 0.8, rewards=rewards)
    batch = plan_batch(problem, np.ones(3, dtype=bool), 3)
    assert len(batch.actions) == 3
    one_each = replace(batch, slots=np.ones(3, dtype=np.int64))
    noise = noise_of_sums(problem, one_each, 20_000, Stream(8).at(model).generator())
    density = stats.laplace(0.0, batch.scale)
    for j in range(3):
        assert stats.kstest(noise[:, j], density.cdf).pvalue > 1e-6 / 27
    # One reward is in one sum; the other sums have the same density under both.
    sums = np.array([2.0, -1.0, 0.5])
    neighbour = sums + np.array([0.0, rewards.width, 0.0])
    axis = np.concatenate([np.linspace(-3.0, 3.0, 25), [-50.0, 50.0]])
    released = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    ratio = (density.logpdf(released - sums) - density.logpdf(released - neighbour)).sum(axis=1)
    event = batch_event(problem, batch.epsilon0, batch.clients)
    assert event is not None
    loss = event.epsilon0 if isinstance(event, Shuffle) else event.epsilon  # type: ignore[union-attr]
    assert ratio.max() == pytest.approx(loss, rel=1e-9)
    assert ratio.min() == pytest.approx(-loss, rel=1e-9)


def test_no_noise_at_an_infinite_epsilon() -> None:
    assert RewardRange().scale(math.inf) == 0.0
    for model in ("none", "central", "local", "shuffle"):
        problem = Problem(np.eye(2), 100, model)  # type: ignore[arg-type]
        batch = plan_batch(problem, np.array([True, True]), 1)
        assert batch.scale == 0.0
        assert batch_event(problem, batch.epsilon0, batch.clients) is None


def test_rewards_are_clipped_and_counted() -> None:
    found, outside = RewardRange(0.0, 1.0).clip(np.array([-0.1, 0.0, 0.3, 1.0, 7.0]))
    assert found.tolist() == [0.0, 0.0, 0.3, 1.0, 1.0]
    assert outside == 2


def test_the_events_of_batches() -> None:
    def event(model: str, rewards: RewardRange = CORRECT) -> object:
        problem = Problem(np.eye(2), 100, model, 0.5, rewards=rewards)  # type: ignore[arg-type]
        return batch_event(problem, 0.7, 40)

    assert event("central") == LaplaceRelease(0.7)
    assert event("local") == LocalReport(0.7)
    assert event("shuffle") == Shuffle(0.7, 40)
    assert event("central", PRINTED) == LaplaceRelease(1.4)
    assert event("shuffle", PRINTED) == Shuffle(1.4, 40)


def record(epsilon0: float, reports: int) -> Record:
    return Record(1, 2, 2, reports, reports, 0.1, epsilon0, 2.0 / epsilon0)


def test_a_run_costs_what_its_dearest_batch_does() -> None:
    log = [record(0.5, 20), record(0.9, 200), record(1.5, 2000)]
    central = Problem(np.eye(2), 10**4, "central", 0.5, rewards=PRINTED)
    assert run_guarantee(central, log[:1]).epsilon == 1.0, "the printed scale is 2 epsilon-DP"
    local = Problem(np.eye(2), 10**4, "local", 0.5)
    assert run_guarantee(local, log).epsilon == run_guarantee(local, log).local == 1.5
    shuffled = run_guarantee(Problem(np.eye(2), 10**4, "shuffle", 0.5, delta=1e-5), log)
    each = [batch_epsilon(entry.epsilon0, int(entry.reports), 1e-5) for entry in log]
    assert shuffled.epsilon == max(each) < shuffled.local == 1.5
    assert shuffled.delta == 1e-5
    nothing = run_guarantee(Problem(np.eye(2), 10**4, "none"), log)
    assert math.isinf(nothing.epsilon) and math.isinf(nothing.local)


def test_the_printed_scale_behind_a_shuffler_is_recomputed_not_doubled() -> None:
    problem = Problem(np.eye(2), 10**4, "shuffle", 0.5, rewards=PRINTED)
    batch = plan_batch(problem, np.array([True, True]), 8)
    found = run_guarantee(problem, [record(batch.epsilon0, batch.clients)])
    assert found.local == pytest.approx(2.0 * batch.epsilon0)
    assert found.epsilon > 2.0 * 0.5, "amplification is worse at twice the loss"
    assert found.epsilon == batch_epsilon(2.0 * batch.epsilon0, batch.clients, 1e-6)


@pytest.mark.parametrize("by", ["clones", "closed"])
@pytest.mark.parametrize("least", [1.0, 0.8])
def test_every_batch_of_a_shuffled_run_keeps_the_target(by: str, least: float) -> None:
    problem = Problem(
        np.eye(2),
        10**4,
        "shuffle",
        0.3,
        amplification=by,  # type: ignore[arg-type]
        least=least,
    )
    for number in range(1, 9):
        batch = plan_batch(problem, np.array([True, True]), number)
        assert batch.least == math.ceil(least * batch.clients - 1e-9)
        assert batch.epsilon0 >= 0.3
        assert batch_epsilon(batch.epsilon0, batch.least, 1e-6) <= 0.3 * (1 + 1e-12)


BAD = [
    ({"horizon": 2}, "horizon is 2"),
    ({"epsilon": 0.0}, "epsilon is 0.0"),
    ({"epsilon": -1.0}, "epsilon is -1.0"),
    ({"epsilon": math.nan}, "epsilon is nan"),
    ({"delta": 0.0}, "delta is 0.0"),
    ({"delta": 1.0}, "delta is 1.0"),
    ({"delta": math.nan}, "delta is nan"),
    ({"least": 0.0}, "least is 0.0"),
    ({"least": 1.1}, "least is 1.1"),
    ({"model": "trusted"}, "model is 'trusted'; choose one of none, central"),
    ({"radius": "tight"}, "radius is 'tight'"),
    ({"design": "g"}, "design is 'g'"),
    ({"amplification": "best"}, "amplification is 'best'"),
    ({"model": "none"}, "epsilon is 1.0; model none has no noise"),
    ({"actions": np.zeros((0, 2))}, r"actions has shape \(0, 2\)"),
    ({"actions": np.zeros(2)}, r"actions has shape \(2,\)"),
    ({"actions": np.zeros((3, 2))}, "actions are all zero"),
    ({"actions": [[1.0, 0.0], [0.8, 0.7]]}, r"actions\[1\] has length 1.06"),
    ({"actions": [[1.0, 0.0], [0.8, math.nan]]}, r"actions\[1\] is"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_bad_problems_are_refused_by_name(change: dict[str, object], words: str) -> None:
    good = {"actions": np.eye(2), "horizon": 100, "model": "shuffle", "epsilon": 1.0}
    Problem(**good)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words):
        Problem(**{**good, **change})  # type: ignore[arg-type]


def test_bad_ranges_are_refused() -> None:
    for low, high in ((1.0, -1.0), (0.0, 0.0), (-2.0, 1.0), (math.nan, 1.0)):
        with pytest.raises(InputError, match="rewards are in"):
            RewardRange(low, high)
    for sensitivity in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match=r"rewards\.sensitivity is"):
            RewardRange(sensitivity=sensitivity)
    with pytest.raises(InputError, match="not all finite"):
        RewardRange().clip(np.array([math.nan]))


def test_lengths_may_exceed_one_by_rounding() -> None:
    Problem([[1.0 + 1e-12, 0.0], [0.0, 1.0]], 100, "none")  # type: ignore[arg-type]
