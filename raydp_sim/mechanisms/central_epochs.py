"""Normal noise in every step of a trusted learner's epochs."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.curves.gaussian import gaussian_epsilon
from raydp_sim.privacy.events import (
    CentralRelease,
    EpochRelease,
    GaussianRelease,
    SecretEpochRelease,
)
from raydp_sim.random import ClientStream, Stream

# What an epoch alone is said to cost is said at this delta; together they are accounted otherwise.
_DELTA = 1e-12

Accountant = Literal["pabi", "secret-order", "every-step"]


class CentralEpochs(Mechanism):
    """Clients send records as they are; a trusted learner's steps along them have noise.

    A step moves by eta (g + N(0, sigma^2 I)), |g| <= G, so that one record moves it by 2 G eta at
    most, and z = sigma/(2 G) is its noise multiplier. Task `shuffled-gradients` takes such steps,
    and finds sigma for a target. By itself it is what one step is: a mean with noise z times the
    sensitivity.

    Fields:
        radius: of the l2 ball that records lie in, targets included: a public bound, from which
            the largest smoothness of any record that there could be follows.
        gradient_clip: G, to which every gradient is cut. This or `lipschitz`.
        lipschitz: G that no gradient of a record in the ball exceeds; it is checked, not enforced.
        sigma: standard deviation of a step's noise. Exactly one of this and `target`.
        accountant: `pabi`, amplification by iteration, whoever knows the order; `secret-order`,
            less noise, but only if nobody knows the order; `every-step`, as if every iterate were
            seen, which needs no bound on the step size.
        conservative: whether a target is met with twice the noise, as the author's code has it.
        share: of an epoch's steps that are along private records; the task fills it in.
    """

    kind: ClassVar[str] = "central-epochs"
    where: ClassVar[Literal["client", "aggregator"]] = "aggregator"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only", "none"]] = "approximate"
    compared: ClassVar[bool] = False  # it is made for steps, not for means
    epsilon_field: ClassVar[str] = "sigma"
    filled: ClassVar[tuple[str, ...]] = ("share",)
    source: ClassVar[str] = "Jiang 2025, Algorithm 3"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"sigma": 3.0, "gradient_clip": 1.0, "dimension": 1, "radius": 0.5},
        {"sigma": 20.0, "lipschitz": 4.0, "dimension": 3, "radius": 2.0},
    )

    radius: Positive
    gradient_clip: Positive | None = None
    lipschitz: Positive | None = None
    sigma: Positive | None = None
    accountant: Accountant = "pabi"
    conservative: bool = False
    share: Annotated[float, Field(ge=0, le=1)] = 1.0

    def check_guarantee(self) -> None:
        """Refuse more or fewer than one noise, and gradients without a bound."""
        if self.epsilon_local is not None:
            raise ValueError(
                f"epsilon_local is {self.epsilon_local:g}, but '{self.kind}' gives no local "
                "guarantee; give sigma or target instead"
            )
        if (self.sigma is None) == (self.target is None):
            raise ValueError("give exactly one of sigma and target: {epsilon, delta}")
        if self.target is not None and self.target.delta == 0.0:
            raise ValueError(
                f"target.delta is 0; '{self.kind}' has no pure guarantee, so it must lie in (0, 1)"
            )
        if (self.gradient_clip is None) == (self.lipschitz is None):
            raise ValueError(
                "give exactly one of gradient_clip and lipschitz: without a bound on gradients no "
                "noise hides a record"
            )

    @property
    def bound(self) -> float:
        """G, which no gradient that is used exceeds."""
        found = self.gradient_clip or self.lipschitz
        assert found is not None  # `check_guarantee` has seen to it
        return found

    @property
    def domain(self) -> Domain:
        """The l2 ball of records."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> Vectors:
        """One message of doubles."""
        return Vectors(self.need_dimension(), self.radius)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Send the records."""
        return Messages(values[:, None, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the records with the noise of one step in units of its sensitivity."""
        mean, clients = self.wire.mean(counts), int(counts[-1])
        if clients == 0:
            return mean
        return mean + stream.generator().normal(scale=self._spread(clients), size=len(mean))

    def calibrated(self, releases: int) -> "CentralEpochs":
        """Return the mechanism as it is: the task knows its epochs, and finds the noise."""
        return self

    def need_sigma(self) -> float:
        """Return sigma, or refuse a mechanism that no task has calibrated."""
        if self.sigma is None:
            raise InputError(
                f"mechanism '{self.kind}' has a target for a whole run; task 'shuffled-gradients' "
                "finds its noise, others cannot use it"
            )
        return self.sigma

    def need_epsilon(self) -> float:
        """Return the epsilon of an epoch by itself."""
        return self.event().epsilon

    @property
    def multiplier(self) -> float:
        """z, the noise of a step over how far one record moves it, rounded down."""
        return self.need_sigma() / (2.0 * self.bound) * (1.0 - 1e-12)

    def epoch(
        self, reports: int, together: int | None = None
    ) -> EpochRelease | SecretEpochRelease | GaussianRelease:
        """Return what an epoch over so many records is.

        Args:
            reports: n, records and steps.
            together: epochs that share an order.
        """
        private = self.private(reports)
        if self.accountant == "every-step" and private:
            return GaussianRelease(self.multiplier, unit="item")
        if self.accountant == "secret-order":
            return SecretEpochRelease(self.multiplier, reports, private, together or 1)
        return EpochRelease(self.multiplier, reports, private)

    def private(self, records: int) -> int:
        """Return how many of so many steps are along private records."""
        return int(self.share * records)

    def event(self) -> CentralRelease:
        """Return what an epoch costs at most as one (epsilon, delta)."""
        if self.share == 0.0:
            return CentralRelease(0.0, 0.0)
        return CentralRelease(gaussian_epsilon(_DELTA, self.multiplier), _DELTA)

    def need_delta(self) -> float:
        """Return the delta that goes with it."""
        return self.event().delta

    def release(self) -> GaussianRelease:
        """Return the noise of a step in units of its sensitivity: an epoch costs no more."""
        # Room for the accumulator's rounding, which grows with the dimension.
        return GaussianRelease(self.multiplier)

    def mse(self, values: Floats) -> Floats:
        """Return per client n times the error of `decode`."""
        n = max(1, len(values))
        return np.full(len(values), n * self.need_dimension() * self._spread(n) ** 2)

    def worst_mse(self) -> float:
        """Return `mse` for `clients` clients; if they are unknown, for 1, which is the largest."""
        n = self.clients or 1
        return n * self.need_dimension() * self._spread(n) ** 2

    def _spread(self, clients: int) -> float:
        """Return the standard deviation of the noise of `decode`."""
        apart = 2.0 * self.radius * (1.0 + 1e-9) + math.sqrt(self.need_dimension()) * self.wire.step
        return self.multiplier * apart / clients
