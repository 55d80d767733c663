"""RAPPOR: every bit of the category's indicator, flipped at times."""

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy
from pydantic import model_validator

from raydp_sim import kernels
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages
from raydp_sim.mechanisms.parts.categories import Categories, allowed, check_width, stated, step_up
from raydp_sim.mechanisms.parts.eight_coins import EightCoins
from raydp_sim.mechanisms.parts.entropy import h2
from raydp_sim.mechanisms.wires.bitmaps import Bitmaps
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class Rappor(Mechanism):
    """Write the category as k bits, one of them 1, and flip each bit with the same probability.

    Erlingsson, Pihur & Korolova 2014 (one-time RAPPOR). Two categories differ in two bits, so the
    flip probability is f = 1 / (e^(epsilon_local / 2) + 1); with 1 / (e^epsilon_local + 1), which
    is also found in print, a report loses twice epsilon_local. The decoded frequencies are unbiased
    and a client's error is k f (1 - f) / (1 - 2 f)^2 for every category.

    The k bits are one message to one shuffler. The flip probability is a multiple of 2^-64, rounded
    up, so the loss is exact for what is drawn and never above epsilon_local.

    Fields:
        categories: how many there are, k, 2..1048576; clients hold whole numbers 0..k-1.

    Example:
        >>> round(Rappor(epsilon_local=1.0, categories=10).worst_mse(), 6)
        39.176981
    """

    kind: ClassVar[str] = "rappor"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Erlingsson, Pihur & Korolova 2014"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "categories": 5},
        {"epsilon_local": 0.2, "categories": 8, "dimension": 1},
        {"epsilon_local": 6.0, "categories": 70},
    )

    categories: Categories

    @model_validator(mode="after")
    def _fits(self) -> "Rappor":
        check_width(self.kind, self.dimension, self.categories)
        return self

    @property
    def domain(self) -> Domain:
        """One of the categories."""
        return Domain("category", 1.0, self.categories)

    @cached_property
    def wire(self) -> Bitmaps:
        """One message of k bits."""
        return Bitmaps(self.categories)

    @cached_property
    def flip(self) -> float:
        """Probability that a bit is flipped."""
        return step_up(float(scipy.special.expit(-0.5 * allowed(self.need_epsilon()))), bits=64)

    @cached_property
    def _coins(self) -> EightCoins:
        return EightCoins(int(math.ldexp(self.flip, 64)))

    @property
    def _gap(self) -> float:
        return 1.0 - 2.0 * self.flip

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Flip bits of nothing, then the category's own."""
        octets = self.wire.octets
        out = self._coins.throw("flip", stream, octets)
        out[:, -1] &= np.uint8(0xFF << (-self.categories % 8) & 0xFF)
        kernels.mark(out, values[:, 0].astype(np.int64))
        return Messages(out[:, None])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the frequencies."""
        received = int(counts[-1])
        return np.asarray((counts[:-1] - received * self.flip) / (self._gap * max(1, received)))

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        return stated(self.need_epsilon(), 2.0 * math.log1p(self._gap / self.flip))

    def randomizer(self) -> str:
        """Name the report's law."""
        return "rappor"

    @property
    def entropy(self) -> float:
        """Bits of randomness of the k coins of a report."""
        return self.categories * h2(self.flip)

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error, the same for every category."""
        return np.full(len(values), self.worst_mse())

    def worst_mse(self) -> float:
        """Return the error of a client: the variance of k decoded bits."""
        return self.categories * self.flip * (1.0 - self.flip) / self._gap**2
