"""Synthetic vectors around a mean."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.random import Ids, Stream


class Gaussian(Dataset):
    """Independent normal vectors, clipped into a ball if asked to.

    Fields:
        dimension: length of a vector.
        mean: one number for all coordinates, or one per coordinate.
        sd: standard deviation of every coordinate.
        clip: radius of the ball that vectors are clipped into; none by default.
        norm: which ball, `linf` (each coordinate is clipped) or `l2` (the vector is scaled down).

    Example:
        >>> Gaussian(dimension=2, clip=1.0).values(np.arange(5, dtype=np.uint32), Stream(1)).shape
        (5, 2)
    """

    kind: ClassVar[str] = "gaussian"
    dimension: Annotated[int, Field(ge=1, le=10_000_000)]
    mean: float | list[float] = 0.0
    sd: Annotated[float, Field(ge=0)] = 1.0
    clip: Annotated[float, Field(gt=0)] | None = None
    norm: Literal["linf", "l2"] = "linf"

    @model_validator(mode="after")
    def _fits(self) -> "Gaussian":
        if isinstance(self.mean, list) and len(self.mean) != self.dimension:
            raise ValueError(f"mean has {len(self.mean)} numbers for dimension {self.dimension}")
        return self

    def width(self) -> int:
        """Return the dimension."""
        return self.dimension

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Draw the clients' vectors."""
        x = stream.clients(ids).normal("value", self.dimension)
        x *= self.sd
        x += np.asarray(self.mean)
        if self.clip is None:
            return x
        if self.norm == "linf":
            return np.clip(x, -self.clip, self.clip, out=x)
        length = np.sqrt((x * x).sum(axis=1))
        x *= np.minimum(1.0, self.clip / np.maximum(length, 1e-300))[:, None]
        return x
