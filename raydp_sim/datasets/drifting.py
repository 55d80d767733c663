"""Synthetic categories whose distribution changes from release to release."""

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.random import Ids, Stream

_Shares = list[Annotated[float, Field(ge=0, lt=float("inf"))]]


class Drifting(Dataset):
    """One category per client and sample, drawn independently from shares that drift.

    Sample t of T is drawn from a mixture of two distributions, of which the second's part grows
    from 0 at the first sample to 1 at the last, in equal steps. Tasks that ask for one sample after
    another, such as `analysts`, see the distribution change.

    Fields:
        samples: of each client, one per release.
        first: shares of the categories at the first sample, one each; only their ratios count.
        last: the same at the last sample.

    Example:
        >>> data = Drifting(samples=3, first=[1.0, 0.0], last=[0.0, 1.0])
        >>> data.shares(1).tolist()
        [0.5, 0.5]
    """

    kind: ClassVar[str] = "drifting"
    samples: Annotated[int, Field(ge=1, le=100_000)]
    first: _Shares
    last: _Shares

    @model_validator(mode="after")
    def _fits(self) -> "Drifting":
        if len(self.first) != len(self.last) or len(self.first) < 2:
            raise ValueError(
                f"first has {len(self.first)} shares and last {len(self.last)}; give one for each "
                "category, at least 2"
            )
        for name in ("first", "last"):
            if not 0.0 < sum(getattr(self, name)) < float("inf"):
                raise ValueError(f"{name} adds up to 0 or overflows; one share must be positive")
        return self

    def width(self) -> int:
        """Return the samples of a client."""
        return self.samples

    def shares(self, sample: int) -> NDArray[np.float64]:
        """Return the probability of each category at a sample."""
        before, after = (np.array(ends) / sum(ends) for ends in (self.first, self.last))
        part = sample / max(1, self.samples - 1)
        return np.asarray((1.0 - part) * before + part * after)

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Draw all samples of some clients."""
        uniform = stream.clients(ids).uniform("value", self.samples)
        out = np.empty_like(uniform)
        for sample in range(self.samples):
            share = self.shares(sample)
            ends = np.cumsum(share)
            # From the last category that occurs on, so that rounding draws no other.
            ends[np.flatnonzero(share)[-1] :] = 1.0
            out[:, sample] = np.searchsorted(ends, uniform[:, sample], side="right")
        return out
