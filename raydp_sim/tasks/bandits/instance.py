"""What only the analyst of a simulation knows: the vector that rewards follow."""

from dataclasses import dataclass

import numpy as np

from raydp_sim.errors import InputError
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits.checks import SLACK, Floats, check_theta, check_vectors
from raydp_sim.tasks.bandits.rewards import RewardRange


@dataclass(frozen=True, eq=False)
class Instance:
    """Actions and the vector theta*; a reward has the mean <theta*, a>.

    Attributes:
        actions: one per row, of length <= 1.
        theta: of length <= 1.
    """

    actions: Floats
    theta: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", check_vectors("actions", self.actions))
        object.__setattr__(self, "theta", check_theta(self.theta, self.actions.shape[1]))

    @property
    def means(self) -> Floats:
        """Mean reward of each action."""
        return np.asarray(self.actions @ self.theta)

    @property
    def gaps(self) -> Floats:
        """What each action loses to the best one, per round."""
        return np.asarray(self.means.max() - self.means)

    def chances(self, rewards: RewardRange) -> Floats:
        """Return the probability of `high`, if rewards are only ever `low` or `high`."""
        return chances(self.means, rewards)


def chances(means: Floats, rewards: RewardRange) -> Floats:
    """Return the probabilities of the larger of two rewards that have these means.

    Raises:
        InputError: where no such rewards have the mean.

    Example:
        >>> chances(np.array([0.0, 1.0]), RewardRange())
        array([0.5, 1. ])
    """
    found = (means - rewards.low) / rewards.width
    if found.min() < -SLACK or found.max() > 1.0 + SLACK:
        worst = means[np.abs(found - 0.5).argmax()]
        remedy = f"<theta, a> must lie in [{rewards.low:g}, {rewards.high:g}] for every action"
        raise InputError(f"theta gives a mean reward of {worst:g}; {remedy}")
    return np.clip(found, 0.0, 1.0)


def random_instance(actions: int, dimension: int, stream: Stream) -> Instance:
    """Draw actions and theta* uniformly on the unit sphere, as in 000 Section 6.6.

    Example:
        >>> random_instance(10, 2, Stream(1)).actions.shape
        (10, 2)
    """
    normal = stream.generator().standard_normal((actions + 1, dimension))
    unit = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return Instance(unit[:-1], unit[-1])
