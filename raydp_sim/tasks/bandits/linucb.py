"""LinUCB, the usual bandit without privacy or batches, as a reference."""

import math

import numpy as np

from raydp_sim.errors import bad_field
from raydp_sim.tasks.bandits.checks import Floats, check_delta, check_horizon
from raydp_sim.tasks.bandits.instance import Instance
from raydp_sim.tasks.bandits.rewards import RewardRange


def linucb(
    instance: Instance,
    horizon: int,
    runs: int,
    generator: np.random.Generator,
    delta: float = 0.01,
    ridge: float = 1.0,
    rewards: RewardRange | None = None,
) -> Floats:
    """Return the regret of each run of OFUL (Abbasi-Yadkori, Pal and Szepesvari 2011).

    In every round it plays argmax <a, theta> + beta ||a||_(V^-1), with V = ridge I + sum of a a'
    and beta = sqrt(ridge) + sqrt(2 log(1/delta) + log(det V/ridge^d)). Runs are played side
    by side.

    Args:
        instance: actions and theta*.
        horizon: T >= 3.
        runs: how many, >= 1.
        generator: of the rewards, each `low` or `high`.
        delta: that the confidence sets fail with.
        ridge: > 0.
        rewards: their range; [-1, 1] if left out.

    Example:
        >>> from raydp_sim.random import Stream
        >>> still = Instance(np.eye(2), np.array([1.0, 0.0]))
        >>> float(linucb(still, 100, 1, Stream(1).generator())[0]) < 50
        True
    """
    check_horizon(horizon)
    check_delta(delta)
    if not ridge > 0.0:
        raise bad_field("ridge", ridge, "it must be > 0")
    reach = RewardRange() if rewards is None else rewards
    actions, chance, gaps = instance.actions, instance.chances(reach), instance.gaps
    d = actions.shape[1]
    inverse = np.repeat(np.eye(d)[None] / ridge, runs, axis=0)
    moment, log_det, regret = np.zeros((runs, d)), np.zeros(runs), np.zeros(runs)
    each = np.arange(runs)
    for _ in range(horizon):
        spread = np.einsum("rij,ki,kj->rk", inverse, actions, actions)
        theta = np.einsum("rij,rj->ri", inverse, moment)
        beta = math.sqrt(ridge) + np.sqrt(2.0 * math.log(1.0 / delta) + log_det)
        play = (theta @ actions.T + beta[:, None] * np.sqrt(spread)).argmax(axis=1)
        high = generator.random(runs) < chance[play]
        moment += actions[play] * (reach.low + reach.width * high)[:, None]
        # Sherman and Morrison: the determinant grows by 1 + a' V^-1 a.
        along = np.einsum("rij,rj->ri", inverse, actions[play])
        grown = 1.0 + spread[each, play]
        inverse -= along[:, :, None] * along[:, None, :] / grown[:, None, None]
        log_det += np.log(grown)
        regret += gaps[play]
    return regret
