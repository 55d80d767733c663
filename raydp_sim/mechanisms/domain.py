"""The values a mechanism accepts, and how values outside are refused or clipped."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.errors import InputError

Floats = NDArray[np.float64]

# Room for rounding in the data's own arithmetic; what lies inside it is clipped silently.
_TOLERANCE = 1e-9
# Doubles looked at together when values are checked.
_CACHED = 1 << 15


Clip = Literal["clamp", "radial"]
"""How a vector outside an l_inf ball is clipped: coordinate by coordinate, or scaled down."""


@dataclass(frozen=True, eq=False)
class Admitted:
    """Values inside a domain.

    Attributes:
        given: one row each, of doubles; where they are still to be clamped or scaled, of single
            floats.
        share: by how much of its norm each row was clipped, in [0, 1]; None if none was.
        clamp: bound of every number, where those given are still to be clamped.
        factors: of each row, where those given are still to be scaled.

    Example:
        >>> whole = Admitted(np.array([[0.5, 3.0]], np.float32), None, clamp=1.0)
        >>> whole.values.tolist(), whole.at(slice(0, 1), np.array([[1]])).tolist()
        ([[0.5, 1.0]], [[1.0]])
    """

    given: NDArray[Any]
    share: Floats | None
    clamp: float | None = None
    factors: Floats | None = None

    def __len__(self) -> int:
        return len(self.given)

    @cached_property
    def values(self) -> Floats:
        """All of them."""
        return self._made(self.given, self.factors)

    def at(self, rows: slice, columns: NDArray[np.int64]) -> Floats:
        """Return a few numbers of some rows: a gradient is long, and clamping all of it takes time.

        Args:
            rows: which.
            columns: of each row, (rows, numbers).
        """
        own = None if self.factors is None else self.factors[rows]
        found = self.given[rows]
        return self._made(found[np.arange(len(found))[:, None], columns], own)

    def take(self, rows: Any) -> "Admitted":
        """Return some of the rows."""
        share = None if self.share is None else self.share[rows]
        factors = None if self.factors is None else self.factors[rows]
        return Admitted(self.given[rows], share, self.clamp, factors)

    def _made(self, some: NDArray[Any], factors: Floats | None) -> Floats:
        if factors is not None:
            doubles = some.astype(np.float64)  # NumPy multiplies two types half as fast
            return np.multiply(doubles, factors[:, None], out=doubles)
        if self.clamp is None:
            return some
        doubles = some.astype(np.float64)
        return np.clip(doubles, -self.clamp, self.clamp, out=doubles)


@dataclass(frozen=True)
class Domain:
    """A ball of some norm, binary vectors, or the numbers of categories.

    Attributes:
        norm: of the ball ("lp" with `power`), "binary" for {0, 1}^d, "category" for 0..d-1.
        radius: of the ball; 1 for the other two.
        dimension: of the vectors whose mean is estimated; of categories, how many there are.
        power: p of "lp".
        questions: of categories, how many a client answers, each with dimension / questions of its
            own.
        last: of "l2", bound of the last coordinate by itself; the ball is that of the others.
    """

    norm: Literal["binary", "l1", "l2", "linf", "lp", "category"]
    radius: float
    dimension: int
    power: float = 2.0
    questions: int = 1
    last: float | None = None

    @property
    def choices(self) -> int:
        """Categories of one question."""
        return self.dimension // self.questions

    @property
    def width(self) -> int:
        """Columns of a client's row: a category is one number, whatever their count."""
        return self.questions if self.norm == "category" else self.dimension

    def admit(
        self, given: Any, ids: Any = None, on_out_of_range: str = "refuse", clip: Clip = "clamp"
    ) -> Floats:
        """Return the values as floats inside the domain; see `admitted`."""
        return self.admitted(given, ids, on_out_of_range, clip).values

    def admitted(
        self, given: Any, ids: Any = None, on_out_of_range: str = "refuse", clip: Clip = "clamp"
    ) -> Admitted:
        """Return the values as floats inside the domain, clipped if the caller allows it.

        Args:
            given: one row per value.
            ids: of the client that each row is of, for messages.
            on_out_of_range: "refuse" or "clip".
            clip: of l_inf balls, how.

        Raises:
            InputError: names the client and the coordinate of the first value refused.
        """
        clamped = self.norm == "linf" and clip == "clamp"
        if on_out_of_range == "clip" and (self._round or clamped):
            measured = self._measured(given, clip)
            if measured is not None:
                return measured
        values = self._numbers(given)
        ids = np.arange(len(values)) if ids is None else np.asarray(ids)
        size = self._sizes(values)
        far = ~np.isfinite(size)
        # A sum or maximum is finite only if every term is, so the data are read just once.
        if far.any():
            finite = np.isfinite(values)
            if not finite.all():
                row, column = np.argwhere(~finite)[0]
                raise InputError(
                    f"client {ids[row]} holds {values[row, column]} at index {column}; "
                    "every value must be a finite number"
                )
            if on_out_of_range == "clip" and self.norm in ("l1", "l2", "lp"):
                # The sum overflows; of a row so far outside only the direction is kept anyway.
                values = np.where(far[:, None], self._shortened(values), values)
                size = np.where(far, self._sizes(values), size)
        outside = size > self.radius * (1.0 + _TOLERANCE)
        if self.norm == "category":
            if outside.any():
                row = int(np.flatnonzero(outside)[0])
                column = int(np.argmin(self._valid(values[row])))
                raise InputError(
                    f"client {ids[row]} holds {values[row, column]:.6g} at index {column}; a "
                    f"category is a whole number from 0 to {self.choices - 1}: renumber the data "
                    "or raise mechanism.categories"
                )
            return Admitted(values, None)
        if on_out_of_range == "refuse" and outside.any():
            row = int(np.flatnonzero(outside)[0])
            off = values[row] - (values[row] >= 0.5) if self.norm == "binary" else values[row]
            column = int(np.argmax(np.abs(off)))
            raise InputError(
                f"client {ids[row]} is outside the {self.describe()}: index {column} holds "
                f"{values[row, column]:.6g}; scale the data, widen mechanism.radius, or set "
                "mechanism.on_out_of_range: clip"
            )
        if not (size > self.radius).any():
            return Admitted(values, None)
        share = np.where(outside, 1.0 - self.radius / np.maximum(size, 1e-300), 0.0)
        share[far] = 1.0
        return Admitted(self._project(values, size, clip), share if outside.any() else None)

    def describe(self) -> str:
        """Say the domain in words."""
        if self.norm == "binary":
            return "binary vectors {0, 1}^d"
        if self.norm == "category":
            return f"categories 0 to {self.choices - 1}"
        if self.last is not None:
            return f"l2 ball of radius {self.radius:g}, and [-{self.last:g}, {self.last:g}]"
        norm = f"l{self.power:g}" if self.norm == "lp" else self.norm
        return f"{norm} ball of radius {self.radius:g}"

    def embed(self, values: Floats) -> Floats:
        """Return the vectors whose mean is estimated: of categories, their indicators."""
        if self.norm == "category":
            chosen = values[:, :, None] == np.arange(self.choices)
            return np.asarray(chosen.reshape(len(values), self.dimension), dtype=np.float64)
        return values

    def _valid(self, symbols: Floats) -> NDArray[np.bool_]:
        """Say which numbers are categories."""
        whole = symbols == np.floor(symbols)
        return np.asarray(whole & (symbols >= 0.0) & (symbols < self.choices))

    def _numbers(self, values: Any) -> Floats:
        given = np.asarray(values)
        if given.dtype.kind not in "biuf":
            raise InputError(
                f"values have type {given.dtype}; the mechanism takes real numbers (float64)"
            )
        if given.ndim != 2 or given.shape[1] != self.width:
            raise InputError(
                f"values have shape {given.shape}; the mechanism takes (clients, {self.width})"
            )
        return np.asarray(given, dtype=np.float64)

    @property
    def _round(self) -> bool:
        """Whether it is an l2 ball and nothing else."""
        return self.norm == "l2" and self.last is None

    def _measured(self, given: Any, clip: Clip) -> Admitted | None:
        """Measure vectors of single floats as they are; None where something else is to be said.

        Gradients come so. Making doubles of them and clamping those would take longer than all the
        rest, and whoever sends a few coordinates needs no others; who only adds vectors of an l2
        ball up scales them on the way. The results are the same.
        """
        alike = isinstance(given, np.ndarray) and given.dtype == np.float32 and given.ndim == 2
        if not alike or given.shape[1] != self.width:
            return None
        sizes = self._sizes(given)
        largest, most = sizes.max(initial=0.0), self.radius * (1.0 + _TOLERANCE)
        if not largest < np.inf:  # nor if one is no number
            return None
        share = None
        if largest > most:
            cut = 1.0 - self.radius / np.maximum(sizes, 1e-300)
            share = np.where(sizes > most, cut, 0.0)
        if not self._round:
            return Admitted(given, share, clamp=self.radius)
        return Admitted(given, share, factors=self._factors(sizes))

    def _shortened(self, values: Floats) -> Floats:
        """Return rows that are as far outside as the radius allows, in the same direction."""
        largest = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-300)
        return np.asarray(values / largest * (2.0 * self.radius))

    def _sizes(self, values: NDArray[Any]) -> Floats:
        if self._round:
            return np.asarray(np.sqrt(kernels.squares(values)))
        if self.norm == "linf":
            return kernels.largest(values)
        # Row by row the same whatever the block, which only keeps the temporaries in cache.
        sizes, step = np.empty(len(values)), max(1, _CACHED // self.width)
        with np.errstate(over="ignore", invalid="ignore"):
            for first in range(0, len(values), step):
                sizes[first : first + step] = self._size(values[first : first + step])
        return sizes

    def _size(self, values: NDArray[Any]) -> Floats:
        if self.norm == "binary":
            # Distance from {0, 1}, shifted so that the domain is again `size <= radius`.
            nearest = np.minimum(np.abs(values), np.abs(values - 1.0))
            return np.asarray(self.radius * (1.0 + nearest.max(axis=1)))
        if self.norm == "category":
            valid = self._valid(values).all(axis=1)
            return np.where(valid, self.radius, np.inf)
        if self.norm == "l1":
            return np.asarray(np.abs(values).sum(axis=1))
        if self.norm == "lp":
            # The largest entry is taken out, so that no power overflows.
            largest = np.abs(values).max(axis=1)
            scaled = np.abs(values) / np.maximum(largest, 1e-300)[:, None]
            return np.asarray(largest * (scaled**self.power).sum(axis=1) ** (1.0 / self.power))
        if self.last is not None:
            ball, last = values[:, :-1], np.abs(values[:, -1])
            # The larger of two norms is a norm, whose ball is the product.
            scaled = last * (self.radius / self.last)
            return np.asarray(np.maximum(np.sqrt((ball * ball).sum(axis=1)), scaled))
        return np.asarray(np.sqrt(kernels.squares(values)))

    def _project(self, values: NDArray[Any], size: Floats, clip: Clip) -> Floats:
        if self.norm == "binary":
            return np.asarray(values >= 0.5, dtype=np.float64)
        if self.norm == "linf" and clip == "clamp":
            return np.asarray(np.clip(values, -self.radius, self.radius))
        if self.last is not None:
            ball = Domain("l2", self.radius, self.dimension - 1)
            kept = ball._project(values[:, :-1], ball._sizes(values[:, :-1]), clip)
            return np.column_stack([kept, np.clip(values[:, -1], -self.last, self.last)])
        # Scaling towards 0 stays in the ball; for l2 it is the projection.
        return np.asarray(values * self._factors(size)[:, None])

    def _factors(self, size: Floats) -> Floats:
        """Return by what rows of some sizes are multiplied; 1 inside."""
        return np.asarray(np.minimum(1.0, self.radius / np.maximum(size, 1e-300)))
