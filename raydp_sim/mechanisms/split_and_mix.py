"""Summation by mixed shares: nothing but a noisy sum leaves the shuffler."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.budget import SLACK
from raydp_sim.mechanisms.parts.polya import PolyaNoise
from raydp_sim.mechanisms.wires.shares import Shares
from raydp_sim.privacy.curves.shares import least_messages, log_distance
from raydp_sim.privacy.events import ShuffledRelease
from raydp_sim.random import ClientStream, Stream

# The noise leaves the modulus, and the estimate is off by a whole turn, at most this often.
_OVERFLOW = 2.0**-40
_MOST_SHARES = 1000


class SplitAndMix(Mechanism):
    """Send a rounded number plus a share of noise as several shares modulo q, all to one shuffler.

    Balle, Bell, Gascon & Nissim 2020, "Private summation in the multi-message shuffle model"; Ghazi
    et al. 2020, "Private aggregation from fewer anonymous messages"; after Ishai et al. 2006.

    The number becomes t = steps (x + radius) / (2 radius), rounded at random to a whole number with
    that mean. The client adds the difference of two Polya variables, so that `noise_clients`
    clients together add discrete Laplace noise of scale steps / epsilon, and splits the result into
    shares modulo q = 2^b. The sum of all shares, centred, is the noisy sum.

    Guarantee: a release of at least `noise_clients` honest clients is (epsilon, delta)-DP under
    replacement of one client's value, for a server that sees the mixed shares. If all it saw were
    uniform numbers with the same sum, the release would be epsilon-DP: whatever the rounding, the
    sum moves by at most `steps`. The mixed shares are within a distance tau of such numbers
    (`privacy.shares` has the proof, for any values), and the noise as drawn within a distance
    kappa of the exact law. So delta = (1 + e^epsilon)(tau + kappa), and there are as many shares
    as keep it within the one declared. More clients only add independent messages; clients that
    do not follow the protocol are not counted. A single report hides nothing, so there is no local
    guarantee, and a smaller batch must never be released.

    Each client errs by its rounding, rest (1 - rest), and its noise, 2 a / (noise_clients (1 -
    a)^2) with a = e^(-epsilon / steps), in steps^2. The modulus leaves room for all `clients`: the
    noise overflows it with probability at most 2^-40, which the stated error leaves out.

    Fields:
        radius: numbers lie in [-radius, radius], > 0.
        epsilon, delta: guarantee of one release. Exactly one of these and `target`.
        noise_clients: honest clients that every release can count on; a scenario takes them from
            shuffle.min_batch and privacy.honest_fraction. Otherwise all `clients`.
        steps: that the interval is cut into; by default 2 epsilon sqrt(clients), rounded up,
            which makes rounding at most 1/32 of the noise.
        shares: messages of one report; by default as few as are proved to be enough.

    Example:
        >>> mechanism = SplitAndMix(epsilon=1.0, delta=1e-6, radius=0.5, clients=10_000)
        >>> mechanism.messages_per_report, mechanism.bits
        (7, 147)
    """

    kind: ClassVar[str] = "split-and-mix"
    routing: ClassVar[Literal["per-index", "single"]] = "single"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only", "none"]] = "shuffled-only"
    epsilon_field: ClassVar[str] = "epsilon"
    delta_field: ClassVar[str | None] = "delta"
    source: ClassVar[str] = "Balle et al. 2020; Ghazi et al. 2020"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon": 0.1, "delta": 1e-4, "radius": 2.0, "clients": 9, "dimension": 1, "steps": 1},
        {"epsilon": 1.0, "delta": 1e-6, "radius": 0.5, "clients": 50, "noise_clients": 5},
        {"epsilon": 4.0, "delta": 1e-8, "radius": 1.0, "clients": 10**6, "noise_clients": 3},
        {"epsilon": 1.0, "delta": 1e-9, "radius": 1.0, "clients": 2000, "noise_clients": 1},
    )

    radius: Positive
    epsilon: Positive | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    noise_clients: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    shares: Annotated[int, Field(ge=3, le=_MOST_SHARES)] | None = None

    @model_validator(mode="after")
    def _one_number(self) -> "SplitAndMix":
        if self.dimension not in (None, 1):
            raise ValueError(
                f"dimension is {self.dimension}; 'split-and-mix' takes one number, so it must be 1"
            )
        if None not in (self.clients, self.noise_clients):
            if (self.noise_clients or 0) > (self.clients or 0):
                raise ValueError(
                    f"noise_clients is {self.noise_clients}; there are only {self.clients} "
                    "clients, so lower it"
                )
        return self

    def for_batches(self, honest: int) -> "SplitAndMix":
        """Calibrate the noise to the smallest batch, or refuse noise that counts on a larger one.

        Raises:
            InputError: `noise_clients` is more than every batch is sure to have.
        """
        if self.noise_clients is None:
            enough = min(honest, self.need_clients())
            return type(self).model_validate({**self.model_dump(), "noise_clients": enough})
        if self.noise_clients > honest:
            remedy = (
                f"a batch of shuffle.min_batch clients has only {honest} that are honest, whose "
                "noise would be too small; raise shuffle.min_batch, or lower it or leave it out"
            )
            raise bad_field("mechanism.noise_clients", self.noise_clients, remedy)
        return self

    @property
    def domain(self) -> Domain:
        """The interval."""
        return Domain("linf", self.radius, 1)

    def need_clients(self) -> int:
        """Return the size of the population, or refuse a mechanism that was never given one."""
        if self.clients is None:
            raise InputError("mechanism 'split-and-mix' has no clients; give clients=n")
        return self.clients

    @property
    def honest(self) -> int:
        """Clients whose noise together is enough."""
        return self.need_clients() if self.noise_clients is None else self.noise_clients

    @cached_property
    def top(self) -> int:
        """Steps between the ends of the interval."""
        if self.steps is not None:
            return self.steps
        return math.ceil(2.0 * self.need_epsilon() * math.sqrt(self.need_clients()))

    @cached_property
    def noise(self) -> PolyaNoise:
        """A client's share of the noise."""
        return PolyaNoise(self.honest, self.top / (self.need_epsilon() * (1.0 - SLACK)))

    @cached_property
    def width(self) -> int:
        """Bits b of a share: the least for which the noise of all clients fits beside the sum."""
        most = self.need_clients() * self.top
        for width in range(most.bit_length(), 63):
            room = ((1 << width) - 1 - most) // 2
            if room >= 0 and self.noise.tail(self.need_clients(), room) <= _OVERFLOW:
                return width
        raise bad_field("mechanism.steps", self.top, "the sum would not fit into 62 bits; lower it")

    def proved_delta(self, shares: int) -> float:
        """Return the delta that is proved for so many shares; see `wire` for how many there are."""
        mixed = log_distance(self.honest, shares, self.width * math.log(2.0))
        drawn = math.log(self.noise.sampling_error)
        return math.exp(min(0.0, self._log_factor + float(np.logaddexp(mixed, drawn))))

    @property
    def _log_factor(self) -> float:
        """Of the factor 1 + e^epsilon."""
        return float(np.logaddexp(0.0, self.need_epsilon()))

    @cached_property
    def wire(self) -> Shares:
        """The shares of one number, as many as the declared delta needs.

        Raises:
            InputError: if no number of shares, or not the given one, is proved to be enough.
        """
        drawn, allowed = self.noise.sampling_error, self.need_delta()
        left = math.log(allowed) - self._log_factor
        if math.log(drawn) >= left:
            remedy = (
                f"draws blur the noise of {self.honest} clients by {drawn:.1g}, so at "
                f"epsilon {self.need_epsilon():g} no smaller one than "
                f"{math.exp(min(0.0, math.log(drawn) + self._log_factor)):.1g} is proved; raise it "
                "or lower mechanism.steps"
            )
            raise bad_field("mechanism.delta", allowed, remedy)
        left += math.log1p(-drawn / math.exp(left))
        fewest = least_messages(self.honest, self.width * math.log(2.0), left, _MOST_SHARES)
        if fewest is None:
            remedy = f"more than {_MOST_SHARES} shares would be needed; raise it"
            raise bad_field("mechanism.delta", allowed, remedy)
        if self.shares is not None and self.shares < fewest:
            remedy = f"delta {allowed:g} needs {fewest} shares; raise it or leave it out"
            raise bad_field("mechanism.shares", self.shares, remedy)
        return Shares(self.shares or fewest, self.width)

    def _split(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the point below, and how far the value is on the way to the next."""
        t = (values[:, 0] + self.radius) * (self.top / (2.0 * self.radius))
        # Rounding may reach a hair beyond the ends.
        t = np.clip(t, 0.0, float(self.top))
        below = np.minimum(np.floor(t), self.top - 1.0)
        return below, t - below

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Round, add noise, and split."""
        below, rest = self._split(values)
        rounded = below + (stream.uniform("round")[:, 0] < rest)
        noisy = rounded.astype(np.int64) + self.noise.draw(stream)
        return Messages(self.wire.split(noisy, stream))

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean from the noisy sum; with no client there is nothing to release, so 0.

        Raises:
            ValueError: if a share is missing, which leaves nothing of the sum.
        """
        reports, missing = divmod(int(counts[-1]), self.wire.messages)
        if missing:
            raise ValueError(
                f"{int(counts[-1])} messages are not whole reports of {self.wire.messages} shares"
            )
        if reports == 0:
            return np.zeros(1)
        # The noise is as likely below 0 as above the largest sum, so both get the same room.
        modulus = 1 << self.width
        room = (modulus - 1 - reports * self.top) // 2
        total = (self.wire.total(counts) + room) % modulus - room
        return np.array([self.radius * (2.0 * total / (reports * self.top) - 1.0)])

    def event(self) -> ShuffledRelease:
        """Return the release's guarantee, which has been proved for the shares there are."""
        self.wire  # noqa: B018 - it refuses a delta that is not proved
        return ShuffledRelease(self.need_epsilon(), self.need_delta(), self.honest)

    def mse(self, values: Floats) -> Floats:
        """Return the variance of a client's rounding and noise."""
        _, rest = self._split(values)
        return np.asarray((rest * (1.0 - rest) + self.noise.variance) * self._step**2)

    def worst_mse(self) -> float:
        """Return the error halfway between two points."""
        return (0.25 + self.noise.variance) * self._step**2

    @property
    def _step(self) -> float:
        return 2.0 * self.radius / self.top
