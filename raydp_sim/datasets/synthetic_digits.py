"""A stand-in for MNIST that needs no files: noisy, shifted copies of ten prototypes."""

from functools import cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.datasets.pooled import Pool, PooledData

_PROTOTYPES, _TRAIN, _TEST = 12345, 1, 2  # seeds
_BUMPS = 3
_NOISE = 0.25
_BLOCK = 1 << 22  # doubles that are drawn together


class SyntheticDigits(PooledData):
    """Images of random blobs, one prototype per class, shifted by a pixel, with noise.

    The same samples whatever the scenario's seed, which only deals them. Harder for a linear model
    than MNIST.

    Fields:
        n: samples for training.
        side: pixels across; 28 is MNIST's, 8 makes runs fast.
        classes: how many there are, each equally often.
        test: samples for the test.

    Example:
        >>> pool = SyntheticDigits(n=60000, side=8).train()
        >>> print(f"{pool.features.mean():.6f} {pool.features.std():.6f}")
        0.286173 0.298739
        >>> np.bincount(pool.labels).tolist() == [6000] * 10
        True
    """

    kind: ClassVar[str] = "synthetic-digits"
    n: Annotated[int, Field(ge=1, le=10**7)] = 60_000
    side: Annotated[int, Field(ge=4, le=64)] = 8
    classes: Annotated[int, Field(ge=2, le=256)] = 10
    test: Annotated[int, Field(ge=1, le=10**7)] = 10_000

    def train(self) -> Pool:
        """Make the samples for training."""
        return _drawn(self.n, self.side, self.classes, _TRAIN)

    def tested(self) -> Pool:
        """Make the samples for the test."""
        return _drawn(self.test, self.side, self.classes, _TEST)

    def labels(self) -> int:
        """Return how many classes there are."""
        return self.classes

    def described(self) -> str:
        """Say that they are made."""
        return f"made up, {self.side} x {self.side} pixels"


def prototypes(side: int, classes: int) -> NDArray[np.float64]:
    """Return one image per class, each a sum of Gaussian bumps with maximum 1."""
    draw = np.random.default_rng(_PROTOTYPES)
    y, x = np.mgrid[:side, :side]
    out = np.zeros((classes, side, side))
    for image in out:
        for _ in range(_BUMPS):
            cy, cx = draw.uniform(0, side, 2)
            width = draw.uniform(0.10, 0.20) * side
            image += np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / (2 * width**2))
        image /= image.max()
    return out


def noisy(
    draw: np.random.Generator, images: NDArray[Any], chosen: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return chosen images with noise, clipped to [0, 1]; block by block, to save memory."""
    out = np.empty((len(chosen), *images.shape[1:]), np.float32)
    rows = max(1, _BLOCK // int(np.prod(images.shape[1:])))
    for start in range(0, len(chosen), rows):
        part = slice(start, start + rows)
        x = draw.standard_normal(out[part].shape)
        x *= _NOISE
        x += images[chosen[part]]
        out[part] = np.clip(x, 0.0, 1.0, out=x)
    out.flags.writeable = False
    return out


@cache
def _drawn(n: int, side: int, classes: int, seed: int) -> Pool:
    draw = np.random.default_rng(seed)
    labels = (np.arange(n) % classes)[draw.permutation(n)]
    shifts = draw.integers(-1, 2, (n, 2))
    every = [
        np.roll(prototypes(side, classes), (dy, dx), axis=(1, 2))
        for dy in (-1, 0, 1)
        for dx in (-1, 0, 1)
    ]
    shifted = np.stack(every, axis=1).reshape(classes * 9, side, side)
    chosen = labels * 9 + (shifts[:, 0] + 1) * 3 + shifts[:, 1] + 1
    return Pool(noisy(draw, shifted, chosen), labels)
