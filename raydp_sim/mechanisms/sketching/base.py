"""What all sketches share: a few numbers of a vector, and the sum of what each says by itself."""

import math
from abc import abstractmethod
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Positive
from raydp_sim.mechanisms.sketching.joint import Joint
from raydp_sim.mechanisms.wires.sketches import Expanded, Sketches
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import Ids, Stream


class Sketch(Mechanism):
    """A mechanism without privacy that sends k numbers of d.

    `expanded` turns reports into unbiased vectors, one by one; their mean is the estimate. A reader
    that decodes all reports together errs less where clients are alike (task `sketched-mean`).

    Fields:
        radius: of the l2 ball that vectors lie in, > 0.
        kept: k, numbers that are sent.
    """

    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only", "none"]] = "none"
    radius: Positive
    kept: Annotated[int, Field(ge=1)]

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @property
    @abstractmethod
    def form(self) -> Sketches:
        """The form of a report."""

    @abstractmethod
    def expanded(self, rows: Floats) -> Floats:
        """Return the unbiased vector of every report, (n, d), from its payload."""

    @cached_property
    def wire(self) -> Expanded:
        """Reports of this form, summed as vectors."""
        # What is sent is at most the radius, and grows by d/k at most when it is expanded.
        d = self.need_dimension()
        sums = Vectors(d, self.radius * 2.0 * d / self.need_kept())
        return Expanded(self.form, sums, self.expanded)

    def need_kept(self) -> int:
        """Return k, or refuse more than there is."""
        if self.kept > self.need_dimension():
            raise bad_field(
                "mechanism.kept", self.kept, f"vectors have {self.need_dimension()} numbers"
            )
        return self.kept

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the expanded reports."""
        return self.wire.sums.mean(counts)

    def event(self) -> LocalReport:
        """Return an infinite loss: a sketch hides nothing."""
        return LocalReport(math.inf)

    def need_epsilon(self) -> float:
        """Refuse: there is none."""
        raise InputError(f"'{self.kind}' adds no noise and has no epsilon")


class SeededSketch(Sketch, Joint):
    """A sketch whose rows are drawn by a seed alone, so that all can be decoded together."""

    def opened(self, rows: Floats) -> tuple[Ids, Floats]:
        """Return seeds and numbers as they were sent."""
        seeds, sent, _, _ = self.form.split(rows)
        return seeds[:, 0].astype(np.uint32), sent


def as_sent(values: Floats) -> Floats:
    """Return numbers as they arrive, of 32 bits."""
    return values.astype(np.float32).astype(np.float64)
