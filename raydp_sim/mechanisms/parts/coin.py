"""The one biased coin on which mechanisms of a single report rest.

Such a mechanism draws everything else, w, without looking at the data; the value x then decides on
a bit b(x, w), perhaps fractional, the coin is tossed for it, and the report follows from w and what
the coin shows. With w uniform on a finite set, as words of random bits are, (w, coin) is a message
of R^Bin: a uniform index of a block of bits, and that bit by randomized response. Rounding a bit at
random mixes such messages, and making the report of w and the coin processes one further, so
whatever is proved for shuffled messages of R^Bin holds for these reports.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import scipy
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.parts.budget import SLACK
from raydp_sim.privacy.events import LocalReport

# The name under which `privacy.variation` knows a report of one coin, by the argument above.
ONE_COIN = "rbin"
# Beyond this the step of a 53-bit uniform shows in the coin: no loss is claimed then, as for all
# mechanisms here.
_MOST_LOSS = 25.0


@dataclass(frozen=True)
class Coin:
    """Shows a bit with probability e^epsilon / (e^epsilon + 1), else its opposite.

    A fractional bit is rounded at random first. The probability of the opposite is rounded up to a
    multiple of 2^-53, the step of the uniforms that toss the coin, so what is sampled is exactly
    what is stated.

    Example:
        >>> round(Coin(1.0).scale, 6)
        2.163953
    """

    epsilon: float

    @cached_property
    def flip(self) -> float:
        """Probability of the opposite."""
        steps = max(1, math.ceil(scipy.special.expit(-self.epsilon) * 2.0**53))
        # The logistic function may have been rounded down, which costs a step at most.
        while _loss(steps * 2.0**-53) > self.epsilon:
            steps += 1
        return steps * 2.0**-53

    @property
    def gap(self) -> float:
        """1 - 2 flip, exact in doubles."""
        return 1.0 - 2.0 * self.flip

    @property
    def scale(self) -> float:
        """K = (e^epsilon + 1) / (e^epsilon - 1), by which a sign is scaled to be unbiased."""
        return 1.0 / self.gap

    def shows(self, bits: Floats, uniform: Floats) -> NDArray[Any]:
        """Toss: rounding a bit and flipping the outcome is one comparison of one uniform."""
        return uniform < self.chance(bits)

    def chance(self, bits: Floats) -> Floats:
        """Return the probability of showing 1."""
        return self.flip + self.gap * bits

    def event(self) -> LocalReport:
        """Return the loss of a report that depends on the data through this coin alone."""
        if self.epsilon > _MOST_LOSS:
            return LocalReport(math.inf)
        return LocalReport(_loss(self.flip))


def _loss(flip: float) -> float:
    # log((1 - flip) / flip) without its cancellation at small losses, rounded up.
    return 2.0 * math.atanh(1.0 - 2.0 * flip) * (1.0 + SLACK)
