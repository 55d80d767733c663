"""A sketch whose k numbers are randomized: few numbers, and a guarantee."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.l2 import L2Vector
from raydp_sim.mechanisms.privunit import PrivUnit
from raydp_sim.mechanisms.sketching import projection
from raydp_sim.mechanisms.sketching.joint import Basis, Joint
from raydp_sim.mechanisms.wires.sketches import Expanded, Seeded
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Ids, Stream


class PrivateSketch(Mechanism, Joint):
    """Keep k numbers y = G x of a vector by Rand-k or Rand-Proj; send them by PrivUnit or R^l2.

    The rows of G are drawn by a seed that does not depend on x and is sent along, so that the loss
    of (seed, report) is that of the randomizer on the k numbers, whatever x is. Seed and report are
    one message: the numbers of a client, if sent apart, could be linked by their seed. Neither seed
    has it: 004 sketches without privacy, 000 and 003 randomize without a sketch.

    Rows are orthonormal, so |y| <= |x| for every seed, and G'y d/k is unbiased. With a randomizer
    that is unbiased and whose decoded report has the mean square C whatever it says, the error is
    (d/k)^2 C - |x|^2: that of the randomizer, (d/k)^2 (C - E|y|^2), and that of the sketch,
    (d/k - 1) |x|^2. PrivUnit has such a C, and so has R^l2 of one level and centred decoder, as
    long as it clips nothing. Decoded together (task `sketched-mean`) alike clients err less.

    C grows with the square of the radius that y is randomized for. |y|^2 is k/d |x|^2 on average,
    and of 'rand-proj' nearly always about that; `sketched_radius` is for those who would rather
    clip a few sketches than pay for the longest, and then d/k of the error is saved.

    Fields:
        radius: of the l2 ball that vectors lie in, > 0.
        kept: k, numbers that are kept.
        sketch: "rand-k" (coordinates) or "rand-proj" (rows of a randomized Hadamard transform; the
            dimension must be a power of two).
        inner: the randomizer of the k numbers: "privunit" (in single precision) or "l2".
        sketched_radius: "whole", the radius, which no sketch exceeds, so that nothing is clipped;
            or a number c, for c radius sqrt(k/d): longer sketches are scaled down and counted.
        coordinates, rotated_radius: of "l2", as there; it has one level and a centred decoder.

    Example:
        >>> settings = {"dimension": 64, "kept": 8, "radius": 1.0, "epsilon_local": 4.0}
        >>> one = PrivateSketch(sketch="rand-proj", inner="privunit", **settings)
        >>> one.bits, round(one.worst_mse(), 3)
        (288, 244.082)
    """

    kind: ClassVar[str] = "private-sketch"
    source: ClassVar[str] = "Jiang 2025, section 2.4, with Bhowmick et al. 2018 or 003, Algorithm 3"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 2.0, "dimension": 5, "kept": 2, "radius": 1.0},
        {"epsilon_local": 3.0, "dimension": 8, "kept": 3, "radius": 2.0, "sketch": "rand-proj"},
        {
            "epsilon_local": 2.0,
            "dimension": 4,
            "kept": 2,
            "radius": 1.0,
            "sketch": "rand-proj",
            "inner": "l2",
            "rotated_radius": 1.5,
        },
        {
            "epsilon_local": 3.0,
            "dimension": 6,
            "kept": 3,
            "radius": 1.0,
            "inner": "l2",
            "rotated_radius": 2.0,
            "coordinates": 2,
            "sketched_radius": 2.0,
        },
    )

    radius: Positive
    kept: Annotated[int, Field(ge=1)]
    sketch: Literal["rand-k", "rand-proj"] = "rand-k"
    inner: Literal["privunit", "l2"] = "privunit"
    sketched_radius: Literal["whole"] | Positive = "whole"
    coordinates: Annotated[int, Field(ge=1)] | None = None
    rotated_radius: Literal["tight"] | Positive = "tight"

    @model_validator(mode="after")
    def _can_be_sketched(self) -> "PrivateSketch":
        d = self.dimension
        for name, unless in (("coordinates", None), ("rotated_radius", "tight")):
            if self.inner == "privunit" and getattr(self, name) != unless:
                raise ValueError(f"{name} is {getattr(self, name)}, but inner 'privunit' has none")
        if d is not None and self.kept > d:
            raise ValueError(f"kept is {self.kept}, but vectors have {d} numbers; keep fewer")
        if d is not None and self.sketch == "rand-proj" and projection.padded(d) != d:
            raise ValueError(
                f"sketch is 'rand-proj', and {d} is no power of two; fill vectors up with zeros, "
                "or choose rand-k"
            )
        return self

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @property
    def basis(self) -> Basis:
        """What the rows of G are."""
        return "coordinates" if self.sketch == "rand-k" else "hadamard"

    @property
    def bound(self) -> float:
        """The radius that sketches are randomized for."""
        if self.sketched_radius == "whole":
            return self.radius
        share = self.sketched_radius * math.sqrt(self.need_kept() / self.need_dimension())
        return self.radius * min(1.0, share)

    @cached_property
    def randomizes(self) -> PrivUnit | L2Vector:
        """What randomizes the k numbers, with the whole guarantee."""
        settings = {
            "epsilon_local": self.need_epsilon(),
            "dimension": self.need_kept(),
            "radius": self.bound,
        }
        if self.inner == "privunit":
            return PrivUnit(precision="single", **settings)
        # A rotation of k numbers themselves: one that fills them up has no such C.
        whole = projection.padded(self.kept) == self.kept
        return L2Vector(
            rotation="hadamard" if whole else "haar",
            clients=self.clients,
            coordinates=self.coordinates,
            rotated_radius=self.rotated_radius,
            decoder="centred",
            **settings,
        )

    @cached_property
    def wire(self) -> Expanded:
        """A seed and a report, summed as vectors."""
        d, k = self.need_dimension(), self.need_kept()
        sums = Vectors(d, self._longest * d / k)
        return Expanded(self.form, sums, self._expanded)

    @cached_property
    def form(self) -> Seeded:
        """A seed, and the randomizer's report."""
        nobody = Stream(0).clients(np.arange(0))
        empty = self.randomizes.messages(np.zeros((0, self.need_kept())), nobody).payload
        return Seeded(self.randomizes.wire, empty.shape[1:], empty.dtype)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw a seed, take the numbers that it picks, shorten what is too long, and randomize."""
        seeds = stream.words("seed")[0][:, 0]
        sketched = self._sketched(values, seeds)
        length = np.sqrt(np.square(sketched).sum(axis=1))
        # A hair of room: rows are orthonormal up to rounding.
        long = length > self.bound
        sketched[long] *= (self.bound / length[long])[:, None]
        sent = self.randomizes.messages(sketched, stream)
        beyond = int(np.count_nonzero(length > self.bound * (1.0 + 1e-9)))
        return Messages(self.form.joined(seeds, sent.payload), beyond + sent.clipped)

    def opened(self, rows: Floats) -> tuple[Ids, Floats]:
        """Return the seeds and what the randomizer's reports are decoded to, one by one."""
        flat = rows.reshape(-1, self.form.width)
        reports = self.form.reports(flat)
        if self.inner == "privunit":
            decoded = reports[:, 0].astype(np.float64)
        else:
            constant, added = self._symbols
            decoded = np.tile(constant, (len(flat), 1))
            for index, table in enumerate(added):
                decoded += table[reports[:, index]]
        return flat[:, 0].astype(np.uint32), decoded

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the expanded reports."""
        return self.wire.sums.mean(counts)

    def event(self) -> LocalReport:
        """Return the loss of the randomizer: the seed tells nothing."""
        return LocalReport(self.randomizes.event().epsilon)

    def randomizer(self) -> str | None:
        """Name the law of PrivUnit: given the seed, which has the same law for all, it is that."""
        return self.randomizes.randomizer() if self.inner == "privunit" else None

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error, given that nothing is clipped."""
        return np.asarray(self.worst_mse() - np.square(values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the largest error, at 0: (d/k)^2 C."""
        square = float(self.randomizes.mse(np.zeros((1, self.need_kept())))[0])
        return (self.need_dimension() / self.need_kept()) ** 2 * square

    @property
    def bias(self) -> str:
        """Clipping biases."""
        if self.bound < self.radius:
            return "sketches beyond their radius are shortened, which pulls it towards 0"
        return self.randomizes.bias

    def need_kept(self) -> int:
        """Return k, or refuse a mechanism that was never given a dimension."""
        self.need_dimension()
        return self.kept

    @property
    def _longest(self) -> float:
        """What no number of a decoded report exceeds."""
        if isinstance(self.randomizes, PrivUnit):
            return self.randomizes.scale
        constant, added = self._symbols
        return float(np.abs(constant).max() + np.abs(added).max(axis=(1, 2)).sum())

    @cached_property
    def _symbols(self) -> tuple[Floats, Floats]:
        """What R^l2 decodes nothing to, and what each symbol of each message adds to that."""
        inner, zero = self.randomizes, self.randomizes.zero()
        constant = inner.decode(zero, Stream(0))
        added = np.empty((*zero.shape, len(constant)))
        for place in np.ndindex(zero.shape):
            counts = zero.copy()
            counts[place] = 1
            added[place] = inner.decode(counts, Stream(0)) - constant
        return constant, added

    def _sketched(self, values: Floats, seeds: Ids) -> Floats:
        d, k = self.need_dimension(), self.need_kept()
        if self.sketch == "rand-k":
            return np.take_along_axis(values, projection.distinct_rows(seeds, k, d), axis=1)
        return projection.encoded(values, *projection.sketches(seeds, k, d))

    def _expanded(self, rows: Floats) -> Floats:
        """Return the unbiased vector of every report: G'y d/k."""
        d, k = self.need_dimension(), self.need_kept()
        seeds, decoded = self.opened(rows)
        if self.sketch == "rand-proj":
            return projection.transposed(*projection.sketches(seeds, k, d), decoded * (d / k))
        out = np.zeros((len(seeds), d))
        where = projection.distinct_rows(seeds, k, d)
        np.put_along_axis(out, where, decoded * (d / k), axis=1)
        return out
