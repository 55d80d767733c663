"""Records as they are, without any noise."""

import math
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class BareRecords(Mechanism):
    """Send vectors as they are. It hides nothing: for what is compared with, and said to be so.

    Fields:
        radius: of the l2 ball that they lie in.
        gradient_clip: to which task `shuffled-gradients` cuts gradients; not at all unless given.

    Example:
        >>> BareRecords(dimension=2, radius=1.0).event().epsilon
        inf
    """

    kind: ClassVar[str] = "bare-records"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only", "none"]] = "none"
    compared: ClassVar[bool] = False
    source: ClassVar[str] = "no noise"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"dimension": 2, "radius": 1.0},)

    radius: Positive
    gradient_clip: Positive | None = None

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> Vectors:
        """One message of doubles."""
        return Vectors(self.need_dimension(), self.radius)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Send the values."""
        return Messages(values[:, None, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean."""
        return self.wire.mean(counts)

    def event(self) -> LocalReport:
        """Return an infinite loss: nothing is hidden."""
        return LocalReport(math.inf)

    def need_epsilon(self) -> float:
        """Refuse: there is none."""
        raise InputError(f"'{self.kind}' adds no noise and has no epsilon")

    def mse(self, values: Floats) -> Floats:
        """Return 0: the mean is exact but for rounding."""
        return np.zeros(len(values))

    def worst_mse(self) -> float:
        """Return 0."""
        return 0.0
