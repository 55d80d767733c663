"""A stand-in for FEMNIST that needs no files: characters in the hands of many writers."""

from functools import cache
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.datasets.partitions.base import PARTITIONS, Partition
from raydp_sim.datasets.partitions.natural import Natural
from raydp_sim.datasets.pooled import Pool, PooledData
from raydp_sim.datasets.synthetic_digits import noisy, prototypes
from raydp_sim.registry import piece

_STYLES, _TRAIN, _TEST = 54321, 1, 2  # seeds


class SyntheticWriters(PooledData):
    """Images of random blobs, one prototype per class, each in its writer's style, with noise.

    A writer's style is affine: a gain drawn from U(0.7, 1.3), an offset from N(0, 0.1^2) and a
    shift by up to a pixel, the same in all images of the writer. Which classes a writer writes is
    drawn uniformly. The test has other images of the same writers.

    Fields:
        writers: how many there are.
        samples: images for training of each.
        side: pixels across.
        classes: how many there are: letters of two cases and digits.
        test: images for the test of each writer.
        partition: who holds which samples; by writer unless given.
    """

    kind: ClassVar[str] = "synthetic-writers"
    writers: Annotated[int, Field(ge=1, le=100_000)] = 198
    samples: Annotated[int, Field(ge=1, le=10**6)] = 120
    side: Annotated[int, Field(ge=4, le=64)] = 8
    classes: Annotated[int, Field(ge=2, le=256)] = 62
    test: Annotated[int, Field(ge=1, le=10**6)] = 20
    partition: Annotated[Partition, *piece(PARTITIONS)] = Natural()

    def train(self) -> Pool:
        """Make the samples for training."""
        return _written(self.writers, self.samples, self.side, self.classes, _TRAIN)

    def tested(self) -> Pool:
        """Make the samples for the test."""
        return _written(self.writers, self.test, self.side, self.classes, _TEST)

    def labels(self) -> int:
        """Return how many classes there are."""
        return self.classes

    def described(self) -> str:
        """Say that they are made."""
        return f"made up, {self.side} x {self.side} pixels, {self.writers:,} writers"


@cache
def _written(writers: int, samples: int, side: int, classes: int, seed: int) -> Pool:
    style = np.random.default_rng(_STYLES)
    gain = style.uniform(0.7, 1.3, writers)
    offset = 0.1 * style.standard_normal(writers)
    shift = style.integers(-1, 2, (writers, 2))
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, classes, writers * samples)
    base, images = prototypes(side, classes), np.empty((writers * samples, side, side), np.float32)
    for writer in range(writers):
        own = np.roll(base, shift[writer], axis=(1, 2)) * gain[writer] + offset[writer]
        mine = slice(writer * samples, (writer + 1) * samples)
        images[mine] = noisy(draw, own, labels[mine])
    images.flags.writeable = False
    return Pool(images, labels, np.repeat(np.arange(writers), samples))
