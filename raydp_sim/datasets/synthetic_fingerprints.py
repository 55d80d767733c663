"""A stand-in for Wi-Fi fingerprints of a building: sparse signals and a coordinate."""

from functools import cache
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.datasets.base import Dataset
from raydp_sim.errors import bad_field
from raydp_sim.random import Ids, Stream

_SEED = 12345
_NOISE = 0.1
_SHARES = 0.05, 0.10  # of the signals of a row that are not zero


class SyntheticFingerprints(Dataset):
    """Rows of non-negative features, of which 5 to 10 % are not zero, and y = <x, w> + noise.

    It stands in for UJIIndoorLoc, which is not shipped. A client holds `points` rows, the target in
    the last column; shape (points, features + 1). The same rows whatever the scenario's seed.

    Fields:
        points: rows of each client.
        n: rows in all.
        features: columns before the target.
        by_target: whether rows are dealt in blocks of similar targets (not IID), or shuffled.

    Example:
        >>> data = SyntheticFingerprints(points=5, n=20, features=3)
        >>> data.hold(np.arange(4, dtype=np.uint32), Stream(1)).shape
        (4, 5, 4)
    """

    kind: ClassVar[str] = "synthetic-fingerprints"
    points: Annotated[int, Field(ge=1)]
    n: Annotated[int, Field(ge=1, le=10**6)] = 10_000
    features: Annotated[int, Field(ge=1, le=4096)] = 512
    by_target: bool = False

    def shape(self) -> tuple[int, ...]:
        """Return rows and columns of a client."""
        return self.points, self.features + 1

    def rows(self) -> int | None:
        """Return how many clients there are rows for."""
        return self.n // self.points

    def hold(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Return the rows of some clients."""
        if len(ids) and (int(ids.max()) + 1) * self.points > self.n:
            raise bad_field(
                "population.data.points", self.points, f"{self.n} rows are too few; lower it"
            )
        pool = _pool(self.n, self.features)
        if self.by_target:
            pool = pool[np.argsort(pool[:, -1], kind="stable")]
        return np.asarray(pool[ids[:, None] * np.int64(self.points) + np.arange(self.points)])


@cache
def _pool(n: int, features: int) -> NDArray[np.float64]:
    draw = np.random.default_rng(_SEED)
    weights = draw.standard_normal(features)
    share = draw.uniform(*_SHARES, (n, 1))
    x = draw.uniform(0.0, 1.0, (n, features)) * (draw.uniform(size=(n, features)) < share)
    y = x @ weights + _NOISE * draw.standard_normal(n)
    out = np.concatenate([x, y[:, None]], axis=1)
    out.flags.writeable = False
    return out
