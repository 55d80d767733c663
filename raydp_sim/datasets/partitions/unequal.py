"""Clients that hold unequal numbers of samples."""

from typing import Annotated, ClassVar

import numpy as np
import scipy
from pydantic import Field, model_validator

from raydp_sim.datasets.partitions.base import (
    CLIENTS,
    PARTITIONS,
    POINTS,
    Deck,
    Hands,
    Numbers,
    Partition,
    too_many,
)
from raydp_sim.datasets.partitions.iid import Iid
from raydp_sim.errors import bad_field
from raydp_sim.random import Stream
from raydp_sim.registry import piece

_FIELD = "population.data.partition"


class Unequal(Partition):
    """Some clients hold many samples, others few; the seed decides who.

    The numbers are the quantiles of a log-normal law, or given. They are the same for every seed,
    so what the client with fewest is charged is known before a run. `points` is their mean.

    Fields:
        sigma: standard deviation of the logarithm of a client's number of samples.
        least: samples that the client with fewest has.
        numbers: the numbers themselves, one per client, instead of a law.
        labels: which samples a client of a given size gets: `iid` or `dirichlet`.
    """

    kind: ClassVar[str] = "unequal"
    sigma: Annotated[float, Field(gt=0, le=10)] | None = None
    least: Annotated[int, Field(ge=1)] = 1
    numbers: tuple[Annotated[int, Field(ge=1)], ...] | None = None
    labels: Annotated[Partition, *piece(PARTITIONS)] = Iid()

    @model_validator(mode="after")
    def _one_of_two(self) -> "Unequal":
        if (self.sigma is None) == (self.numbers is None):
            raise ValueError("give sigma, or numbers, and not both")
        if type(self.labels).sizes is not Partition.sizes:
            raise ValueError(f"labels is {self.labels.kind}, which sets sizes itself; use iid")
        return self

    def sizes(self, deck: Deck, clients: int, each: int | None) -> Numbers:
        """Return the numbers, from the smallest up."""
        total = len(deck.labels)
        if self.numbers is not None:
            if each is not None:
                remedy = f"{_FIELD}.numbers says how many each has; leave one of them out"
                raise bad_field(POINTS, each, remedy)
            sizes = np.sort(np.array(self.numbers))
            if len(sizes) != clients:
                remedy = f"population.clients is {clients:,}; give one for each"
                raise bad_field(f"{_FIELD}.numbers", f"{len(sizes):,} numbers", remedy)
            if sizes.sum() > total:
                remedy = f"there are {total:,} samples; lower them"
                raise bad_field(f"{_FIELD}.numbers", f"{sizes.sum():,} in all", remedy)
            return sizes
        if self.least * clients > total:
            remedy = f"there are {total:,} samples, {self.least} at least for each; lower it"
            raise bad_field(CLIENTS, clients, remedy)
        if each is not None and each * clients > total:
            raise too_many(each, clients, total // clients, f"there are {total:,} samples")
        if each is not None and each < self.least:
            remedy = f"{_FIELD}.least is {self.least}; raise it"
            raise bad_field(POINTS, each, remedy)
        return self._quantiles(clients, total if each is None else each * clients)

    def deal(self, deck: Deck, sizes: Numbers, stream: Stream) -> Hands:
        """Draw who has how many, then deal by label."""
        mixed = stream.at("sizes").generator().permutation(sizes)
        return self.labels.deal(deck, mixed, stream.at("of"))

    def _quantiles(self, clients: int, total: int) -> Numbers:
        """Return whole numbers in proportion to the law above `least`, that do not exceed a sum."""
        assert self.sigma is not None
        weights = np.exp(self.sigma * scipy.special.ndtri((np.arange(clients) + 0.5) / clients))
        weights = np.maximum(weights * (total / weights.sum()), self.least)
        # Raising the small ones takes from the others.
        spare = weights - self.least
        scale = (total - self.least * clients) / max(spare.sum(), 1e-300)
        return np.asarray(self.least + np.floor(spare * scale + 1e-9), np.int64)
