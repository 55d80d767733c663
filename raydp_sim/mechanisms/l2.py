"""R^l2: a random rotation, then R^linf, for vectors in an l2 ball."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.linf import bits_of, from_levels, to_unit
from raydp_sim.mechanisms.parts.blocks import check_coordinates
from raydp_sim.mechanisms.parts.budget import Calibration
from raydp_sim.mechanisms.parts.kashin import LEVEL
from raydp_sim.mechanisms.parts.levels import Allocation, columns, weights
from raydp_sim.mechanisms.parts.rotation import Kind, Rotation, make_rotation, padded_dimension
from raydp_sim.mechanisms.wires.bit_reports import (
    BitReports,
    BlockStyle,
    Decoder,
    bit_reports,
    stated_loss,
)
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class L2Vector(Mechanism):
    """Rotate at random, clip each coordinate to the rotated radius, and send by R^linf.

    Girgis & Diggavi 2024, Theorems 6 and 7. The loss holds for every input. Given that nothing is
    clipped, which with the "tight" or "seed" radius has probability at least 1 - beta over all
    clients, the estimate is unbiased and `mse` is exact; a clipped coordinate pulls it towards 0,
    and `Messages.clipped` counts those that were sampled.

    With rotation "kashin" (their Remark on Kashin's representation) the rotated vector is replaced
    by coefficients in a frame of N vectors that stay below 3 radius / sqrt(N) for every vector that
    was tried, in place of sqrt(2 log(2 D clients / beta)) radius / sqrt(D) for most. The error goes
    with the square of that number, whatever N and D: it beats the "tight" radius where that is
    above 3, as it always is with the default beta, by 4.8 at d = 1000 and 10,000 clients; and a
    fixed c = 3 in that hardly any vector is clipped (some can be found that are). The price is the
    client's time, 25 transforms of length N instead of a few entries of one, and log2(N/D) more
    bits per message.

    Fields:
        radius: of the l2 ball, > 0.
        rotation: "hadamard" (signs, then Walsh-Hadamard on the next power of two D), "haar" (a
            uniformly random orthogonal matrix, D = dimension), or "kashin" (coefficients in a frame
            of D = N vectors, the next power of two of 2d).
        rotation_seed: of the rotation, which is public.
        rotated_radius: "tight", radius sqrt(2 log(2 D clients / beta) / D) (Hoeffding); "seed", 10
            radius sqrt(log(D clients / beta) / D) (Theorem 10); or a number c, for c radius /
            sqrt(D). With "kashin", "tight" is c = 3.
        beta: probability that anything is clipped, for "tight" and "seed".
        coordinates, levels, allocation, calibration, blocks, decoder: as for "linf", with D in
            place of the dimension.

    Example:
        >>> settings = {"dimension": 4, "radius": 1.0, "rotated_radius": 1.0, "coordinates": 4}
        >>> round(L2Vector(epsilon_local=4.0, **settings).worst_mse(), 6)
        4.682694
    """

    kind: ClassVar[str] = "l2"
    source: ClassVar[str] = "Girgis & Diggavi 2024, Algorithm 3"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 2.0, "dimension": 1, "radius": 1.0, "clients": 100},
        {"epsilon_local": 2.0, "dimension": 4, "radius": 1.0, "clients": 100},
        {"epsilon_local": 3.0, "dimension": 5, "radius": 1.0, "clients": 100, "levels": 2},
        {
            "epsilon_local": 3.0,
            "dimension": 5,
            "radius": 2.0,
            "clients": 100,
            "coordinates": 3,
            "levels": 3,
            "blocks": "balanced",
            "decoder": "centred",
        },
        {
            "epsilon_local": 4.0,
            "dimension": 5,
            "radius": 1.0,
            "coordinates": 4,
            "levels": 2,
            "rotation": "haar",
            "rotated_radius": 3.0,
        },
        {
            "epsilon_local": 4.0,
            "dimension": 6,
            "radius": 1.0,
            "clients": 100,
            "coordinates": 8,
            "rotated_radius": "seed",
            "calibration": "seed",
        },
        {
            "epsilon_local": 3.0,
            "dimension": 5,
            "radius": 1.0,
            "rotation": "kashin",
            "levels": 2,
            "decoder": "centred",
        },
    )

    radius: Positive
    coordinates: Annotated[int, Field(ge=1)] | None = None
    levels: Annotated[int, Field(ge=1, le=50)] = 1
    calibration: Calibration = "tight"
    allocation: Allocation = "seed"
    blocks: BlockStyle = "pad"
    decoder: Decoder = "seed"
    rotation: Kind = "hadamard"
    rotation_seed: int = 0
    rotated_radius: Literal["tight", "seed"] | Positive = "tight"
    beta: Annotated[float, Field(gt=0, lt=1)] = 0.01

    @model_validator(mode="after")
    def _enough_coordinates(self) -> "L2Vector":
        if self.dimension is not None:
            full = padded_dimension(self.rotation, self.dimension)
            check_coordinates(self.coordinates, full, "rotated dimension")
        if self.rotation == "kashin" and self.rotated_radius == "seed":
            raise ValueError(
                "rotated_radius is 'seed', which is for random rotations; with rotation 'kashin' "
                "leave it out, or give a number"
            )
        return self

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> BitReports:
        """One message per level and block."""
        return bit_reports(
            self.need_epsilon(),
            padded_dimension(self.rotation, self.need_dimension()),
            self.coordinates,
            self.blocks,
            self.decoder,
            self.calibration,
            self.levels,
            self.allocation,
        )

    @cached_property
    def rotated_bound(self) -> float:
        """The radius that rotated coordinates are clipped to."""
        full, choice = self._rotation.full, self.rotated_radius
        if self.rotation == "kashin" and choice == "tight":
            choice = LEVEL
        if not isinstance(choice, str):
            return choice * self.radius / math.sqrt(full)
        if self.clients is None:
            raise InputError(
                f"clients is missing; rotated_radius '{choice}' depends on the number of clients: "
                "give clients, or a number as rotated_radius"
            )
        if choice == "seed":
            spread = 100.0 * math.log(full * self.clients / self.beta)
        else:
            spread = 2.0 * math.log(2.0 * full * self.clients / self.beta)
        return self.radius * math.sqrt(spread / full)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Sample rotated coordinates, compute only those, quantise them and flip their bits."""
        bound, blocks, clipped = self.rotated_bound, self.wire.blocks, 0

        def bits_at(rows: slice, coordinate: Counts) -> Floats:
            nonlocal clipped
            rotated = self._rotation.pick(values[rows], coordinate, blocks.count)
            clipped += int(np.count_nonzero(np.abs(rotated) > bound))
            return columns(to_unit(rotated, bound), self.levels)

        return Messages(self.wire.randomize(len(values), stream, bits_at), clipped)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the vectors."""
        rotated = from_levels(self.wire.estimates(counts), self.rotated_bound)
        return self._rotation.back(rotated[None])[0, : self.need_dimension()]

    def event(self) -> LocalReport:
        """Return the exact loss of R^linf, rounded up; the l2 ball may not attain it."""
        return LocalReport(stated_loss(self.wire, self.need_epsilon()))

    def losses(self) -> tuple[float, ...]:
        """Return the loss of each message."""
        return self.wire.message_losses()

    def randomizer(self) -> str:
        """Name the message's law: a uniform index and a flipped bit."""
        return "rbin"

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error, given that nothing is clipped.

        Where the rotation is larger than the vector, the error outside of it is cut off: what is
        left is the trace of P Sigma, P the projection on the vector's space, rotated, and Sigma the
        covariance of the rotated estimate, which has off-diagonal terms within a block.
        """
        bits = bits_of(to_unit(self._rotation.rotate(values), self.rotated_bound), self.levels)
        cut = self.wire.variances(bits)
        if self._rotation.full > self.need_dimension():
            # Second moments weigh d/D each (the diagonal of P); then off go the projected means.
            cut += self._mean_squares(bits)
            cut *= self.need_dimension() / self._rotation.full
            cut -= self._projected_mean_squares(bits)
        return (2.0 * self.rotated_bound) ** 2 * cut

    def worst_mse(self) -> float:
        """Bound the error by the worst over the l_inf ball of rotated vectors, nothing clipped."""
        wire, ratio = self.wire, self.need_dimension() / self._rotation.full
        worst, a = wire.worst(rounded=True), wire.blocks.factors
        # Cut to d of D, a coordinate's second moment counts d/D, and so does its variance where it
        # is alone in its block.
        most = 0.25 if wire.centred else 1.0
        w2 = weights(self.levels) ** 2
        second = np.where(a == 1.0, worst, a * (w2 * (wire.noise + most)).sum())
        bound = min(worst.sum(), ratio * second.sum())
        return (2.0 * self.rotated_bound) ** 2 * float(bound)

    @property
    def worst_mse_is(self) -> Literal["exact", "bound"]:
        """A bound: the rotated l2 ball does not fill the l_inf ball."""
        return "bound"

    @property
    def bias(self) -> str:
        """Clipping biases, also of the few vectors whose Kashin coefficients exceed their bound."""
        if self.rotation == "kashin":
            return "coefficients beyond the level, which a few vectors have, are cut"
        return "rotated coordinates beyond their bound are clipped, which pulls it towards 0"

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of `2 offset + bit` for each level and block."""
        rotated = self._rotation.rotate(values)
        return self.wire.laws(bits_of(to_unit(rotated, self.rotated_bound), self.levels))

    @cached_property
    def _rotation(self) -> Rotation:
        return make_rotation(self.rotation, self.need_dimension(), self.rotation_seed)

    def _means(self, bits: list[Floats]) -> list[Floats]:
        # The estimator's means before the constant that centring adds back.
        shift = 0.5 if self.wire.centred else 0.0
        return [w * (bit - shift) for w, bit in zip(weights(self.levels), bits, strict=True)]

    def _mean_squares(self, bits: list[Floats]) -> Floats:
        return np.asarray(sum((mean**2).sum(axis=1) for mean in self._means(bits)))

    def _projected_mean_squares(self, bits: list[Floats]) -> Floats:
        blocks, cut = self.wire.blocks, np.zeros(len(bits[0]))
        for mean in self._means(bits):
            for start, length in zip(blocks.starts, blocks.lengths, strict=True):
                alone = np.zeros_like(mean)
                alone[:, start : start + length] = mean[:, start : start + length]
                back = self._rotation.back(alone)[:, : self.need_dimension()]
                cut += (back**2).sum(axis=1)
        return cut
