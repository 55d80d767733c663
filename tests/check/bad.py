"""Mechanisms that do not keep their promises, each in one way, and two that do."""

import math
from typing import Any, ClassVar, Literal

import numpy as np

from raydp_sim.mechanisms.base import Domain, Mechanism, Messages, Positive
from raydp_sim.mechanisms.central_laplace import CentralLaplace
from raydp_sim.mechanisms.laplace import LaplaceVector
from raydp_sim.mechanisms.rinf import RInf
from raydp_sim.mechanisms.split_and_mix import SplitAndMix
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.events import LocalReport


class Response(Mechanism):
    """Randomized response on one bit, as it should be; the others change one thing each."""

    kind: ClassVar[str] = "response"
    tight: ClassVar[bool] = True
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"epsilon_local": 1.0},)

    @property
    def domain(self):
        return Domain("binary", 1.0, 1)

    @property
    def wire(self):
        return Symbols(2)

    @property
    def flip(self):
        # A hair more, so that rounding never makes it less than stated.
        return 1.0 / (1.0 + math.exp(self.need_epsilon() * (1.0 - 1e-12)))

    def messages(self, values, stream):
        turned = stream.uniform("flip") < self.flip
        return Messages(np.where(turned, 1 - values, values).astype(np.uint8))

    def decode(self, counts, stream):
        ones, n = int(counts[0, 1]), max(1, int(counts.sum()))
        if counts.sum() == 0:
            return np.zeros(1)
        return np.array([(ones / n - self.flip) / (1.0 - 2.0 * self.flip)])

    def event(self):
        return LocalReport(self.need_epsilon())

    def mse(self, values):
        return np.full(len(values), self.worst_mse())

    def worst_mse(self):
        return self.flip * (1.0 - self.flip) / (1.0 - 2.0 * self.flip) ** 2


class WithLaws(Response):
    def laws(self, values):
        one = values + (1.0 - 2.0 * values) * self.flip
        return [np.concatenate([1.0 - one, one], axis=1)]

    def decode(self, counts, stream):
        # Affine also at 0 reports, so that it can be enumerated.
        raw = counts[0, 1] * (1.0 - self.flip) - counts[0, 0] * self.flip
        return np.array([raw / ((1.0 - 2.0 * self.flip) * max(1, int(counts.sum())))])


class FlipsTooRarely(Response):
    """Claims epsilon_local and has twice that."""

    @property
    def flip(self):
        return 1.0 / (1.0 + math.exp(2.0 * self.need_epsilon()))


class FlipsTooRarelyAndSaysSo(WithLaws):
    """The same, with laws that are true."""

    flip = FlipsTooRarely.flip


class FlipsTooRarelyAndLies(WithLaws):
    """The same, with laws that are those of the claim."""

    def messages(self, values, stream):
        rarely = 1.0 / (1.0 + math.exp(2.0 * self.need_epsilon()))
        turned = stream.uniform("flip") < rarely
        return Messages(np.where(turned, 1 - values, values).astype(np.uint8))


class UnrandomizedBit(Response):
    """Sends the bit as it is."""

    def messages(self, values, stream):
        return Messages(values.astype(np.uint8))

    def decode(self, counts, stream):
        return np.array([counts[0, 1] / max(1, int(counts.sum()))])


class Identity(Mechanism):
    """Sends the vector as it is, and claims epsilon_local all the same."""

    kind: ClassVar[str] = "identity"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"epsilon_local": 1.0, "dimension": 3},)
    radius: Positive = 1.0

    @property
    def domain(self):
        return Domain("l2", self.radius, self.need_dimension())

    @property
    def wire(self):
        return Vectors(self.need_dimension(), 10.0 * self.radius)

    def messages(self, values, stream):
        return Messages(values[:, None, :].copy())

    def decode(self, counts, stream):
        return self.wire.mean(counts)

    def event(self):
        return LocalReport(self.need_epsilon())

    def mse(self, values):
        return np.zeros(len(values))

    def worst_mse(self):
        return 0.0


class AlmostIdentity(Identity):
    """Adds noise that hides nothing."""

    def messages(self, values, stream):
        noise = stream.normal("noise", values.shape[1])
        return Messages((values + 0.01 * self.radius * noise)[:, None, :])

    def mse(self, values):
        return np.full(len(values), values.shape[1] * (0.01 * self.radius) ** 2)

    def worst_mse(self):
        return self.need_dimension() * (0.01 * self.radius) ** 2


class SometimesIdentity(LaplaceVector):
    """Laplace noise, but one report in ten is the value itself."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 2, "radius": 1.0},
    )

    def messages(self, values, stream):
        noisy = super().messages(values, stream).payload[:, 0]
        bare = stream.uniform("bare") < 0.1
        return Messages(np.where(bare, values, noisy)[:, None, :])

    def worst_mse(self):
        return 0.9 * super().worst_mse()


class HalfTheNoise(LaplaceVector):
    """Laplace noise of half the scale that its epsilon needs."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 1.0, "dimension": 20, "radius": 0.5},
    )

    @property
    def scale(self):
        return self.radius / self.need_epsilon()


class HalfTheCentralNoise(CentralLaplace):
    """The same at the aggregator."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon": 1.0, "dimension": 1, "radius": 0.5},
    )

    def decode(self, counts, stream):
        exact = self.wire.mean(counts)
        return exact + 0.5 * (super().decode(counts, stream) - exact)


class SharesInTheOpen(SplitAndMix):
    """Sends the number itself as one of the shares; the rest sum up to the noise."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon": 1.0, "delta": 1e-6, "radius": 0.5, "clients": 50, "noise_clients": 5},
    )

    def messages(self, values, stream):
        shares = super().messages(values, stream).payload.astype(np.int64)
        modulus = 1 << self.width
        open_one = np.rint(values[:, 0] * 2 + 2).astype(np.int64)
        shares[:, 1] = (shares[:, 1] + shares[:, 0] - open_one) % modulus
        shares[:, 0] = open_one
        return Messages(shares.astype(self.wire.dtype))


class WrongDecode(Response):
    """Forgets to take the flips out again."""

    def decode(self, counts, stream):
        return np.array([counts[0, 1] / max(1, int(counts.sum()))])


class WrongDecodeEnumerated(WithLaws):
    """The same, with laws."""

    decode = WrongDecode.decode


class WrongError(WithLaws):
    """States two thirds of its error."""

    def worst_mse(self):
        return super().worst_mse() / 1.5


class BlockDependent(Response):
    """Draws one uniform for the whole call and turns it from row to row."""

    def messages(self, values, stream):
        drawn = np.random.default_rng(stream.stream.key()).uniform(size=values.shape)
        return Messages(np.where(drawn < self.flip, 1 - values, values).astype(np.uint8))


class OwnGenerator(Response):
    """Draws from a generator of its own, which no seed decides."""

    def messages(self, values, stream):
        drawn = np.random.default_rng().uniform(size=values.shape)
        return Messages(np.where(drawn < self.flip, 1 - values, values).astype(np.uint8))


class FixedSeed(Response):
    """Draws the same in every run and release."""

    def messages(self, values, stream):
        drawn = (stream.ids[:, None] * 0.6180339887) % 1.0
        return Messages(np.where(drawn < self.flip, 1 - values, values).astype(np.uint8))


class LossyWire(Identity):
    """Packs doubles as singles."""

    @property
    def bits(self):
        return 32 * self.need_dimension()

    def encode(self, payload):
        singles = np.ascontiguousarray(payload, "<f4").reshape(len(payload), -1)
        return singles.view(np.uint8)

    def unpack(self, wire):
        doubles = np.ascontiguousarray(wire).view("<f4").astype(np.float64)
        return doubles.reshape(len(wire), 1, self.need_dimension())


class TakesAnything(Identity):
    """Does not ask whether a value lies in the domain."""

    def randomize(self, values, stream):
        return self.messages(np.asarray(values, dtype=float), stream)


class OrderMatters(Response):
    """Weighs the messages of a call by their place in it."""

    def fold(self, counts, index, payload):
        weights = 1 + np.arange(len(payload)) % 2
        seen = np.bincount(payload.ravel(), weights=weights, minlength=2)
        return counts + seen.astype(np.int64)


class WritesIntoArguments(Response):
    """Flips the clients' own bits."""

    def messages(self, values, stream):
        turned = stream.uniform("flip") < self.flip
        values[turned] = 1 - values[turned]
        return Messages(values.astype(np.uint8))


class MoreThanAsked(Response):
    """States more than epsilon_local."""

    def event(self):
        return LocalReport(2.0 * self.need_epsilon())


class MessagesLoseMore(WithLaws):
    """States a smaller loss for shuffles than for the report."""

    def losses(self):
        return (0.5 * self.need_epsilon(),)


class Raises(Response):
    def decode(self, counts, stream):
        raise RuntimeError("no such luck")


class NoDecode(Mechanism):
    """Has all but `decode`."""

    kind: ClassVar[str] = "no-decode"
    domain = Response.domain
    wire = Response.wire
    flip = Response.flip
    messages = Response.messages
    event = Response.event


class NoKind(Mechanism):
    """Has every method, but no name."""

    domain = Response.domain
    wire = Response.wire
    flip = Response.flip
    messages = Response.messages
    decode = Response.decode
    event = Response.event


class NoLossAndNoDomain(Mechanism):
    kind: ClassVar[str] = "nothing"
    wire = Response.wire
    messages = Response.messages
    decode = Response.decode


class Biased(WrongDecode):
    """The same as WrongDecode, but it says so."""

    @property
    def bias(self):
        return "flips are not taken out"


class NoExamples(Identity):
    examples: ClassVar[tuple[dict[str, Any], ...]] = ()


class Unprotected(Identity):
    """An honest identity: it claims nothing."""

    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only", "none"]] = "none"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"dimension": 2},)

    def event(self):
        return LocalReport(math.inf)


class AlwaysClamps(RInf):
    """Clips every coordinate by itself, also where it is asked to scale the vector down."""

    kind: ClassVar[str] = "always-clamps"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 3, "radius": 1.0},
    )

    def admit(self, values, ids):
        return self.domain.admitted(values, ids, self.on_out_of_range)
