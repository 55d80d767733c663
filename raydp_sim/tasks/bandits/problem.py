"""What a learner is told before the first batch: all of it is public."""

import math
from dataclasses import dataclass, field
from typing import Literal

from raydp_sim.errors import bad_field
from raydp_sim.tasks.bandits.amplification import Amplification
from raydp_sim.tasks.bandits.checks import (
    Floats,
    check_delta,
    check_epsilon,
    check_horizon,
    check_share,
    check_vectors,
)
from raydp_sim.tasks.bandits.radii import NoiseOn, RadiusName
from raydp_sim.tasks.bandits.rewards import RewardRange

Model = Literal["none", "central", "local", "shuffle"]
DesignName = Literal["core-set", "uniform"]

_NOISE: dict[str, NoiseOn] = {
    "none": "nothing",
    "central": "sums",
    "local": "reports",
    "shuffle": "reports",
}


@dataclass(frozen=True, eq=False)
class Problem:
    """Actions, horizon, and how rewards are protected.

    Attributes:
        actions: one per row, of length <= 1.
        horizon: T, rounds; every round is a client of its own.
        model: who adds noise: nobody (`none`), a trusted learner to each action's sum (`central`),
            each client (`local`), or each client behind a shuffler (`shuffle`).
        epsilon: of the run, `central` and `shuffle`; of a report, `local`; inf: no noise.
        delta: of a shuffled run; other models have none.
        rewards: their range.
        radius: `corrected`, with which the certificate is proved, or as in the `paper`.
        design: `core-set`, or `uniform` over all active actions.
        amplification: how a shuffled batch's epsilon0 is found.
        least: share of a shuffled batch's slots that must be filled; epsilon0 is for so many.
        honest: share of them that may be counted on to hide a client.
    """

    actions: Floats
    horizon: int
    model: Model
    epsilon: float = math.inf
    delta: float = 1e-6
    rewards: RewardRange = field(default_factory=RewardRange)
    radius: RadiusName = "corrected"
    design: DesignName = "core-set"
    amplification: Amplification = "clones"
    least: float = 1.0
    honest: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", check_vectors("actions", self.actions))
        object.__setattr__(self, "horizon", check_horizon(self.horizon))
        choices = {
            "model": tuple(_NOISE),
            "radius": ("paper", "corrected"),
            "design": ("core-set", "uniform"),
            "amplification": ("clones", "closed"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise bad_field(name, getattr(self, name), f"choose one of {', '.join(known)}")
        check_epsilon(self.epsilon)
        if self.model == "none" and not math.isinf(self.epsilon):
            raise bad_field("epsilon", self.epsilon, "model none has no noise; leave it out")
        if self.model == "shuffle":
            check_delta(self.delta)
        check_share("least", self.least)
        check_share("honest", self.honest)

    @property
    def dimension(self) -> int:
        """Of the actions."""
        return int(self.actions.shape[1])

    @property
    def noise_on(self) -> NoiseOn:
        """Which variables have noise."""
        return _NOISE[self.model]
