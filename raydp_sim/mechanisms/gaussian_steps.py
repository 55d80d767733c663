"""Gaussian noise inside the local steps of a client."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.model import Model
from raydp_sim.privacy.curves.adaped import Noise
from raydp_sim.privacy.curves.gaussian import gaussian_epsilon, gaussian_sigma
from raydp_sim.privacy.events import GaussianReport, LocalReport
from raydp_sim.privacy.personal import calibrated_aggregate
from raydp_sim.random import ClientStream, Stream

# What a report alone is said to lose is said at this delta, where the noise itself is given.
_DELTA = 1e-9
# Beyond so many draws per client a generator of its own is faster (`wide_normal`).
_WIDE = 64
_TAIL = 9.0


class Aggregate(Model):
    """A guarantee of the averages of all reports: argued, not proved (`privacy.personal`).

    Fields:
        epsilon, delta: of the whole run; neighbours replace one client's data.
        rounds: of the run; a scenario fills it in.
        reports: clients of a round; a scenario fills it in.
    """

    epsilon: Positive
    delta: Annotated[float, Field(gt=0, lt=1)]
    rounds: Annotated[int, Field(ge=1)] | None = None
    reports: Annotated[int, Field(ge=1)] | None = None


class GaussianSteps(Mechanism):
    """A client takes `steps` noisy steps; its report is their mean.

    In each step a direction is clipped to the l2 ball and normal noise is added to it; where there
    is a `scalar_radius`, one more number, the last, is clipped and made noisy by itself. Later
    steps may depend on earlier noise (`randomizer.Walk`), and the report is made of nothing but
    noisy steps. So it costs what its steps cost that are all seen: 2 alpha steps (C1^2/sigma1^2 +
    C2^2/sigma2^2) at order alpha, under replacement of the client's data.

    A value that is randomized as usual takes the same direction in every step, which loses most.

    Fields:
        radius: C1, of the l2 ball, > 0.
        scalar_radius: C2, of the last number, where there is one.
        steps: tau, noisy steps of one report.
        share: of the cost that the direction bears where there is a scalar, in (0, 1).
        delta_local: in (0, 1), with epsilon_local; a target's delta is shared out instead.
        sigma: standard deviation of the direction's noise, instead of epsilon_local and target.
        scalar_sigma: of the last number's, with sigma.
        aggregate: {epsilon, delta, rounds} instead of these: the noise at which the averages that a
            trusted server would publish have this guarantee if a client's later steps did not
            depend on its own earlier noise. They do, so nothing is proved by it, and the ledger
            charges what the reports really cost.

    Example:
        >>> settings = {"dimension": 2, "radius": 1.0, "scalar_radius": 0.1, "steps": 10}
        >>> made = GaussianSteps(sigma=5.0, scalar_sigma=0.5, **settings)
        >>> round(made.release().noise_multiplier, 6)
        0.559017
    """

    kind: ClassVar[str] = "gaussian-steps"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only"]] = "approximate"
    delta_field: ClassVar[str | None] = "delta_local"
    source: ClassVar[str] = "Girgis 2023, Algorithm 4.4.1"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 2.0, "delta_local": 1e-4, "dimension": 1, "radius": 0.5, "steps": 3},
        {
            "epsilon_local": 4.0,
            "delta_local": 1e-3,
            "dimension": 3,
            "radius": 2.0,
            "scalar_radius": 0.5,
            "steps": 4,
        },
    )

    radius: Positive
    scalar_radius: Positive | None = None
    steps: Annotated[int, Field(ge=1, le=100_000)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.9
    delta_local: Annotated[float, Field(gt=0, lt=1)] | None = None
    sigma: Positive | None = None
    scalar_sigma: Positive | None = None
    aggregate: Aggregate | None = None

    def check_guarantee(self) -> None:
        """Refuse more or fewer guarantees than one, or noise of a part that is not there."""
        given = [self.epsilon_local, self.target, self.sigma, self.aggregate]
        if sum(one is not None for one in given) != 1:
            raise ValueError(
                "give exactly one of epsilon_local, target: {epsilon, delta}, sigma and aggregate"
            )
        if self.target is not None and self.target.delta == 0.0:
            raise ValueError(
                f"target.delta is 0; '{self.kind}' has no pure guarantee, so it must lie in (0, 1)"
            )
        if (self.delta_local is None) == (self.epsilon_local is not None):
            raise ValueError("give delta_local in (0, 1) with epsilon_local, and only then")
        both = self.sigma is not None and self.scalar_radius is not None
        if both != (self.scalar_sigma is not None):
            raise ValueError("give scalar_sigma with sigma and scalar_radius, and only then")

    @property
    def domain(self) -> Domain:
        """The l2 ball, and the interval of the last number where there is one."""
        return Domain("l2", self.radius, self.need_dimension(), last=self.scalar_radius)

    @cached_property
    def noises(self) -> tuple[Noise, ...]:
        """Radius and standard deviation of the parts of a step."""
        radii = (self.radius,) if self.scalar_radius is None else (self.radius, self.scalar_radius)
        if self.sigma is not None:
            sigmas = (self.sigma,) if self.scalar_sigma is None else (self.sigma, self.scalar_sigma)
            return tuple(Noise(c, s) for c, s in zip(radii, sigmas, strict=True))
        shares = (1.0,) if len(radii) == 1 else (self.share, 1.0 - self.share)
        if self.aggregate is not None:
            given = self.aggregate
            if self.clients is None or given.rounds is None or given.reports is None:
                raise InputError(
                    f"mechanism '{self.kind}' has an aggregate; give clients=n, and its rounds and "
                    "reports"
                )
            run = (given.rounds, self.steps, self.clients, min(self.clients, given.reports))
            return calibrated_aggregate(given.epsilon, given.delta, run, radii, shares)
        # 1/z^2 = 4 steps (C1^2/sigma1^2 + C2^2/sigma2^2), of which each part bears its share.
        multiplier = gaussian_sigma(self.need_epsilon(), self.need_delta())
        each = 2.0 * multiplier * math.sqrt(self.steps) * (1.0 + 1e-12)
        return tuple(Noise(c, c * each / math.sqrt(w)) for c, w in zip(radii, shares, strict=True))

    @cached_property
    def wire(self) -> Vectors:
        """One message of doubles."""
        largest = max(noise.radius + _TAIL * noise.sigma for noise in self.noises)
        return Vectors(self.need_dimension(), largest)

    def for_run(self, releases: int, reports: int) -> "GaussianSteps":
        """Return the mechanism with what an aggregate guarantee needs to know of the run."""
        if self.aggregate is None:
            return self
        known = {"rounds": releases, "reports": reports}
        given = {name: getattr(self.aggregate, name) or known[name] for name in known}
        return self.model_copy(update={"aggregate": self.aggregate.model_copy(update=given)})

    # Noise inside local steps.

    @property
    def inner_steps(self) -> int:
        """Noisy steps of one report."""
        return self.steps

    @property
    def inner_domains(self) -> tuple[Domain, ...]:
        """The ball of the direction, and the interval of the last number."""
        if self.scalar_radius is None:
            return (self.domain,)
        ball = Domain("l2", self.radius, self.need_dimension() - 1)
        return ball, Domain("linf", self.scalar_radius, 1)

    def noisy(self, part: int, step: int, values: Floats, stream: ClientStream) -> Floats:
        """Add the noise of one part of one step."""
        width, purpose = values.shape[1], f"step-{step}-{part}"
        wide = width > _WIDE
        drawn = stream.wide_normal(purpose, width) if wide else stream.normal(purpose, width)
        drawn *= self.noises[part].sigma
        drawn += values
        return drawn

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Take every step in the same direction."""
        total, first = np.zeros_like(values), 0
        for part, domain in enumerate(self.inner_domains):
            columns = slice(first, first + domain.dimension)
            for step in range(self.steps):
                total[:, columns] += self.noisy(part, step, values[:, columns], stream)
            first = columns.stop
        return Messages((total / self.steps)[:, None, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the reports."""
        return self.wire.mean(counts)

    # What it costs.

    def need_epsilon(self) -> float:
        """Return the epsilon of a report, at `need_delta`."""
        known = self.sigma is not None or self.aggregate is not None
        return self.event().epsilon if known else super().need_epsilon()

    def need_delta(self) -> float:
        """Return the delta that goes with it."""
        known = self.sigma is not None or self.aggregate is not None
        return _DELTA if known else super().need_delta()

    def event(self) -> LocalReport:
        """Return the report's guarantee as one (epsilon, delta)."""
        if self.epsilon_local is not None:
            return LocalReport(self.epsilon_local, self.need_delta())
        if self.target is not None:
            super().need_epsilon()  # refuses: not yet calibrated
        return LocalReport(gaussian_epsilon(_DELTA, self.release().noise_multiplier), _DELTA)

    def release(self) -> GaussianReport:
        """Return the report as what it is: all its steps together, any of which may be seen."""
        cost = math.fsum((noise.radius / noise.sigma) ** 2 for noise in self.noises)
        return GaussianReport((1.0 - 1e-12) / math.sqrt(4.0 * self.steps * cost))

    def losses(self) -> None:
        """State none: only pure reports are amplified."""
        return None

    def mse(self, values: Floats) -> Floats:
        """Return the variance of the noise of a report."""
        return np.full(len(values), self.worst_mse())

    def worst_mse(self) -> float:
        """Return the variance of the noise of a report."""
        return float(self._variances.sum())

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return the variance of each coordinate of the mean of so many reports."""
        return self._variances / reports

    @property
    def _variances(self) -> Floats:
        widths = [domain.dimension for domain in self.inner_domains]
        return np.repeat([noise.sigma**2 / self.steps for noise in self.noises], widths)
