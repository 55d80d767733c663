"""The base of data sets whose clients hold labelled samples of one pool."""

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr, field_validator, model_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.datasets.labelled import Examples, HeldOut, Labelled, examples, refuse_labels
from raydp_sim.datasets.own_parts import ROUNDING, Parts, laid_out, parts_of
from raydp_sim.datasets.partitions.base import PARTITIONS, POINTS, Deck, Numbers, Partition
from raydp_sim.datasets.partitions.iid import Iid
from raydp_sim.errors import InputError, bad_field
from raydp_sim.random import Ids, Stream
from raydp_sim.registry import Registry, piece


class Pool(NamedTuple):
    """Samples with their labels.

    Attributes:
        features: in their own type (bytes for images); the first axis counts samples.
        labels: the class of each.
        owners: whose each is by nature, such as its writer; None where nobody's.
    """

    features: NDArray[Any]
    labels: NDArray[Any]
    owners: NDArray[Any] | None = None


class PooledData(Dataset):
    """Labelled samples that a partition deals to the clients.

    Fields:
        points: samples that each client trains on; as many as there are for everyone unless given.
            What is left over is unused.
        partition: who holds which samples.
        overlap: whether clients for whom no samples are left are dealt the whole pool anew, so that
            some share samples with clients dealt before; without it nobody shares any. What is
            guaranteed of a sample then holds for each copy, not for all of them together.
        only: the classes that are dealt; all unless given.
        validation: samples that no client holds, for choosing step sizes and when to stop: a
            fraction of those for training if below 1, else their number.
        personal_test: samples that each client keeps to test its own model with: a fraction of
            its samples if below 1, else their number, beside `points`.
        personal_validation: samples that each client keeps to choose by, a fraction or a number as
            above. With both as numbers, and `points` lowered by this one, clients of the same seed
            keep the samples to test with that they have without it.
        split_seed: decides which samples are held out for validation. The scenario's seed does not,
            so that what was chosen by them holds for every repetition.
    """

    points: Annotated[int, Field(ge=1)] | None = None
    partition: Annotated[Partition, *piece(PARTITIONS)] = Iid()
    overlap: bool = False
    only: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    validation: Annotated[float, Field(ge=0)] = 0.0
    personal_test: Annotated[float, Field(ge=0)] = 0.0
    personal_validation: Annotated[float, Field(ge=0)] = 0.0
    split_seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    _clients: int | None = PrivateAttr(default=None)

    @field_validator("validation", "personal_test", "personal_validation")
    @classmethod
    def _fraction_or_count(cls, given: float) -> float:
        if given >= 1.0 and given != int(given):
            raise ValueError("it must be a fraction below 1, or a whole number of samples")
        return given

    @model_validator(mode="after")
    def _something_left(self) -> "PooledData":
        own = self.personal_validation, self.personal_test
        if max(own) < 1.0 <= sum(own):
            raise ValueError(
                f"personal_validation is {own[0]} and personal_test {own[1]}; as fractions they "
                "must add up to less than 1, so that samples are left to train on"
            )
        return self

    @field_validator("only")
    @classmethod
    def _each_once(cls, given: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if given is not None and (not given or len(set(given)) < len(given)):
            raise ValueError("name at least one class, and each once")
        return given

    # What a kind says.

    @abstractmethod
    def train(self) -> Pool:
        """Return the samples for training, read or made once in a process."""

    @abstractmethod
    def tested(self) -> Pool:
        """Return the samples that results are reported on, read or made once in a process."""

    @abstractmethod
    def described(self) -> str:
        """Say where the samples come from, and how far that was checked."""

    # What follows.

    def among(self, clients: int) -> "PooledData":
        """Return the data set as it is dealt to so many clients."""
        return self._again(clients)

    def shape(self) -> tuple[int, ...]:
        """Return the points of the client with fewest, and the shape of a sample."""
        return int(self._parts(self._sizes).train.min()), *self.train().features.shape[1:]

    def width(self) -> int:
        """Return the length of the last axis of a sample."""
        return self.shape()[-1]

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Refuse: samples are no vectors."""
        raise InputError("the data are labelled samples; only a task that trains a model uses them")

    def hold(self, ids: Ids, stream: Stream) -> Labelled:
        """Return the samples of some clients, as numbers into the pool that all share.

        Every actor deals all cards of the deals its clients are in, so that nobody needs to ask.
        """
        pool, sizes, at_once = self.train(), self._sizes, len(self._sizes)
        widest = [int(part.max()) for part in self._parts(sizes)]
        index = [np.empty((len(ids), width), np.int64) for width in widest]
        count = [np.empty(len(ids), np.int64) for _ in widest]
        deal, place = np.divmod(np.asarray(ids, np.int64), at_once)
        for each in np.unique(deal):
            rows = np.flatnonzero(deal == each)
            hands = self.partition.deal(self._deck, sizes, stream.at("partition", int(each)))
            size = hands.sizes[place[rows]]
            first = (hands.sizes.cumsum() - hands.sizes)[place[rows]]
            for part, width, column, own in zip(
                self._parts(size), widest, index, count, strict=True
            ):
                own[rows] = part
                if width:
                    column[rows] = laid_out(hands.samples, first, part, width)
                first = first + part
        there = self._split.dealt
        whole, validation, test = (
            Labelled(pool.features, pool.labels, there[column], own) if width else None
            for width, column, own in zip(widest, index, count, strict=True)
        )
        assert whole is not None  # everyone has something to train on
        return replace(whole, test=test, validation=validation)

    @property
    def shared(self) -> bool:
        """Whether some sample is dealt to more than one client."""
        return self._clients is not None and self._clients > len(self._sizes)

    def labels(self) -> int:
        """Return how many classes there are.

        Raises:
            InputError: labels of samples for training are no classes.
        """
        labels = self.train().labels
        refuse_labels(labels, None)
        return int(labels.max()) + 1

    def held_out(self) -> HeldOut:
        """Return the samples for validation, if any, and for the test."""
        return HeldOutSamples(of=self)

    def memory(self, clients: int, processes: int) -> int:
        """Return the bytes of the pool in each process and of every client's numbers of samples."""
        pool, widest = self.train(), int(self._sizes.max())
        kinds = 2 + bool(self.personal_validation)
        own = clients * 8 * (widest + kinds)
        return processes * (pool.features.nbytes + pool.labels.nbytes) + own

    def said(self) -> str:
        """Say where the samples come from and how they are divided."""
        sizes, split = self._sizes, self._split
        own = self._parts(sizes)
        parts = [
            self.described(),
            f"{len(split.dealt):,} samples of {self.labels()} classes for {self._clients:,} "
            f"clients, {_range(own.train)} each ({self.partition.kind})",
        ]
        if self.personal_validation:
            parts.append(f"{_range(own.validation)} more of their own to choose by")
        if self.personal_test:
            parts.append(f"{_range(own.test)} more of their own to test with")
        deals = -(-(self._clients or 1) // len(sizes))
        if deals > 1:
            parts.append(
                f"dealt {deals:,} times: clients share samples, and guarantees are of copies"
            )
        elif unused := len(split.dealt) - int(sizes.sum()):
            parts.append(f"{unused:,} unused")
        if len(split.validation):
            parts.append(f"{len(split.validation):,} held out for validation")
        return "; ".join([*parts, f"{len(self.tested().labels):,} for the test"])

    def validation_samples(self) -> Examples | None:
        """Return the samples held out for validation; None if there are none."""
        pool, numbers = self.train(), self._split.validation
        return examples(pool.features, pool.labels, numbers) if len(numbers) else None

    def test_samples(self) -> Examples:
        """Return the samples that results are reported on.

        Raises:
            InputError: one has a label beyond the largest of the samples for training.
        """
        pool = self.tested()
        refuse_labels(pool.labels, self.labels())
        return examples(pool.features, pool.labels, np.arange(len(pool.labels)))

    def __eq__(self, other: object) -> bool:
        """Compare what was written; what was worked out from it are arrays, and follows."""
        if type(other) is not type(self):
            return NotImplemented
        return self._clients == other._clients and all(
            getattr(self, name) == getattr(other, name) for name in type(self).model_fields
        )

    __hash__ = Dataset.__hash__

    def _again(self, clients: int | None, **changed: Any) -> "PooledData":
        """Return a copy that remembers nothing of what was worked out for this one."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        copy = type(self).model_construct(**{**fields, **changed})
        copy._clients = clients
        return copy

    @cached_property
    def _split(self) -> "_Split":
        labels = self.train().labels
        total = len(labels)
        count = int(self.validation)
        if self.validation < 1.0:
            count = int(self.validation * total + ROUNDING)
        if count >= total:
            remedy = f"there are {total:,} samples for training; lower it"
            raise bad_field("population.data.validation", self.validation, remedy)
        mixed = Stream(self.split_seed).at("validation").generator().permutation(total)
        dealt = np.sort(mixed[count:])
        if self.only is not None:
            if max(self.only) >= self.labels():
                remedy = f"classes are numbered from 0 to {self.labels() - 1}"
                raise bad_field("population.data.only", list(self.only), remedy)
            dealt = dealt[np.isin(labels[dealt], self.only)]
        return _Split(dealt, np.sort(mixed[:count]))

    @cached_property
    def _deck(self) -> Deck:
        pool, dealt = self.train(), self._split.dealt
        owners = None if pool.owners is None else pool.owners[dealt]
        return Deck(pool.labels[dealt], self.labels(), owners)

    @cached_property
    def _sizes(self) -> Numbers:
        """How many samples each client of one deal gets, those of its own test included."""
        if self._clients is None:
            raise InputError("labelled data are dealt to clients; say `among` how many")
        each = None if self.points is None else self._with_own(self.points)
        at_once = self._clients
        if self.overlap:
            if each is None:
                raise bad_field(POINTS, None, "with population.data.overlap it must be given")
            at_once = min(at_once, max(1, self.partition.reach(self._deck, each)))
        sizes = self.partition.sizes(self._deck, at_once, each)
        parts = self._parts(sizes)
        if (parts.train < 1).any():
            remedy = f"a client with {int(sizes.min())} samples has none left to train on; lower it"
            names = "personal_test", "personal_validation"
            name, other = names if parts.test.min() >= parts.validation.min() else names[::-1]
            if beside := getattr(self, other):
                remedy = f"with {other} {beside:g} {remedy}, or that"
            raise bad_field(f"population.data.{name}", getattr(self, name), remedy)
        return sizes

    def _parts(self, sizes: Numbers) -> Parts:
        """Return how many of so many samples a client uses for what."""
        return parts_of(sizes, self.personal_validation, self.personal_test)

    def _with_own(self, points: int) -> int:
        """Return how many samples a client needs to train on so many."""
        size = points + int(self.personal_validation) + int(self.personal_test)
        while int(self._parts(np.array([size + 1])).train[0]) <= points:
            size += 1
        return size


class _Split(NamedTuple):
    """Numbers of the samples that are dealt, and of those held out for validation."""

    dealt: Numbers
    validation: Numbers


def _range(numbers: Numbers) -> str:
    least, most = int(numbers.min()), int(numbers.max())
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


# The base is only compared with, so it may be abstract.
_POOLED = Registry("raydp_sim.datasets", PooledData)  # type: ignore[type-abstract]


class HeldOutSamples(HeldOut):
    """The validation and test samples of a data set, and nothing else of it.

    Fields:
        of: the data set.
    """

    kind: ClassVar[str] = "held-out"
    of: Annotated[PooledData, *piece(_POOLED)]

    def validation(self) -> Examples | None:
        """Return what choices are made by."""
        return self._validation

    def test(self) -> Examples:
        """Return what results are reported on."""
        return self._test

    @cached_property
    def _validation(self) -> Examples | None:
        return self.of.validation_samples()

    @cached_property
    def _test(self) -> Examples:
        return self.of.test_samples()
