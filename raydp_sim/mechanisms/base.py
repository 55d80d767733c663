"""The interface of every mechanism: what a client does to a value before it leaves."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.errors import InputError
from raydp_sim.privacy.events import Event
from raydp_sim.random import ClientStream, Stream
from raydp_sim.registry import Piece

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Positive = Annotated[float, Field(gt=0)]

# Room for rounding in the data's own arithmetic; what lies inside it is clipped silently.
_TOLERANCE = 1e-9


class Target(Piece):
    """A central guarantee for the whole run, from which a mechanism is calibrated."""

    kind: ClassVar[str] = "target"
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Messages(NamedTuple):
    """What `n` clients send: `payload[i, l]` is message l of client i.

    `clipped` counts the values that the mechanism itself had to clip, for the analyst.
    """

    payload: NDArray[Any]
    clipped: int = 0


@dataclass(frozen=True)
class Domain:
    """The values a mechanism accepts: a ball of some norm, or binary vectors."""

    norm: Literal["binary", "l1", "l2", "linf"]
    radius: float
    dimension: int

    def admit(self, values: Any, ids: Any = None, on_out_of_range: str = "refuse") -> Floats:
        """Return the values as floats inside the domain, clipped if the caller allows it.

        Raises:
            InputError: names the client and the coordinate of the first value refused.
        """
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != self.dimension:
            raise InputError(
                f"values have shape {values.shape}; the mechanism takes (clients, {self.dimension})"
            )
        ids = np.arange(len(values)) if ids is None else np.asarray(ids)
        finite = np.isfinite(values)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise InputError(
                f"client {ids[row]} holds {values[row, column]} at index {column}; "
                "every value must be a finite number"
            )
        size = self._size(values)
        outside = size > self.radius * (1.0 + _TOLERANCE)
        if on_out_of_range == "refuse" and outside.any():
            row = int(np.flatnonzero(outside)[0])
            column = int(np.argmax(np.abs(values[row])))
            raise InputError(
                f"client {ids[row]} is outside the {self.describe()}: index {column} holds "
                f"{values[row, column]:.6g}; scale the data, widen mechanism.radius, or set "
                "mechanism.on_out_of_range: clip"
            )
        return self._project(values, size) if (size > self.radius).any() else values

    def describe(self) -> str:
        """Say the domain in words."""
        if self.norm == "binary":
            return "binary vectors {0, 1}^d"
        return f"{self.norm} ball of radius {self.radius:g}"

    def _size(self, values: Floats) -> Floats:
        if self.norm == "binary":
            # Distance from {0, 1}, shifted so that the domain is again `size <= radius`.
            nearest = np.minimum(np.abs(values), np.abs(values - 1.0))
            return np.asarray(self.radius * (1.0 + nearest.max(axis=1)))
        if self.norm == "linf":
            return np.asarray(np.maximum(values.max(axis=1), -values.min(axis=1)))
        if self.norm == "l1":
            return np.asarray(np.abs(values).sum(axis=1))
        return np.asarray(np.sqrt((values * values).sum(axis=1)))

    def _project(self, values: Floats, size: Floats) -> Floats:
        if self.norm == "binary":
            return np.asarray(values >= 0.5, dtype=np.float64)
        if self.norm == "linf":
            return np.clip(values, -self.radius, self.radius)
        # Scaling towards 0 stays in the ball; for l2 it is the projection.
        return np.asarray(values * np.minimum(1.0, self.radius / np.maximum(size, 1e-300))[:, None])


class Mechanism(Piece):
    """A randomizer with its wire encoding, its decoder, its error and its guarantee.

    A subclass declares where the noise is drawn, how its messages are routed and which kind of
    guarantee it gives; the shared test-suite picks its checks by these declarations.

    Fields every mechanism has:
        dimension: length of a client's vector; a scenario fills it in from its data.
        clients: size of the population, for mechanisms whose parameters depend on it.
        epsilon_local: guarantee of one client's whole report. Exactly one of this and `target`.
        target: central guarantee of the whole run.
        on_out_of_range: `refuse` values outside the domain (default), or `clip` them.
    """

    where: ClassVar[Literal["client", "aggregator"]] = "client"
    routing: ClassVar[Literal["per-index", "single"]] = "per-index"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only"]] = "pure"
    source: ClassVar[str]
    # Parameters, and inputs inside the domain, that the shared test-suite checks it with.
    examples: ClassVar[tuple[dict[str, Any], ...]]

    dimension: Annotated[int, Field(ge=1)] | None = None
    clients: Annotated[int, Field(ge=1)] | None = None
    epsilon_local: Positive | None = None
    target: Target | None = None
    on_out_of_range: Literal["refuse", "clip"] = "refuse"

    @model_validator(mode="after")
    def _one_guarantee(self) -> "Mechanism":
        if (self.epsilon_local is None) == (self.target is None):
            raise ValueError("give exactly one of epsilon_local and target: {epsilon, delta}")
        return self

    # What is sent.

    @property
    def domain(self) -> Domain:
        """The values that `messages` accepts."""
        raise NotImplementedError

    @property
    def messages_per_report(self) -> int:
        """Number of messages in one client's report (1 for a single-message mechanism)."""
        return 1

    @property
    def bits(self) -> int:
        """Bits of one client's report in the packed wire encoding."""
        raise NotImplementedError

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Randomize values that `domain.admit` has let through, one row per client."""
        raise NotImplementedError

    def randomize(self, values: Any, stream: ClientStream) -> Messages:
        """Check the values against the domain, then randomize them."""
        return self.messages(self.domain.admit(values, stream.ids, self.on_out_of_range), stream)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into ceil(bits / 8) bytes."""
        raise NotImplementedError

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Recover the payload from its packed form; the inverse of `encode`."""
        raise NotImplementedError

    # What is learned from it.

    def zero(self) -> Counts:
        """Return an empty accumulator: integers, so that sums are exact in any order."""
        raise NotImplementedError

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the accumulator after a chunk of messages.

        Args:
            counts: the accumulator so far.
            index: message index (0..messages_per_report-1) of every row.
            payload: the rows, in any order.
        """
        raise NotImplementedError

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the clients' values from the accumulator.

        `stream` is where an aggregator-side mechanism draws its noise.
        """
        raise NotImplementedError

    # What it costs.

    def event(self) -> Event:
        """Return the privacy event of one report or release."""
        raise NotImplementedError

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact E||decoded report - value||^2."""
        raise NotImplementedError

    def worst_mse(self) -> float:
        """Return the largest value of `mse` over the domain."""
        raise NotImplementedError

    def laws(self, values: Floats) -> list[Floats]:
        """Return, per message, the exact output probabilities, shape (n, alphabet).

        Given the value, the messages of a report are independent. Only mechanisms with a finite
        alphabet have this.
        """
        raise NotImplementedError

    def calibrated(self, releases: int) -> "Mechanism":
        """Return the mechanism with `target` turned into a guarantee per release.

        Basic composition: a client takes part in at most `releases` releases, so each may spend
        target / releases of epsilon and of delta.
        """
        if self.target is None:
            return self
        share = {"epsilon_local": self.target.epsilon / max(1, releases), "target": None}
        return type(self).model_validate({**self.model_dump(), **share})

    def need_dimension(self) -> int:
        """Return the dimension, or refuse a mechanism that was never given one."""
        if self.dimension is None:
            raise InputError(f"mechanism '{self.kind}' has no dimension; give dimension=d")
        return self.dimension


def pack_bits(symbols: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Pack rows of unsigned symbols of `width` bits each into whole bytes, first symbol first.

    Example:
        >>> pack_bits(np.array([[5, 3]]), 3).tolist()
        [[172]]
    """
    shifts = np.arange(width - 1, -1, -1, dtype=np.uint64)
    bits = (symbols.astype(np.uint64)[..., None] >> shifts) & np.uint64(1)
    return np.packbits(bits.reshape(len(symbols), -1).astype(np.uint8), axis=1)


def unpack_bits(wire: NDArray[np.uint8], width: int, symbols: int) -> NDArray[np.uint64]:
    """Undo `pack_bits`: return (n, symbols) unsigned integers.

    Example:
        >>> unpack_bits(np.array([[172]], np.uint8), 3, 2).tolist()
        [[5, 3]]
    """
    bits = np.unpackbits(wire, axis=1)[:, : width * symbols].reshape(len(wire), symbols, width)
    shifts = np.arange(width - 1, -1, -1, dtype=np.uint64)
    return np.asarray((bits.astype(np.uint64) << shifts).sum(axis=2), dtype=np.uint64)


def index_bits(alphabet: int) -> int:
    """Return the bits of one symbol out of `alphabet`: ceil(log2), and 0 for a single one."""
    return max(0, math.ceil(math.log2(alphabet)))
