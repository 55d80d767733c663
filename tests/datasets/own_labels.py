"""A data set of one's own, whose labels the scenario says."""

from typing import ClassVar

import numpy as np

from raydp_sim.datasets.pooled import Pool, PooledData


class OwnLabels(PooledData):
    """Forty samples for training and forty for the test, with these labels over and over.

    Fields:
        train_labels: of samples for training.
        test_labels: of samples for the test.
    """

    kind: ClassVar[str] = "own-labels"
    train_labels: tuple[float, ...] = (0, 1, 2)
    test_labels: tuple[float, ...] = (0, 1, 2)
    of: str = "int64"

    def train(self) -> Pool:
        return self._pool(self.train_labels)

    def tested(self) -> Pool:
        return self._pool(self.test_labels)

    def described(self) -> str:
        return "made up"

    def _pool(self, labels: tuple[float, ...]) -> Pool:
        return Pool(np.zeros((40, 4), np.uint8), np.resize(labels, 40).astype(self.of))
