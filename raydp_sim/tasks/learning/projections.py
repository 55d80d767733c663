"""Euclidean projections onto the convex set that parameters are kept in."""

import math
from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.registry import Piece, Registry

Floats = NDArray[np.float64]
Radius = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Projection(Piece):
    """A closed convex set around 0."""

    @abstractmethod
    def nearest(self, theta: Floats) -> Floats:
        """Return the point of the set that is nearest in l2."""

    @abstractmethod
    def diameter(self, dimension: int) -> float:
        """Return the largest l2 distance of two of its points."""


class Everywhere(Projection):
    """All parameters are allowed."""

    kind: ClassVar[str] = "none"

    def nearest(self, theta: Floats) -> Floats:
        """Return the parameters as they are."""
        return theta

    def diameter(self, dimension: int) -> float:
        """Return infinity."""
        return math.inf


class Ball(Projection):
    """The l2 ball.

    Fields:
        radius: of the ball.

    Example:
        >>> Ball(radius=2.5).nearest(np.array([3.0, 4.0])).tolist()
        [1.5, 2.0]
    """

    kind: ClassVar[str] = "l2-ball"
    radius: Radius

    def nearest(self, theta: Floats) -> Floats:
        """Scale down what is outside."""
        norm = float(np.sqrt(np.vecdot(theta, theta)))
        return theta if norm <= self.radius else theta * (self.radius / norm)

    def diameter(self, dimension: int) -> float:
        """Return twice the radius."""
        return 2.0 * self.radius


class Box(Projection):
    """The l_inf ball.

    Fields:
        radius: of the box: every parameter lies in [-radius, radius].

    Example:
        >>> Box(radius=1.0).nearest(np.array([3.0, -0.5])).tolist()
        [1.0, -0.5]
    """

    kind: ClassVar[str] = "box"
    radius: Radius

    def nearest(self, theta: Floats) -> Floats:
        """Clamp every parameter."""
        return np.clip(theta, -self.radius, self.radius)

    def diameter(self, dimension: int) -> float:
        """Return 2 radius sqrt(d)."""
        return 2.0 * self.radius * math.sqrt(dimension)


class Cross(Projection):
    """The l1 ball, by sorting and one threshold (Duchi, Shalev-Shwartz, Singer & Chandra 2008).

    Fields:
        radius: of the ball.

    Example:
        >>> Cross(radius=1.0).nearest(np.array([1.0, -0.5, 0.1])).tolist()
        [0.75, -0.25, 0.0]
    """

    kind: ClassVar[str] = "l1-ball"
    radius: Radius

    def nearest(self, theta: Floats) -> Floats:
        """Subtract from every size what makes them add up to the radius."""
        sizes = np.abs(theta)
        if sizes.sum() <= self.radius:
            return theta
        falling = np.sort(sizes)[::-1]
        over = (np.cumsum(falling) - self.radius) / np.arange(1, len(falling) + 1)
        threshold = over[np.flatnonzero(falling > over)[-1]]
        return np.asarray(np.sign(theta) * np.maximum(sizes - threshold, 0.0))

    def diameter(self, dimension: int) -> float:
        """Return twice the radius."""
        return 2.0 * self.radius


# The base is only compared with, so it may be abstract.
PROJECTIONS = Registry("raydp_sim.tasks.learning", Projection)  # type: ignore[type-abstract]
