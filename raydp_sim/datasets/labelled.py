"""Labelled samples: what clients of a learning task hold, and what everyone may look at."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.errors import InputError
from raydp_sim.registry import Piece

Features = NDArray[np.float32]
Labels = NDArray[np.int64]
BYTE = 1.0 / 255.0
"""By which bytes are scaled."""


class Examples(NamedTuple):
    """Samples ready for a model.

    Attributes:
        features: as float32; bytes are scaled to [0, 1].
        labels: the class of each.
    """

    features: Features
    labels: Labels


@dataclass(frozen=True, eq=False)
class Labelled:
    """The samples of some clients, one row per client, gathered only where they are used.

    All clients of an actor share one pool, so that nothing is copied: what a client holds are
    numbers of samples. Its padding repeats the client's own first sample.

    Attributes:
        pool: features of all samples, in their own type (bytes for images).
        classes: the label of each sample of the pool.
        index: numbers of samples, shape (clients, most samples of any client).
        sizes: how many of them each client really holds.
        test: the clients' own test samples, where they have any.
        validation: their own samples that choices are made by, where they have any.

    Example:
        >>> pool, classes = np.array([[0], [51], [255]], np.uint8), np.array([0, 1, 1])
        >>> held = Labelled(pool, classes, np.array([[0, 2], [1, 1]]), np.array([2, 1]))
        >>> features, labels = held[:1].take(np.array([[1]]))
        >>> features.tolist(), labels.tolist()
        ([[[1.0]]], [[1]])
    """

    pool: NDArray[Any]
    classes: NDArray[Any]
    index: NDArray[np.int64]
    sizes: NDArray[np.int64]
    test: "Labelled | None" = None
    validation: "Labelled | None" = None

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> "Labelled":
        own = (None if each is None else each[rows] for each in (self.test, self.validation))
        return Labelled(self.pool, self.classes, self.index[rows], self.sizes[rows], *own)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise InputError(
            "the data are labelled samples, which only a task that trains a model can use; choose "
            "such a task, or data that are vectors"
        )

    def chosen(self, places: NDArray[Any] | None = None) -> "Chosen":
        """Return the samples at some places of each client, or all of them."""
        found = self.index if places is None else np.take_along_axis(self.index, places, axis=1)
        labels = self.classes.take(found).astype(np.int64, copy=False)
        return Chosen(self.pool, found.astype(np.int64, copy=False), labels)

    @property
    def nbytes(self) -> int:
        """Bytes that these clients add to the pool which all share."""
        own = sum(each.nbytes for each in (self.test, self.validation) if each is not None)
        return self.index.nbytes + self.sizes.nbytes + own

    def with_rows(self, rows: NDArray[np.int64], other: "Labelled") -> "Labelled":
        """Return the samples with some clients' replaced by others of the same pool."""
        ours, theirs = (self.test, self.validation), (other.test, other.validation)
        alike = all((one is None) == (two is None) for one, two in zip(ours, theirs, strict=True))
        if other.pool is not self.pool or not alike:
            raise InputError(
                "population.group_data must be of the data set that population.data is, with other "
                "fields only, and with a personal_test and personal_validation if it has them"
            )
        width = max(self.index.shape[1], other.index.shape[1])
        index, sizes = _widened(self.index, width), self.sizes.copy()
        index[rows], sizes[rows] = _widened(other.index, width), other.sizes
        test, validation = (
            None if one is None or two is None else one.with_rows(rows, two)
            for one, two in zip(ours, theirs, strict=True)
        )
        return replace(self, index=index, sizes=sizes, test=test, validation=validation)

    def take(self, chosen: NDArray[Any]) -> Examples:
        """Return the samples at some places of each client: (clients, places, ...)."""
        found = self.chosen(chosen)
        return Examples(found.features, found.labels)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some samples of some clients; features are gathered only if somebody asks for them.

    Attributes:
        pool: features of all samples, in their own type.
        numbers: of the samples, (clients, samples).
        labels: of these samples.

    Example:
        >>> some = Chosen(np.array([[51], [255]], np.uint8), np.array([[1, 0]]), np.array([[3, 2]]))
        >>> some.features.round(2).ravel().astype(str).tolist()
        ['1.0', '0.2']
    """

    pool: NDArray[Any]
    numbers: NDArray[np.int64]
    labels: Labels

    @cached_property
    def features(self) -> Features:
        """The features as float32; bytes are scaled to [0, 1]."""
        return kernels.gathered(self.pool, self.numbers, BYTE)


def _widened(index: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Return a copy with more columns; they repeat the first."""
    more = np.repeat(index[:, :1], width - index.shape[1], axis=1)
    return np.concatenate([index, more], axis=1)


def examples(pool: NDArray[Any], classes: NDArray[Any], numbers: NDArray[Any]) -> Examples:
    """Gather samples of a pool; bytes become numbers in [0, 1]."""
    features = kernels.gathered(pool, numbers, BYTE)
    return Examples(features, classes.take(numbers).astype(np.int64, copy=False))


def refuse_labels(labels: NDArray[Any], classes: int | None) -> None:
    """Refuse labels that are no classes: a loss would be read from the logits of another sample.

    Args:
        labels: of samples for the test, or for training.
        classes: how many those for training have; None for these themselves.

    Raises:
        InputError: names the first such label.
    """
    kind = "training" if classes is None else "the test"
    if labels.dtype.kind not in "biu":
        raise InputError(f"population.data: labels for {kind} are {labels.dtype}; number classes")
    wrong = labels < 0 if classes is None else (labels < 0) | (labels >= classes)
    if not wrong.any():
        return
    place = int(wrong.argmax())
    there = "" if classes is None else f", and those for training have classes 0 to {classes - 1}"
    raise InputError(
        f"population.data: sample {place} for {kind} has label {labels[place]}; classes are "
        f"numbered from 0{there}: number them anew, or leave the sample out"
    )


class HeldOut(Piece):
    """Samples that no client holds, public by assumption: every actor may read them."""

    @abstractmethod
    def validation(self) -> Examples | None:
        """Return what choices are made by (step sizes, when to stop); None if there is none."""

    @abstractmethod
    def test(self) -> Examples:
        """Return what results are reported on; nothing is ever chosen by it."""
