"""Clients that each hold several vectors."""

import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.random import Ids, Stream

# Doubles that are drawn together, and that one client may hold.
_BLOCK = 1 << 19
_MOST = 1 << 24


class Points(Dataset):
    """Independent normal vectors, so many per client, clipped into a ball if asked to.

    A client holds them one by one, not their mean: shape (points, dimension).

    Fields:
        points: vectors that each client holds.
        dimension: length of a vector.
        mean: one number for all coordinates, or one per coordinate.
        sd: standard deviation of every coordinate.
        clip: radius of the ball that vectors are clipped into; none by default.
        norm: which ball, `linf` (each coordinate is clipped) or `l2` (the vector is scaled down).

    Example:
        >>> Points(points=3, dimension=2).hold(np.arange(5, dtype=np.uint32), Stream(1)).shape
        (5, 3, 2)
    """

    kind: ClassVar[str] = "points"
    points: Annotated[int, Field(ge=1)]
    dimension: Annotated[int, Field(ge=1, le=10_000_000)] = 1
    mean: float | list[float] = 0.0
    sd: Annotated[float, Field(ge=0)] = 1.0
    clip: Annotated[float, Field(gt=0)] | None = None
    norm: Literal["linf", "l2"] = "linf"

    @model_validator(mode="after")
    def _fits(self) -> "Points":
        if isinstance(self.mean, list) and len(self.mean) != self.dimension:
            raise ValueError(f"mean has {len(self.mean)} numbers for dimension {self.dimension}")
        if self.points * self.dimension > _MOST:
            raise ValueError(
                f"{self.points} points of dimension {self.dimension} are more than {_MOST} numbers "
                "per client; lower points or dimension"
            )
        return self

    def shape(self) -> tuple[int, ...]:
        """Return points and dimension."""
        return self.points, self.dimension

    def hold(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Draw the clients' vectors."""
        out = np.empty((len(ids), *self.shape()))
        rows = max(1, _BLOCK // math.prod(self.shape()))
        for start in range(0, len(ids), rows):
            part = slice(start, start + rows)
            drawn = stream.clients(ids[part]).normal("point", math.prod(self.shape()))
            drawn *= self.sd
            out[part] = drawn.reshape(-1, *self.shape()) + np.asarray(self.mean)
            self._clip(out[part])
        return out

    def _clip(self, x: NDArray[np.float64]) -> None:
        if self.clip is None:
            return
        if self.norm == "linf":
            np.clip(x, -self.clip, self.clip, out=x)
            return
        length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
        x *= np.minimum(1.0, self.clip / np.maximum(length, 1e-300))
