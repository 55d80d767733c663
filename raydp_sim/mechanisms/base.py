"""The interface of every mechanism: what a client does to a value before it leaves."""

import math
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.domain import Admitted, Clip
from raydp_sim.mechanisms.domain import Domain as Domain
from raydp_sim.mechanisms.wires.base import Counts as Counts
from raydp_sim.mechanisms.wires.base import Wire
from raydp_sim.privacy.events import Event, Release
from raydp_sim.random import ClientStream, Stream
from raydp_sim.registry import Piece

Floats = NDArray[np.float64]
# Beyond these limits sums in fixed point and products of squares leave the range of doubles.
LIMITS = (1e-9, 1e9)


def _sensible(value: float) -> float:
    # A hair of room, for what is calibrated to stay a hair below a limit.
    if not LIMITS[0] * (1.0 - 1e-9) <= value <= LIMITS[1]:
        raise ValueError(f"it must lie between {LIMITS[0]:g} and {LIMITS[1]:g}")
    return value


Positive = Annotated[float, Field(gt=0), AfterValidator(_sensible)]


class Target(Piece):
    """A central guarantee for the whole run, from which a mechanism is calibrated.

    Fields:
        epsilon: of the whole run, for a client in every release.
        delta: that goes with it.
    """

    kind: ClassVar[str] = "target"
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Messages(NamedTuple):
    """What `n` clients send: `payload[i, l]` is message l of client i.

    `clipped` counts the values that the mechanism itself had to clip, for the analyst. `keys[i, j]`
    is for the readers of level j alone, where there are levels.
    """

    payload: Any  # an array; of whoever only adds it up, perhaps rows that are still to be scaled
    clipped: int = 0
    keys: NDArray[Any] | None = None


class Mechanism(Piece):
    """A randomizer with its wire encoding, its decoder, its error and its guarantee.

    A subclass has `domain`, `wire`, `messages`, `decode` and `event`; `mse`, `worst_mse` and `laws`
    are its own choice. It declares where the noise is drawn, how its messages are routed and which
    kind of guarantee it gives; `raydp_sim.check` picks its checks by these declarations.

    Fields every mechanism has:
        dimension: length of a client's vector; a scenario fills it in from its data.
        clients: size of the population, for mechanisms whose parameters depend on it.
        epsilon_local: guarantee of one client's whole report. Exactly one of this and `target`.
        target: guarantee of the whole run instead: behind a shuffler the largest local guarantee
            that meets it is found, otherwise it is shared out evenly over the rounds.
        on_out_of_range: `refuse` values outside the domain (default), or `clip` and count
            them.
        clip: how vectors outside an l_inf ball are clipped: `clamp` every coordinate (default), or
            scale the vector down (`radial`), which keeps its direction.
    """

    where: ClassVar[Literal["client", "aggregator"]] = "client"
    routing: ClassVar[Literal["per-index", "single"]] = "per-index"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only", "none"]] = "pure"
    # What `decode` gives: an estimate of the mean of the values, or the majority of votes.
    tells: ClassVar[Literal["mean", "majority"]] = "mean"
    # Whether two values of the domain attain the loss that `event` states.
    tight: ClassVar[bool] = False
    # Whether a report is a vector of an l2 ball and normal noise of `noise_multiplier`.
    normal: ClassVar[bool] = False
    # Whether its messages are the values themselves, which its wire scales as it adds them up.
    sends_values: ClassVar[bool] = False
    # Whether its error for one mean says something beside others' (`compare`).
    compared: ClassVar[bool] = True
    # The fields that hold the guarantee of one report or release; the second may be None.
    epsilon_field: ClassVar[str] = "epsilon_local"
    delta_field: ClassVar[str | None] = None
    # Fields that a task fills in and no scenario may: what is charged rests on them.
    filled: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str]
    # Parameters that it is checked with.
    examples: ClassVar[tuple[dict[str, Any], ...]]

    dimension: Annotated[int, Field(ge=1)] | None = None
    clients: Annotated[int, Field(ge=1)] | None = None
    epsilon_local: Positive | None = None
    target: Target | None = None
    on_out_of_range: Literal["refuse", "clip"] = "refuse"
    clip: Clip = "clamp"

    @model_validator(mode="after")
    def _one_guarantee(self) -> "Mechanism":
        self.check_guarantee()
        return self

    def check_guarantee(self) -> None:
        """Refuse more or fewer guarantees than one.

        Raises:
            ValueError: says which fields to give.
        """
        name, delta_name = self.epsilon_field, self.delta_field
        if self.guarantee == "none":
            if self.epsilon_local is not None or self.target is not None:
                raise ValueError(f"'{self.kind}' adds no noise; leave epsilon_local and target out")
            return
        if name != "epsilon_local" and self.epsilon_local is not None:
            raise ValueError(
                f"epsilon_local is {self.epsilon_local:g}, but '{self.kind}' gives no local "
                f"guarantee; give {name} instead"
            )
        if (getattr(self, name) is None) == (self.target is None):
            raise ValueError(f"give exactly one of {name} and target: {{epsilon, delta}}")
        if delta_name is not None:
            if (getattr(self, delta_name) is None) == (self.target is None):
                raise ValueError(f"give {delta_name} in (0, 1) with {name}, and not with target")
            if self.target is not None and self.target.delta == 0.0:
                raise ValueError(
                    f"target.delta is 0; '{self.kind}' has no pure guarantee, so it must lie in "
                    "(0, 1)"
                )

    # What is sent.

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The values that `messages` accepts."""

    @property
    @abstractmethod
    def wire(self) -> Wire:
        """The form of a report; the methods below that pack and sum reports ask it."""

    @property
    def messages_per_report(self) -> int:
        """Number of messages in one client's report (1 for a single-message mechanism)."""
        return self.wire.messages

    @property
    def bits(self) -> int:
        """Bits of one client's report in the packed wire encoding."""
        return self.wire.bits

    @abstractmethod
    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Randomize values that `domain.admit` has let through, one row per client."""

    def messages_of(self, admitted: Admitted, stream: ClientStream) -> Messages:
        """Randomize what was admitted: `messages`, for whoever need not look at all of it."""
        return self.messages(admitted.values, stream)

    # Noise inside local steps (`randomizer.Walk`): most mechanisms randomize a value once.

    @property
    def inner_steps(self) -> int:
        """Noisy steps that one report is the mean of; 0: its values are randomized once."""
        return 0

    @property
    def inner_domains(self) -> tuple[Domain, ...]:
        """Of the parts of a step, in order: each is clipped and made noisy by itself."""
        raise NotImplementedError

    def noisy(self, part: int, step: int, values: Floats, stream: ClientStream) -> Floats:
        """Return values of one part of a step with its noise; each step draws its own."""
        raise NotImplementedError

    def admit(self, values: Any, ids: Any) -> Admitted:
        """Check values against the domain; clip them if `on_out_of_range` says so.

        Raises:
            InputError: names the client and the coordinate of the first value refused.
        """
        return self.domain.admitted(values, ids, self.on_out_of_range, self.clip)

    def randomize(self, values: Any, stream: ClientStream) -> Messages:
        """Check the values against the domain, then randomize them."""
        return self.messages_of(self.admit(values, stream.ids), stream)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into ceil(bits / 8) bytes."""
        return self.wire.encode(payload)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Recover the payload from its packed form; the inverse of `encode`."""
        return self.wire.unpack(wire)

    # What is learned from it.

    def zero(self) -> Counts:
        """Return an empty accumulator: integers, so that sums are exact in any order."""
        return self.wire.zero()

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the accumulator after a chunk of messages.

        Args:
            counts: the accumulator so far.
            index: message index (0..messages_per_report-1) of every row.
            payload: the rows, in any order.
        """
        return self.wire.fold(counts, index, payload)

    @abstractmethod
    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the clients' values from the accumulator.

        `stream` is where an aggregator-side mechanism draws its noise.
        """

    # What it costs.

    @property
    def epsilon_of_report(self) -> float | None:
        """The loss of one report alone; None where only a whole release has a guarantee."""
        alone = self.where == "client" and self.guarantee != "shuffled-only"
        return self.event().epsilon if alone else None

    @abstractmethod
    def event(self) -> Event:
        """Return the privacy event of one report or release."""

    def losses(self) -> tuple[float, ...] | None:
        """Return the loss of each message of a report, for the accounting of shuffles.

        A mechanism whose messages are independent given the value states them one by one, each for
        a shuffler of its own. One that does not (None) gains nothing from being shuffled, and one
        whose messages are correlated, such as shares of a secret, must not state any.
        """
        return (self.event().epsilon,) if self.messages_per_report == 1 else None

    @property
    def entropy(self) -> float:
        """Bits of randomness that a report draws, for the value that takes most; none public.

        Only mechanisms with a finite alphabet state it.
        """
        raise NotImplementedError

    def noise_multiplier(self) -> float:
        """Return the noise's standard deviation over the ball's diameter, if it is `normal`."""
        raise NotImplementedError

    def release(self) -> Release | None:
        """Return what one release is, beyond its (epsilon, delta), where its noise is known.

        Of a trusted aggregator's noise, what is released; of normal noise that clients add, a
        `GaussianReport`.
        """
        return None

    def randomizer(self) -> str | None:
        """Return the name under which `privacy.variation` knows one message, if it does."""
        return None

    def alphabet(self) -> int | None:
        """Return how many symbols that law has, where its bounds depend on it."""
        return None

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact E||decoded report - value||^2.

        The mean of n clients then has the error sum(mse) / n^2.
        """
        raise NotImplementedError

    def worst_mse(self) -> float:
        """Return the largest value of `mse` over the domain, or what bounds it."""
        raise NotImplementedError

    @property
    def worst_mse_is(self) -> Literal["exact", "bound"]:
        """Whether some value of the domain attains `worst_mse`."""
        return "exact"

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return the variance of each coordinate of the mean that so many reports are decoded to.

        Of the noise alone, given the values; `mean` is the estimate, for those whose noise depends
        on them. By default the total for the worst values, which is never too small, shared out
        evenly: exact where the noise is the same for all values and coordinates.
        """
        if self.where == "client":
            total = self.worst_mse() / reports
        else:
            # Noise at the aggregator depends on how many values there are, not on what they are.
            anything = np.broadcast_to(0.0, (reports, self.domain.width))
            total = float(self.mse(anything).sum()) / reports**2
        return np.full(len(mean), total / len(mean))

    @property
    def bias(self) -> str:
        """When the estimate is not the mean in expectation, in words; empty where it always is."""
        return ""

    def laws(self, values: Floats) -> list[Floats]:
        """Return, per message, the exact output probabilities, shape (n, alphabet).

        Given the value, the messages of a report are independent. Only mechanisms with a finite
        alphabet have this.
        """
        raise NotImplementedError

    def for_batches(self, honest: int) -> "Mechanism":
        """Return the mechanism for batches that all have at least so many honest clients.

        Only a mechanism whose guarantee needs them has to know.
        """
        return self

    def for_run(self, releases: int, reports: int) -> "Mechanism":
        """Return the mechanism for a run of so many releases, of about so many reports each.

        Only a mechanism whose noise is chosen for all of them has to know.
        """
        return self

    def calibrated(self, releases: int) -> "Mechanism":
        """Return the mechanism with `target` turned into a guarantee per release.

        Basic composition: a client takes part in at most `releases` releases, so each may spend
        target / releases of epsilon and of delta.
        """
        if self.target is None:
            return self
        rounds = max(1, releases)
        share = {self.epsilon_field: self.target.epsilon / rounds, "target": None}
        if self.delta_field is not None:
            delta = self.target.delta / rounds
            # Rounding must not make the shares add up to more than the target.
            fits = delta * rounds <= self.target.delta
            share[self.delta_field] = delta if fits else math.nextafter(delta, 0.0)
        return type(self).model_validate({**self.model_dump(), **share})

    def need_epsilon(self) -> float:
        """Return the epsilon of one report or release, or refuse a mechanism not yet calibrated."""
        epsilon: float | None = getattr(self, self.epsilon_field)
        if epsilon is None:
            raise InputError(
                f"mechanism '{self.kind}' has a target for the whole run and no "
                f"{self.epsilon_field}; call calibrated(releases)"
            )
        return epsilon

    def need_delta(self) -> float:
        """Return the delta of one report or release: 0 for a mechanism without one."""
        delta: float | None = getattr(self, self.delta_field) if self.delta_field else 0.0
        if delta is None:
            raise InputError(f"mechanism '{self.kind}' has no {self.delta_field}; calibrate it")
        return delta

    def need_dimension(self) -> int:
        """Return the dimension, or refuse a mechanism that was never given one."""
        if self.dimension is None:
            raise InputError(f"mechanism '{self.kind}' has no dimension; give dimension=d")
        return self.dimension
