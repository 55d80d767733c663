"""k-ary randomized response."""

import math
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages
from raydp_sim.mechanisms.parts.categories import (
    Categories,
    allowed,
    check_width,
    stated,
    step_up,
    symbols,
)
from raydp_sim.mechanisms.parts.entropy import law_entropy
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class _Law(NamedTuple):
    """A report is each category with probability `each`, and else (`kept`) the client's own."""

    each: float
    kept: float


class KaryResponse(Mechanism):
    """Send the category with probability e^epsilon_local / (e^epsilon_local + k - 1), else another.

    Kairouz, Bonawitz & Ramage 2016. The decoded frequencies are unbiased, and with p =
    e^epsilon_local a client's error is (k - 1)(2 p + k - 2) / (p - 1)^2 for every category.

    All other categories are exactly equally likely. Their probability is a multiple of 2^-53,
    rounded up, so the loss is exact for what is drawn and never above epsilon_local.

    Fields:
        categories: how many there are, k, 2..1048576; clients hold whole numbers 0..k-1.

    Example:
        >>> round(KaryResponse(epsilon_local=1.0, categories=10).worst_mse(), 6)
        40.958301
    """

    kind: ClassVar[str] = "krr"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Kairouz, Bonawitz & Ramage 2016"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "categories": 5},
        {"epsilon_local": 0.1, "categories": 8, "dimension": 1},
        {"epsilon_local": 6.0, "categories": 20},
    )

    categories: Categories

    @model_validator(mode="after")
    def _fits(self) -> "KaryResponse":
        check_width(self.kind, self.dimension, self.categories)
        if self.epsilon_local is not None:
            wanted = -math.expm1(-self.epsilon_local)
            wanted /= 1.0 + (self.categories - 1) * math.exp(-self.epsilon_local)
            if self._law.kept < 0.5 * wanted:
                raise ValueError(
                    f"epsilon_local is {self.epsilon_local:g} with {self.categories} categories; "
                    "draws of 53 bits cannot keep a category so rarely: raise epsilon_local, or "
                    "see 'hadamard-response'"
                )
        return self

    @property
    def domain(self) -> Domain:
        """One of the categories."""
        return Domain("category", 1.0, self.categories)

    @cached_property
    def wire(self) -> Symbols:
        """One category."""
        return Symbols(self.categories)

    @cached_property
    def _law(self) -> _Law:
        q = math.exp(-allowed(self.need_epsilon()))
        each = step_up(q / (1.0 + (self.categories - 1) * q))
        return _Law(each, 1.0 - self.categories * each)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Replace some of the categories by uniform ones."""
        width, count = self._law.each, self.categories

        def draw(own: Floats, part: ClientStream) -> NDArray[Any]:
            # Interval j of length `each` is category j; past the last one the own one is kept. The
            # quotient of whole numbers below 2^53 never rounds up to the next whole number, so each
            # interval holds exactly each * 2^53 of the draws.
            place = part.uniform("report")[:, 0]
            place /= width
            return np.where(place < count, place, own)

        return symbols(values, stream, self.wire.dtype, draw)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the frequencies."""
        received = int(counts.sum())
        raw = counts[0] - received * self._law.each
        return np.asarray(raw / (self._law.kept * max(1, received)))

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        return stated(self.need_epsilon(), math.log1p(self._law.kept / self._law.each))

    def randomizer(self) -> str:
        """Name the message's law."""
        return "krr"

    def alphabet(self) -> int:
        """Return the number of categories."""
        return self.categories

    @property
    def entropy(self) -> float:
        """Bits of randomness of a report, the same for every category."""
        return float(law_entropy(self.laws(np.zeros((1, 1)))[0])[0])

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error, the same for every category."""
        return np.full(len(values), self.worst_mse())

    def worst_mse(self) -> float:
        """Return the error of a client: sum_y P(y) (1 - P(y)) / kept^2."""
        each, kept = self._law
        return (self.categories - 1) * each * (1.0 + kept) / kept**2

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return P(y) (1 - P(y)) / kept^2, over who holds y and who does not, at these shares."""
        each, kept = self._law
        share, own = np.clip(mean, 0.0, 1.0), each + kept
        spread = share * own * (1.0 - own) + (1.0 - share) * each * (1.0 - each)
        return np.asarray(spread / (kept**2 * reports))

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of the categories."""
        return [self._law.each + self._law.kept * self.domain.embed(values)]
