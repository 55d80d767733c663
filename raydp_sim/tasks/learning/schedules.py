"""Step sizes, round by round; what a server does with a release costs no privacy."""

import math
from abc import abstractmethod
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from raydp_sim.registry import Piece, Registry

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Schedule(Piece):
    """The step size of every round."""

    # How else than by a kind it may be written, as a JSON schema.
    plain: ClassVar[dict[str, Any]] = {"type": "number", "exclusiveMinimum": 0}

    @abstractmethod
    def rate(self, t: int) -> float:
        """Return the step size of the t-th effective round, t >= 1.

        Rounds in which nobody reported are not counted.
        """


class Constant(Schedule):
    """One step size for all rounds; a plain number in a scenario is one.

    Fields:
        value: the step size.
    """

    kind: ClassVar[str] = "constant"
    value: Positive

    def rate(self, t: int) -> float:
        """Return the value."""
        return self.value


class Piecewise(Schedule):
    """Step sizes that change at given times.

    Fields:
        values: the step sizes, one after the other.
        until: when each but the last ends, ascending, in epochs.
        epoch: rounds that an epoch has: points of all clients over points of a cohort. With 1,
            `until` is in rounds.

    Example:
        >>> printed = Piecewise(values=[0.3, 0.18], until=[70], epoch=6)
        >>> printed.rate(420), printed.rate(421)
        (0.3, 0.18)
    """

    kind: ClassVar[str] = "piecewise"
    values: tuple[Positive, ...]
    until: tuple[Annotated[int, Field(ge=1)], ...]
    epoch: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _fits(self) -> "Piecewise":
        if len(self.until) != len(self.values) - 1:
            raise ValueError(
                f"{len(self.values)} values have {len(self.values) - 1} ends; `until` has "
                f"{len(self.until)}"
            )
        if list(self.until) != sorted(set(self.until)):
            raise ValueError("`until` must ascend")
        return self

    def rate(self, t: int) -> float:
        """Return the value whose time has not ended."""
        return self.values[sum(t > end * self.epoch for end in self.until)]


class InverseRoot(Schedule):
    """D / (G sqrt t): the last iterate is then within 2 D G (2 + log T) / sqrt T of the optimum.

    Shamir & Zhang 2013, Theorem 2, for convex losses on a set of diameter D, if the second moment
    of the gradients' estimate is at most G^2; see `projection` and `tasks.learning.moments`.

    Fields:
        diameter: D of the set that parameters are projected to.
        gradient: G.

    Example:
        >>> InverseRoot(diameter=2.0, gradient=4.0).rate(25)
        0.1
    """

    kind: ClassVar[str] = "inverse-root"
    diameter: Positive
    gradient: Positive

    def rate(self, t: int) -> float:
        """Return D / (G sqrt t)."""
        return self.diameter / (self.gradient * math.sqrt(t))


# The base is only compared with, so it may be abstract.
SCHEDULES = Registry("raydp_sim.tasks.learning", Schedule)  # type: ignore[type-abstract]


def _parse(given: Any) -> Any:
    plain = isinstance(given, int | float) and not isinstance(given, bool)
    return Constant(value=float(given)) if plain else SCHEDULES.parse(given)


StepSize = Annotated[
    Schedule, BeforeValidator(_parse), PlainSerializer(SCHEDULES.dump, return_type=dict)
]
"""A schedule in a scenario, or a number."""
