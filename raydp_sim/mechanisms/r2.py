"""R_2: Priv and then Quan, an l2 vector in about 2.75 bits per coordinate."""

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.coin import ONE_COIN, Coin
from raydp_sim.mechanisms.parts.half_space import half_space, half_step
from raydp_sim.mechanisms.parts.quantiser import Mode, balls, sphere_moment
from raydp_sim.mechanisms.wires.signed_histogram import SignedHistogram
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# Doubles of Priv's vectors that are in memory at a time.
_BLOCK = 1 << 18


class R2(Mechanism):
    """Draw a vector by 'priv' and send it as a signed histogram by 'quan'.

    Girgis et al. 2021, Algorithm 3 and Theorem 6, with 'priv' scaled to be unbiased. The guarantee
    is that of 'priv', which the quantiser only processes further. Unbiased, with the exact error
    M^2 (2 - 1/d) - |x|^2 for "iid", M^2 (1 - 1/d) + M a K sqrt(d) - |x|^2 for "simq" and
    M^2 (1 + kappa_d) - |x|^2 for "seed" (see `quantiser.kappa`): all at most 6 a^2 d K^2.

    Fields:
        radius: of the l2 ball, > 0.
        quantiser: "iid" signs, one sign for all balls ("seed", as printed), or "simq"; see 'quan'.

    Example:
        >>> mechanism = R2(epsilon_local=1.0, dimension=8, radius=1.0)
        >>> round(mechanism.worst_mse() - 0.6**2, 3)
        103.305
    """

    kind: ClassVar[str] = "r2"
    source: ClassVar[str] = "Girgis et al. 2021, Algorithm 3"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 4.0, "dimension": 3, "radius": 2.0},
        {"epsilon_local": 2.0, "dimension": 4, "radius": 1.0, "quantiser": "seed"},
        {"epsilon_local": 0.3, "dimension": 5, "radius": 1.0, "quantiser": "simq"},
        {"epsilon_local": 2.0, "dimension": 70, "radius": 1.0},
    )

    radius: Positive
    quantiser: Mode = "iid"

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def coin(self) -> Coin:
        """What decides on Priv's side."""
        return Coin(self.need_epsilon())

    @property
    def length(self) -> float:
        """M, the length of Priv's vector."""
        return self.radius * half_step(0.5 * self.need_dimension()) * self.coin.scale

    @cached_property
    def wire(self) -> SignedHistogram:
        """One message, a signed histogram."""
        return SignedHistogram(self.need_dimension(), self.quantiser == "simq")

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw Priv's directions, block by block, and throw the balls."""
        n, d = values.shape
        sent = np.empty((n, 1, d), self.wire.dtype)
        step = max(1, _BLOCK // d)
        for first in range(0, n, step):
            rows = slice(first, first + step)
            part = stream.take(rows)
            direction = half_space(values[rows], self.radius, self.coin, part)
            sent[rows, 0] = balls(direction, 1.0, self.quantiser, part, self.wire.dtype)
        return Messages(sent)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the scaled histograms."""
        return np.asarray(self.length / math.sqrt(self.need_dimension()) * self.wire.mean(counts))

    def event(self) -> LocalReport:
        """Return Priv's loss, which the quantiser can only lower."""
        return self.coin.event()

    def randomizer(self) -> str:
        """Name the report's law: a line through 0 and where the balls fall, then one coin."""
        return ONE_COIN

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self.worst_mse() - (values * values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the error at 0, the second moment of a decoded report."""
        return self.length**2 * sphere_moment(self.need_dimension(), self.quantiser)
