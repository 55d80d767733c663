"""PrivUnit: a random unit vector that leans towards the client's own direction."""

import math
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from raydp_sim import kernels
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.budget import SLACK
from raydp_sim.mechanisms.parts.rowwise import dots
from raydp_sim.mechanisms.parts.spherical_cap import Cap, Variant, best_cap
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.events import LocalReport
from raydp_sim.privacy.names import with_parameter
from raydp_sim.random import ClientStream, Stream

# From this dimension on the directions come from one generator per client, which is then faster.
_WIDE = 64
# A vector shorter than this has no direction: its squares leave the range of doubles.
_SHORTEST = 1e-140
# What the longest vector of normals is short of, in standard deviations beyond sqrt(dimension).
_TAIL = 40.0
_HALF_STEP = 2.0**-54
# Beyond this the step of a 53-bit uniform shows in the probabilities: no loss is claimed then.
_MOST_LOSS = 25.0


class PrivUnit(Mechanism):
    """Send V / mean, V from the cap around the client's direction with probability p.

    Bhowmick et al. 2018, "Protection against reconstruction and its applications in private
    federated learning"; for unit vectors and the best cap no unbiased epsilon-LDP mechanism errs
    less (Asi, Feldman & Talwar 2022, "Optimal algorithms for mean estimation under local
    differential privacy"), whose PrivUnitG is the "gaussian" variant. A vector inside the ball is
    first replaced by radius x/||x|| or its opposite, so that its mean is kept. Unbiased, with error
    radius^2 E||V||^2 / mean^2 - ||x||^2.

    The density of V is p/q in the cap and (1 - p)/(1 - q) outside, times a law without direction,
    so the loss is log(p/(1 - p)) - log(q/(1 - q)) for any two directions whose caps differ. That is
    the loss of exact arithmetic. The sampler inverts 53-bit uniforms, so heights come in steps of
    2^-53 of a side's mass, and all coordinates are rounded to doubles. Above 25 no loss is claimed.

    Fields:
        radius: of the l2 ball, > 0.
        variant: "exact", V uniform on the sphere, or "gaussian", V normal: a little more error,
            which vanishes as the dimension grows. One dimension is randomized response in both.
        precision: "double", or "single", which halves the bits; reports are rounded to it after
            they are made, so no more is learned from them.

    Example:
        >>> PrivUnit(epsilon_local=1.0, dimension=10, radius=1.0).mse(np.eye(10)[:1]).round(4)
        array([59.7326])
    """

    kind: ClassVar[str] = "privunit"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Bhowmick et al. 2018; Asi, Feldman & Talwar 2022"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 2.0, "dimension": 2, "radius": 1.0},
        {"epsilon_local": 6.0, "dimension": 5, "radius": 2.0},
        {"epsilon_local": 2.0, "dimension": 3, "radius": 1.0, "variant": "gaussian"},
        {"epsilon_local": 4.0, "dimension": 70, "radius": 1.0},
        {"epsilon_local": 4.0, "dimension": 3, "radius": 1.0, "precision": "single"},
    )

    radius: Positive
    variant: Variant = "exact"
    precision: Literal["double", "single"] = "double"

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @property
    def cap(self) -> Cap:
        """The cap with the least error."""
        return best_cap(self.variant, self.need_dimension(), self.need_epsilon())

    @property
    def scale(self) -> float:
        """What V is multiplied by, so that its mean has the length of the radius."""
        return self.radius / self.cap.mean

    @cached_property
    def wire(self) -> Vectors:
        """One message of numbers."""
        cap = self.cap
        longest = 1.0 if cap.variant == "exact" else math.sqrt(cap.dimension) + _TAIL
        width: Literal[32, 64] = 32 if self.precision == "single" else 64
        return Vectors(cap.dimension, self.scale * longest, width)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw the height along the client's direction, then the rest at right angles to it."""
        cap = self.cap
        draw = stream.uniform("cap", 3)
        place = np.minimum(draw[:, 2] + _HALF_STEP, 1.0 - 2.0**-53)
        height, rest = cap.heights(draw[:, 1] < cap.probability, place)
        values = np.ascontiguousarray(values)
        length = np.sqrt(dots(values, values))
        # Of a shorter vector the opposite is meant, with probability 1/2 - length/(2 radius).
        flipped = draw[:, 0] < 0.5 - 0.5 * length / self.radius
        height = self.scale * np.where(flipped, -height, height)
        out = self._leaned(values, length, height, self.scale * rest, stream)
        sent = out.astype(np.float32) if self.precision == "single" else out
        return Messages(sent[:, None, :])

    def _leaned(
        self, values: Floats, length: Floats, height: Floats, across: Floats, stream: ClientStream
    ) -> Floats:
        """Return height unit + across what is at right angles to it, a draw of its own."""
        exact, d = self.cap.variant == "exact", values.shape[1]
        if d >= _WIDE:
            key = stream.key("direction")
            return kernels.leaned(key, stream.ids, values, length, _SHORTEST, height, across, exact)
        normal, unit = stream.normal("direction", d), _directions(values, length)
        normal -= dots(normal, unit)[:, None] * unit
        if exact:
            across = across / np.sqrt(np.maximum(dots(normal, normal), 1e-300))
        normal *= across[:, None]
        unit *= height[:, None]
        normal += unit
        return normal

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the reports."""
        return self.wire.mean(counts)

    def event(self) -> LocalReport:
        """Return the loss of the cap, rounded up; it never exceeds `epsilon_local`."""
        epsilon, loss = self.need_epsilon(), self.cap.loss
        stated = min(epsilon, loss + 2.0 * SLACK * max(1.0, loss))
        return LocalReport(stated if epsilon <= _MOST_LOSS else math.inf)

    def randomizer(self) -> str:
        """Name the report's law: a density of two values, the larger one in a cap of this mass."""
        return with_parameter("privunit", self.cap.mass)

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self.worst_mse() - (values * values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the largest error, at 0; on the sphere it is less by radius^2."""
        return self.cap.second * self.scale**2


def _directions(values: Floats, length: Floats) -> Floats:
    """Return unit vectors; a vector without a direction gets the first axis."""
    short = length < _SHORTEST
    unit = values / np.where(short, 1.0, length)[:, None]
    unit[short] = 0.0
    unit[short, 0] = 1.0
    return unit
