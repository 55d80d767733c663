"""Real summation with one message per client: the privacy blanket."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.budget import SLACK
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# A larger loss needs a chance to lie that 53-bit draws cannot express.
_MOST_LOSS = 25.0


class PrivacyBlanket(Mechanism):
    """Round a number at random to one of k+1 points, and with probability gamma send any of them.

    Balle, Bell, Gascon & Nissim 2019, "The privacy blanket of the shuffle model", Section 3. With
    z = (x + radius) / (2 radius) and t = k z, the report is floor(t) or the point above it, with
    mean t; with probability gamma it is uniform on 0..k instead. Decoded, (report / k - gamma / 2)
    / (1 - gamma) has mean z.

    The second step is randomized response over k+1 symbols with the loss log(1 + (1 - gamma)(k + 1)
    / gamma), so gamma = (k + 1) / (k + e^epsilon_local); two ends of the interval attain it. The
    rounding before it makes the reports of any clients a mixture, over their rounded values, of
    those of randomized response. Divergences are jointly convex, so every bound on its shuffled
    reports, for all values of all clients, holds here too.

    With k of order n^(1/3) and gamma of order k/n, which meets a fixed central target, the error of
    the sum is of order n^(1/3): gamma n / 12 from the blanket and up to n / (4 k^2) from rounding.

    Fields:
        radius: numbers lie in [-radius, radius], > 0.
        steps: k >= 1; by default the cube root of `clients`, rounded up.

    Example:
        >>> PrivacyBlanket(epsilon_local=1.0, radius=0.5, clients=1000).bits
        4
    """

    kind: ClassVar[str] = "privacy-blanket"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Balle et al. 2019"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "radius": 0.5, "clients": 1000},
        {"epsilon_local": 0.1, "radius": 1.0, "steps": 1, "dimension": 1},
        {"epsilon_local": 6.0, "radius": 3.0, "steps": 1},
        {"epsilon_local": 5.0, "radius": 2.0, "steps": 37},
    )

    radius: Positive
    steps: Annotated[int, Field(ge=1, lt=1 << 16)] | None = None

    @model_validator(mode="after")
    def _one_number(self) -> "PrivacyBlanket":
        if self.dimension not in (None, 1):
            raise ValueError(
                f"dimension is {self.dimension}; 'privacy-blanket' takes one number, so it must be "
                "1 (see 'linf')"
            )
        return self

    @property
    def domain(self) -> Domain:
        """The interval."""
        return Domain("linf", self.radius, 1)

    @cached_property
    def k(self) -> int:
        """Steps between the ends of the interval."""
        if self.steps is not None:
            return self.steps
        if self.clients is None:
            raise InputError("mechanism 'privacy-blanket' has no steps; give steps or clients")
        root = round(math.cbrt(self.clients))
        return root if root**3 >= self.clients else root + 1

    @cached_property
    def _odds(self) -> float:
        """Of a report that is sent as it is to one that says nothing: (e^epsilon - 1) / (k + 1)."""
        epsilon = self.need_epsilon() * (1.0 - SLACK)
        # Of 2^53 draws the k+1 points get shares that differ by one.
        epsilon = max(0.5 * epsilon, epsilon - (self.k + 1) * 2.0**-52)
        return math.expm1(min(700.0, epsilon)) / (self.k + 1)

    @property
    def gamma(self) -> float:
        """The chance that a report says nothing."""
        return 1.0 / (1.0 + self._odds)

    @property
    def kept(self) -> float:
        """The chance 1 - gamma that it is sent as it is, with all its digits."""
        return self._odds / (1.0 + self._odds)

    @cached_property
    def wire(self) -> Symbols:
        """One of the k+1 points."""
        return Symbols(self.k + 1)

    def _split(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the point below, and how far the value is on the way to the next."""
        t = (values[:, 0] + self.radius) * (self.k / (2.0 * self.radius))
        # Rounding may reach a hair beyond the ends.
        t = np.clip(t, 0.0, float(self.k))
        below = np.minimum(np.floor(t), self.k - 1.0)
        return below, t - below

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Round, then replace by chance."""
        below, rest = self._split(values)
        rounded = below + (stream.uniform("round")[:, 0] < rest)
        anything = stream.integers("blanket", self.k + 1)[:, 0]
        silent = stream.uniform("replace")[:, 0] < self.gamma
        symbol = np.where(silent, anything, rounded)
        return Messages(symbol.astype(self.wire.dtype)[:, None])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the decoded reports, 0 if there are none."""
        reports = int(counts.sum())
        if reports == 0:
            return np.zeros(1)
        # Whole numbers up to here, so the order of the reports leaves no trace.
        total = int(counts[0] @ np.arange(self.k + 1))
        z = (total / (reports * self.k) - 0.5 * self.gamma) / self.kept
        return np.array([self.radius * (2.0 * z - 1.0)])

    def event(self) -> LocalReport:
        """Return the report's loss, which equals `epsilon_local` as far as 53-bit draws reach."""
        exact = self.need_epsilon()
        return LocalReport(math.inf if exact > _MOST_LOSS else exact)

    def randomizer(self) -> str:
        """Name the law: randomized response of the rounded value."""
        return "krr"

    def alphabet(self) -> int:
        """Return the number of points."""
        return self.k + 1

    def mse(self, values: Floats) -> Floats:
        """Return the variance of a decoded report: of its rounding and of the blanket."""
        below, rest = self._split(values)
        t = below + rest
        return self._error(t, rest)

    def worst_mse(self) -> float:
        """Return the largest error, which is attained between an end and the point next to it.

        Up to a constant it is gamma (t - k/2)^2 + rest (1 - rest): the first term grows outwards
        and the second repeats, so the outermost step holds the maximum; there it is concave.
        """
        rest = max(0.0, (1.0 - self.gamma * self.k) / (2.0 * self.kept))
        worst = np.array([min(rest, 1.0)])
        return float(self._error(worst, worst)[0])

    def _error(self, t: Floats, rest: Floats) -> Floats:
        k, gamma, kept = self.k, self.gamma, self.kept
        # Of the law of the report, about the middle: (1 - gamma) rounded + gamma uniform.
        spread = gamma * kept * (t - 0.5 * k) ** 2 + kept * rest * (1.0 - rest)
        variance = spread + gamma * k * (k + 2) / 12.0
        return np.asarray(variance * (2.0 * self.radius / (k * kept)) ** 2)

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probability of every point."""
        below, rest = self._split(values)
        law = np.full((len(values), self.k + 1), self.gamma / (self.k + 1))
        rows, place = np.arange(len(values)), below.astype(np.int64)
        law[rows, place] += self.kept * (1.0 - rest)
        law[rows, place + 1] += self.kept * rest
        return [law]
