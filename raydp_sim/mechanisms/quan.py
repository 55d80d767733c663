"""Quan: the quantiser of R_2 by itself, without privacy."""

import math
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.quantiser import Mode, balls, quantiser_mse
from raydp_sim.mechanisms.wires.signed_histogram import SignedHistogram
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class Quan(Mechanism):
    """Send an l2 vector as a signed histogram of d balls in d bins. It hides nothing.

    Mayekar & Tyagi 2020, SimQ; Girgis et al. 2021, Algorithm 5 and Lemma 4. Unbiased; the error is
    exact, see `mse`. With A the radius it is at most A^2 with a sign per ball ("iid"). With one
    sign for all balls, as Algorithm 5 is printed ("seed"), it is A^2 (d - 1) at A e_1 and tends to
    A^2 d at small multiples of e_1, so Lemma 4's 2 A^2 fails. SimQ itself ("simq") drops balls
    instead of turning their sign and errs least.

    Fields:
        radius: of the l2 ball, > 0.
        quantiser: "iid" signs, one sign for all balls ("seed"), or "simq".

    Example:
        >>> Quan(dimension=5, radius=2.0).worst_mse()
        4.0
    """

    kind: ClassVar[str] = "quan"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only", "none"]] = "none"
    source: ClassVar[str] = "Girgis et al. 2021, Algorithm 5"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"dimension": 1, "radius": 0.5},
        {"dimension": 3, "radius": 2.0},
        {"dimension": 4, "radius": 1.0, "quantiser": "seed"},
        {"dimension": 5, "radius": 1.0, "quantiser": "simq"},
    )

    radius: Positive
    quantiser: Mode = "iid"

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> SignedHistogram:
        """One message, a signed histogram."""
        return SignedHistogram(self.need_dimension(), self.quantiser == "simq")

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Throw the balls."""
        sent = balls(values, self.radius, self.quantiser, stream, self.wire.dtype)
        return Messages(sent[:, None, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the scaled histograms."""
        return np.asarray(self.radius / math.sqrt(self.need_dimension()) * self.wire.mean(counts))

    def event(self) -> LocalReport:
        """Return an infinite loss: some reports rule values out."""
        return LocalReport(math.inf)

    def need_epsilon(self) -> float:
        """Refuse: there is none."""
        raise InputError("'quan' adds no noise and has no epsilon; use 'r2'")

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return quantiser_mse(values, self.radius, self.quantiser)

    def worst_mse(self) -> float:
        """Return the largest error over the ball.

        iid: at 0. simq: where all entries are equal, at the surface (d = 1: half way). seed: the
        limit at small multiples of e_1.
        """
        d, square = self.need_dimension(), self.radius**2
        if self.quantiser == "simq":
            return square * (0.25 if d == 1 else 1.0 - 1.0 / d)
        return square * (d if self.quantiser == "seed" else 1.0)

    @property
    def worst_mse_is(self) -> Literal["exact", "bound"]:
        """Whether some value of the domain attains `worst_mse`; "seed" only comes close."""
        return "bound" if self.quantiser == "seed" and self.need_dimension() > 1 else "exact"
