"""Synthetic categories."""

from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.random import Ids, Stream

Floats = NDArray[np.float64]


class Categorical(Dataset):
    """One category per client, a whole number from 0 to k - 1, drawn independently.

    Fields:
        categories: how many there are, k; may be left out where `frequencies` are given.
        exponent: of Zipf's law: category i has a share proportional to 1 / (i + 1)^exponent. 0 is
            uniform; 1 by default.
        frequencies: the shares of the categories instead, one each; only their ratios count.

    Example:
        >>> data = Categorical(frequencies=[0.7, 0.0, 0.3])
        >>> drawn = data.values(np.arange(1000, dtype=np.uint32), Stream(1))[:, 0]
        >>> sorted(set(drawn.tolist()))
        [0.0, 2.0]
    """

    kind: ClassVar[str] = "categorical"
    categories: Annotated[int, Field(ge=2, le=10_000_000)] | None = None
    exponent: Annotated[float, Field(ge=0, le=100)] | None = None
    frequencies: list[Annotated[float, Field(ge=0, lt=float("inf"))]] | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Categorical":
        if self.frequencies is None:
            if self.categories is None:
                raise ValueError("give categories, or frequencies with one share for each")
            return self
        if self.exponent is not None:
            raise ValueError(f"exponent is {self.exponent:g}; leave it out with frequencies")
        count = len(self.frequencies)
        if count < 2 or self.categories not in (None, count):
            wanted = self.categories or "at least 2"
            raise ValueError(f"frequencies has {count} numbers for {wanted} categories")
        if not 0.0 < sum(self.frequencies) < float("inf"):
            raise ValueError("frequencies add up to 0 or overflow; at least one must be positive")
        return self

    def width(self) -> int:
        """Return 1: a category is one number."""
        return 1

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Draw the clients' categories."""
        u = stream.clients(ids).uniform("value")
        return np.searchsorted(self.ends(), u, side="right").astype(np.float64)

    @property
    def shares(self) -> Floats:
        """The probability of each category."""
        if self.frequencies is not None:
            weights = np.array(self.frequencies)
        else:
            exponent = 1.0 if self.exponent is None else self.exponent
            weights = np.arange(1, (self.categories or 0) + 1, dtype=np.float64) ** -exponent
        return np.asarray(weights / weights.sum())

    def ends(self) -> Floats:
        """Where each category's part of [0, 1) ends."""
        # Kept outside the model, whose comparison takes no arrays.
        return _ends(self.model_dump_json())


@lru_cache(maxsize=4)
def _ends(document: str) -> Floats:
    shares = Categorical.model_validate_json(document).shares
    ends = np.cumsum(shares)
    # From the last category that occurs on, so that rounding never draws one that does not.
    ends[np.flatnonzero(shares)[-1] :] = 1.0
    ends.flags.writeable = False
    return ends
