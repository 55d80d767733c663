"""vqSGD: a random corner of a cross-polytope around the ball, by randomized response."""

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.budget import SLACK, Calibration
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# Beyond this the step of a 53-bit uniform shows in the probabilities: no loss is claimed then.
_MOST_LOSS = 25.0
# Doubles of one block of rows, which then stays in cache.
_CACHED = 1 << 15


class VqSgd(Mechanism):
    """Write x as a mixture of the corners +-radius sqrt(d) e_i, draw one, and send it by response.

    Gandikota et al. 2021, "vqSGD: vector quantized stochastic gradient descent", cross-polytope
    with randomized response. The corner +-e_i has probability (x_i)^{+-}/(radius sqrt(d)) plus an
    equal share of what is left. Sent as it is with probability 1/c, and else a uniform corner, it
    is unbiased with error radius^2 d c^2 - ||x||^2. With "seed" c = (e^epsilon + 2d - 1) /
    (e^epsilon - 1).

    The corners lie far outside of the ball. No vector of the ball has a corner with probability
    more than m = (1 - 1/(2d))/sqrt(d) + 1/(2d), which radius e_i attains; and the vector with all
    |x_j| equal and x_i of the other sign never has it. So the loss on the ball is log(1 + m
    (e^epsilon' - 1)) if the response alone has epsilon': less than it is calibrated to, and that is
    what `event` states. "tight" takes the epsilon' that makes it `epsilon_local`.

    Fields:
        radius: of the l2 ball, > 0.
        calibration: "seed", as published, the response alone has the loss epsilon_local; "tight",
            the least noise whose exact loss on the ball is epsilon_local: an error up to d times
            smaller.

    Example:
        >>> mechanism = VqSgd(epsilon_local=1.0, dimension=10, radius=1.0)
        >>> mechanism.bits, round(mechanism.worst_mse(), 2)
        (5, 1597.58)
    """

    kind: ClassVar[str] = "vqsgd"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Gandikota et al. 2021"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 2.0, "dimension": 5, "radius": 1.0},
        {"epsilon_local": 6.0, "dimension": 3, "radius": 2.0, "calibration": "tight"},
        {"epsilon_local": 1.0, "dimension": 16, "radius": 1.0, "calibration": "tight"},
    )

    radius: Positive
    calibration: Calibration = "seed"

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> Symbols:
        """One message: symbol 2i is the corner e_i, 2i + 1 its opposite."""
        return Symbols(2 * self.need_dimension())

    @property
    def _reach(self) -> float:
        # The largest probability of a corner over the ball.
        d = self.need_dimension()
        return (1.0 - 0.5 / d) / math.sqrt(d) + 0.5 / d

    @cached_property
    def truth(self) -> float:
        """Probability that the corner is sent as it is, 1/c."""
        epsilon = min(self.need_epsilon(), 700.0)
        odds = math.expm1(epsilon - SLACK * max(1.0, epsilon)) / self.wire.alphabet
        if self.calibration == "tight":
            odds /= self._reach
        return odds / (1.0 + odds)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Send a corner of the client's own mixture, or else a uniform one."""
        draw = stream.uniform("corner", 2)
        symbol = (draw[:, 1] * self.wire.alphabet).astype(np.int64)
        step = max(1, _CACHED // values.shape[1])
        for first in range(0, len(values), step):
            rows = slice(first, first + step)
            # The equal shares and the lies are one uniform corner, with the rest of the mass.
            # Counted down to a step of the uniforms, so that nothing is sent too often.
            chance = self.truth * np.minimum(1.0, self._weights(values[rows]).sum(axis=1))
            kept = draw[rows, 0] + 2.0**-53 <= chance
            own = first + np.flatnonzero(kept)
            symbol[own] = self._own(values[own], draw[own, 1])
        return Messages(symbol.astype(self.wire.dtype)[:, None])

    def _own(self, values: Floats, uniform: Floats) -> NDArray[np.int64]:
        # By inversion of each row's running sums; a coordinate that is 0 is never met.
        sums = np.cumsum(np.abs(values), axis=1)
        below = (sums <= (uniform * sums[:, -1])[:, None]).sum(axis=1)
        place = np.minimum(below, values.shape[1] - 1)
        return np.asarray(2 * place + (values[np.arange(len(values)), place] < 0.0))

    def _weights(self, values: Floats) -> Floats:
        # What each coordinate adds to its own corner; the sum is at most 1 on the ball.
        return np.abs(values) / (self.radius * math.sqrt(values.shape[1]))

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the vectors."""
        scale = self.radius * math.sqrt(self.need_dimension()) / self.truth
        return np.asarray((counts[0, 0::2] - counts[0, 1::2]) * (scale / max(1, counts.sum())))

    def event(self) -> LocalReport:
        """Return the exact loss on the ball, rounded up."""
        if self.need_epsilon() > _MOST_LOSS:
            return LocalReport(math.inf)
        odds = self.truth / (1.0 - self.truth) * self.wire.alphabet
        loss = math.log1p(odds * self._reach)
        return LocalReport(min(self.need_epsilon(), loss + 2.0 * SLACK * max(1.0, loss)))

    def randomizer(self) -> str:
        """Name the law: its corners, with the loss on the ball, however it was calibrated."""
        return "vqsgd"

    def alphabet(self) -> int:
        """Return the number of corners."""
        return self.wire.alphabet

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self.worst_mse() - (values * values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the largest error, at 0."""
        return self.need_dimension() * (self.radius / self.truth) ** 2

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of the corners."""
        own = self.truth * self._weights(values)
        law = np.repeat((1.0 - own.sum(axis=1, keepdims=True)) / self.wire.alphabet, 2, axis=1)
        law = np.tile(law, (1, values.shape[1]))
        law[:, 0::2] += np.where(values > 0.0, own, 0.0)
        law[:, 1::2] += np.where(values < 0.0, own, 0.0)
        return [law]
