"""Clients that each hold several samples of one distribution."""

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.random import Ids, Stream

# Doubles of samples that are drawn together.
_BLOCK = 1 << 20


class Samples(Dataset):
    """Independent normal samples around a common mean, so many per client; its value is their mean.

    Without `clip` the mean of a client's samples is normal itself and is drawn directly, so any
    number of samples costs the same. With `clip` the samples are drawn and clipped one by one.

    Fields:
        samples: how many each client holds.
        dimension: length of a sample.
        mean: one number for all coordinates, or one per coordinate.
        sd: standard deviation of every coordinate of a sample; also its sub-Gaussian scale.
        clip: each coordinate of a sample is clipped to [-clip, clip]; not at all by default.

    Example:
        >>> data = Samples(samples=100, mean=3.0)
        >>> means = data.values(np.arange(1000, dtype=np.uint32), Stream(1))
        >>> 0.08 < float(means.std()) < 0.12
        True
    """

    kind: ClassVar[str] = "samples"
    samples: Annotated[int, Field(ge=1, le=10**9)]
    dimension: Annotated[int, Field(ge=1, le=10_000_000)] = 1
    mean: float | list[float] = 0.0
    sd: Annotated[float, Field(ge=0)] = 1.0
    clip: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Samples":
        if isinstance(self.mean, list) and len(self.mean) != self.dimension:
            raise ValueError(f"mean has {len(self.mean)} numbers for dimension {self.dimension}")
        if self.clip is not None and self.samples * self.dimension > _BLOCK:
            raise ValueError(
                f"clip needs every sample drawn, and {self.samples} of dimension {self.dimension} "
                f"are more than {_BLOCK} numbers per client; leave it out or lower samples"
            )
        return self

    def width(self) -> int:
        """Return the dimension."""
        return self.dimension

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Return the mean of each client's samples."""
        if self.clip is None:
            x = stream.clients(ids).normal("mean", self.dimension)
            x *= self.sd / np.sqrt(self.samples)
            x += np.asarray(self.mean)
            return x
        out = np.empty((len(ids), self.dimension))
        rows = max(1, _BLOCK // (self.samples * self.dimension))
        for first in range(0, len(ids), rows):
            part = slice(first, first + rows)
            drawn = stream.clients(ids[part]).normal("sample", self.dimension * self.samples)
            each = drawn.reshape(-1, self.dimension, self.samples)
            each *= self.sd
            each += np.broadcast_to(self.mean, (self.dimension,))[:, None]
            # Along the last axis, so that the order of summation is the same in any company.
            out[part] = np.clip(each, -self.clip, self.clip, out=each).mean(axis=2)
        return out
