"""SQKR: a few sampled signs of Kashin coefficients, by randomized response on all of them."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.linf import to_unit
from raydp_sim.mechanisms.parts.blocks import check_coordinates
from raydp_sim.mechanisms.parts.budget import SLACK
from raydp_sim.mechanisms.parts.kashin import LEVEL, Kashin, frame_size
from raydp_sim.mechanisms.wires.packing import index_bits, pack_bits, unpack_bits
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# Beyond this the step of a 53-bit uniform shows in the probabilities: no loss is claimed then.
_MOST_LOSS = 25.0
# The most signs of a report, and the least probability that they are sent as they are.
_MOST_SIGNS = 24
_LEAST_TRUTH = 2.0**-40


@dataclass(frozen=True)
class SignSets:
    """One message per report: `count` coordinates out of `full`, each with a sign.

    An entry is `2 coordinate + (sign > 0)`. The counts are the sums of the signs at each
    coordinate, then the number of reports.

    Example:
        >>> SignSets(2048, 4).bits
        48
    """

    full: int
    count: int

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return 1

    @property
    def width(self) -> int:
        """Bits of one entry: the coordinate and the sign."""
        return index_bits(self.full) + 1

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return self.count * self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds an entry."""
        return np.min_scalar_type(2 * self.full - 1)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into whole bytes."""
        return pack_bits(payload.reshape(len(payload), self.count), self.width)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        return unpack_bits(wire, self.width, self.count).astype(self.dtype)[:, None, :]

    def zero(self) -> Counts:
        """Return an empty sum."""
        return np.zeros(self.full + 1, np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the sum after a chunk of reports."""
        rows = payload.reshape(-1, self.count)
        seen = np.bincount(rows.ravel(), minlength=2 * self.full).reshape(self.full, 2)
        return np.asarray(counts + np.append(seen[:, 1] - seen[:, 0], len(rows)))


class Sqkr(Mechanism):
    """Round k sampled Kashin coefficients to a sign each and send them by 2^k-ary response.

    Chen, Kairouz & Ozgur 2020, "Breaking the communication-privacy-accuracy trilemma", Algorithm 1.
    The coefficients lie in [-B, B], B = level radius / sqrt(N); a sign says B or -B, right on
    average. The k coordinates are drawn without replacement and without looking at the data. With
    c = (e^epsilon + 2^k - 1) / (e^epsilon - 1), the inverse of the probability that the signs are
    sent as they are, the estimate F (c N/k) B signs is unbiased, and its error is exact, see `mse`.

    In the paper client and server share the coordinates. Behind a shuffler the server does not know
    whose message it reads, so here a message carries them: k log2 N bits besides the k signs.

    A coefficient beyond B is cut, which biases the estimate, and counted in `Messages.clipped` if
    it was sampled; `mse` includes it. The loss holds for every input; the ball may not attain it.

    Fields:
        radius: of the l2 ball, > 0.
        coordinates: signs per report k, 1..24; by default min(ceil(epsilon_local), N, 24).
        level: bound of the coefficients in units of radius / sqrt(N); 2.2 is enough for vectors in
            general position, 3 for the worst that were found (see "kashin").
        frame_seed: of the frame, which is public.

    Example:
        >>> mechanism = Sqkr(epsilon_local=4.0, dimension=1000, radius=1.0)
        >>> mechanism.bits, round(mechanism.worst_mse())
        (48, 3794)
    """

    kind: ClassVar[str] = "sqkr"
    source: ClassVar[str] = "Chen, Kairouz & Ozgur 2020, Algorithm 1"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 2.0, "dimension": 4, "radius": 1.0},
        {"epsilon_local": 5.0, "dimension": 3, "radius": 2.0},
        {"epsilon_local": 2.0, "dimension": 6, "radius": 1.0, "coordinates": 4},
    )

    radius: Positive
    coordinates: Annotated[int, Field(ge=1, le=_MOST_SIGNS)] | None = None
    level: Positive = LEVEL
    frame_seed: int = 0

    @model_validator(mode="after")
    def _sensible_coordinates(self) -> "Sqkr":
        if self.dimension is not None:
            check_coordinates(self.coordinates, frame_size(self.dimension), "frame")
        if self.coordinates is not None and self.epsilon_local is not None:
            if math.expm1(min(self.epsilon_local, 1.0)) < 2.0**self.coordinates * _LEAST_TRUTH:
                raise ValueError(
                    f"coordinates is {self.coordinates}; with epsilon_local "
                    f"{self.epsilon_local:g} their signs would never be sent as they are: "
                    "take fewer"
                )
        return self

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> SignSets:
        """One message of coordinates and signs."""
        full, signs = self.frame.full, self.coordinates
        if signs is None:
            signs = math.ceil(min(self.need_epsilon(), full, _MOST_SIGNS))
        return SignSets(full, signs)

    @cached_property
    def frame(self) -> Kashin:
        """The public frame."""
        d = self.need_dimension()
        return Kashin(d, frame_size(d), self.frame_seed)

    @property
    def bound(self) -> float:
        """The largest coefficient, B."""
        return self.level * self.radius / math.sqrt(self.frame.full)

    @cached_property
    def lie(self) -> float:
        """Probability that the signs are replaced by uniform ones."""
        epsilon = min(self.need_epsilon(), 700.0)
        allowed = epsilon - SLACK * max(1.0, epsilon)
        return 1.0 / (1.0 + math.ldexp(math.expm1(allowed), -self.wire.count))

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Sample coordinates, round their coefficients to signs, and tell those or others."""
        count = self.wire.count
        chosen = self._choose(stream)
        picked = self.frame.pick(values, chosen, count)
        clipped = int(np.count_nonzero(np.abs(picked) > self.bound))
        signs = stream.uniform("round", count) < to_unit(picked, self.bound)
        others = stream.words("others", count)[0] >> np.uint32(31) == 1
        sent = np.where(stream.uniform("lie") < self.lie, others, signs)
        return Messages((2 * chosen + sent).astype(self.wire.dtype)[:, None, :], clipped)

    def _choose(self, stream: ClientStream) -> NDArray[np.int64]:
        # Floyd's sample without replacement: a number seen before gives way to the newest.
        full, count = self.wire.full, self.wire.count
        draw = stream.uniform("coordinates", count)
        chosen = np.empty(draw.shape, np.int64)
        for j in range(count):
            newest = full - count + j
            number = (draw[:, j] * (newest + 1)).astype(np.int64)
            seen = (chosen[:, :j] == number[:, None]).any(axis=1)
            chosen[:, j] = np.where(seen, newest, number)
        return chosen

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the coefficients, then of the vectors."""
        factor = self.bound * self.wire.full / self.wire.count / (1.0 - self.lie)
        mean = np.asarray(counts[:-1] * (factor / max(1, int(counts[-1]))), np.float64)
        return np.asarray(self.frame.back(mean[None])[0])

    def event(self) -> LocalReport:
        """Return the loss of 2^k-ary randomized response, rounded up."""
        epsilon = self.need_epsilon()
        if epsilon > _MOST_LOSS:
            return LocalReport(math.inf)
        loss = math.log1p(math.ldexp((1.0 - self.lie) / self.lie, self.wire.count))
        return LocalReport(min(epsilon, loss + 2.0 * SLACK * max(1.0, loss)))

    def randomizer(self) -> str:
        """Name the law: coordinates without data, and randomized response on all their signs.

        Given the coordinates and the signs that the coefficients were rounded to it is response
        over 2^k symbols, so the densities have two values, the larger one on 2^-k of the blanket,
        as that response has; mixtures are no further apart (joint convexity).
        """
        return "rbin" if self.wire.count == 1 else "krr"

    def alphabet(self) -> int:
        """Return the symbols of that response; of one sign, an index and a bit."""
        return 2 * self.wire.full if self.wire.count == 1 else 1 << self.wire.count

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error.

        With a the coefficients after cutting, the estimate of a has the second moments c^2 N B^2/k
        on the diagonal and g a_i a_j off it, g = c N (k - 1) / (k (N - 1)): two signs are both
        sampled with probability k (k - 1) / (N (N - 1)) and sent with probability 1/c. F weighs
        them by F^T F, whose diagonal is d/N. So E||estimate||^2 = d N c^2 B^2/k + g (||F a||^2 -
        (d/N) ||a||^2).
        """
        a = np.clip(self.frame.rotate(values), -self.bound, self.bound)
        mean, share = self.frame.back(a), self.need_dimension() / self.wire.full
        second = self._fixed + self._cross * (
            (mean * mean).sum(axis=1) - share * (a * a).sum(axis=1)
        )
        return np.asarray(second - (mean * mean).sum(axis=1) + ((mean - values) ** 2).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the error at 0 if none is larger; else a bound, nothing being cut.

        F a = x makes ||a|| at least ||x||, so the error is at most that at 0 plus (g (1 - d/N) - 1)
        ||x||^2.
        """
        return self._fixed + max(0.0, self._slope) * self.radius**2

    @property
    def bias(self) -> str:
        """Cutting biases the few vectors whose coefficients exceed their bound."""
        return "coefficients beyond the level, which a few vectors have, are cut"

    @property
    def worst_mse_is(self) -> Literal["exact", "bound"]:
        """Whether 0 attains it."""
        return "exact" if self._slope <= 0.0 else "bound"

    @property
    def _fixed(self) -> float:
        wire = self.wire
        scaled = self.bound / (1.0 - self.lie)
        return self.need_dimension() * wire.full * scaled**2 / wire.count

    @property
    def _cross(self) -> float:
        full, count = self.wire.full, self.wire.count
        return full * (count - 1) / (count * (full - 1)) / (1.0 - self.lie)

    @property
    def _slope(self) -> float:
        return self._cross * (1.0 - self.need_dimension() / self.wire.full) - 1.0
