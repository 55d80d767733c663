"""Layers of hand-written networks: batched kernels in NumPy, one small product per client.

Activations are (clients, samples, height, width, channels), the channels last, so that every copy
and every elementwise pass runs over long stretches of memory. Parameters are kept in the order that
torch keeps them in. Products are three-dimensional `matmul`s, client by client, so that a client's
numbers do not depend on the company that it is in.
"""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from raydp_sim.kernels.types import Floats32
from raydp_sim.models.base import Part

Activation = Literal["tanh", "relu"]
# Shape of one sample between two layers.
Shape = tuple[int, ...]


class Layer(ABC):
    """One step of a network.

    Attributes:
        parts: its parameters, named without the layer's own name.
        out: the shape of a sample behind it.
    """

    parts: tuple[Part, ...] = ()
    out: Shape

    @cached_property
    def size(self) -> int:
        """Number of parameters."""
        return sum(part.size for part in self.parts)

    @abstractmethod
    def forward(self, theta: Floats32, x: Floats32) -> tuple[Floats32, Any]:
        """Return what comes out, and what `backward` needs.

        Args:
            theta: the layer's parameters, (1, size) for all clients or (clients, size).
            x: (clients, samples, *shape).
        """

    @abstractmethod
    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, found: Floats32, first: bool
    ) -> Floats32:
        """Write the gradient of the parameters into `found`; return the slopes in x.

        Args:
            theta: as given to `forward`.
            tape: that `forward` returned.
            slopes: in what came out.
            found: (clients, size), to be written.
            first: nobody asks for the slopes in x; anything may be returned.
        """


class Convolution(Layer):
    """Cross-correlation with square filters, as products with patches (im2col)."""

    def __init__(self, shape: Shape, filters: int, size: int, stride: int = 1, pad: int = 0):
        self.shape, self.filters, self.side, self.stride, self.pad = (
            shape,
            filters,
            size,
            stride,
            pad,
        )
        height, width, channels = shape
        self.rows = (height + 2 * pad - size) // stride + 1
        self.columns = (width + 2 * pad - size) // stride + 1
        self.out = (self.rows, self.columns, filters)
        self.patch = size * size * channels
        self.parts = (Part("weight", (filters, channels, size, size)), Part("bias", (filters,)))

    def forward(self, theta: Floats32, x: Floats32) -> tuple[Floats32, Any]:
        """Multiply every patch with the filters; the tape is the patches."""
        patches = self._patches(x)
        out = np.matmul(patches, self._filters(theta).swapaxes(1, 2))
        out += theta[:, None, -self.filters :]
        return out.reshape(*x.shape[:2], *self.out), patches

    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, found: Floats32, first: bool
    ) -> Floats32:
        """Multiply slopes with patches, and slopes with filters."""
        flat = slopes.reshape(len(slopes), -1, self.filters)
        turned, channels = flat.swapaxes(1, 2), self.shape[2]
        filters = found[:, : -self.filters].reshape(len(found), self.filters, -1)
        if channels == 1:
            np.matmul(turned, tape, out=filters)
        else:
            made = np.matmul(turned, tape).reshape(len(found), self.filters, -1, channels)
            filters.reshape(len(found), self.filters, channels, -1)[:] = made.swapaxes(2, 3)
        np.matmul(
            np.ones((1, flat.shape[1]), flat.dtype), flat, out=found[:, None, -self.filters :]
        )
        if first:
            return slopes
        spread = np.matmul(flat, self._filters(theta))
        return self._gather(spread.reshape(*slopes.shape[:-1], self.side, self.side * channels))

    def _filters(self, theta: Floats32) -> Floats32:
        """Return the filters as (clients, filters, patch), the channels last."""
        channels = self.shape[2]
        made = theta[:, : -self.filters].reshape(len(theta), self.filters, channels, -1)
        return made.swapaxes(2, 3).reshape(len(theta), self.filters, self.patch)

    def _patches(self, x: Floats32) -> Floats32:
        """Return every patch: (clients, samples * rows * columns, patch).

        In two copies, of whole rows of a patch and then of whole patches: once the columns are
        apart, the rows of a patch lie behind one another.
        """
        clients, samples, (height, width, channels) = *x.shape[:2], self.shape
        side, run = self.side, self.side * channels
        if self.pad:
            around = ((0, 0), (0, 0), (self.pad, self.pad), (self.pad, self.pad), (0, 0))
            x, height, width = np.pad(x, around), height + 2 * self.pad, width + 2 * self.pad
        x = np.ascontiguousarray(x).reshape(clients * samples, height, width * channels)
        each, row, item = x.strides
        step = self.stride * channels * item
        apart = np.ascontiguousarray(
            as_strided(x, (len(x), self.columns, height, run), (each, step, row, item))
        )
        each, column, row, item = apart.strides
        whole = as_strided(
            apart,
            (len(x), self.rows, self.columns, side * run),
            (each, row * self.stride, column, item),
        )
        return whole.reshape(clients, samples * self.rows * self.columns, self.patch)

    def _gather(self, spread: Floats32) -> Floats32:
        """Add up what every patch says of the pixels it covers.

        Args:
            spread: (clients, samples, rows, columns, side, side * channels).
        """
        height, width, channels = self.shape
        out = np.zeros(
            (*spread.shape[:2], height + 2 * self.pad, width + 2 * self.pad, channels), spread.dtype
        )
        step = self.stride
        for i in range(self.side):
            rows = out[:, :, i : i + step * self.rows : step]
            # Neighbouring pixels up to the stride are added in one stretch.
            for j in range(0, self.side, step):
                run = min(step, self.side - j)
                at = rows[:, :, :, j : j + step * (self.columns - 1) + run]
                said = spread[..., i, j * channels : (j + run) * channels]
                _columns(at, self.columns, step, run)[:] += said
        return out[:, :, self.pad : self.pad + height, self.pad : self.pad + width]


def _columns(at: Floats32, columns: int, step: int, run: int) -> Floats32:
    """View `run` pixels at every `step`-th column as one axis; no pixel is in two of them."""
    channels = at.shape[-1]
    shape = (*at.shape[:3], columns, run * channels)
    *outer, column, item = at.strides
    return as_strided(at, shape, (*outer, column * step, item))


class MaxPool(Layer):
    """The largest of every square of size x size; a tie belongs to the first, as in torch."""

    def __init__(self, shape: Shape, size: int, stride: int) -> None:
        self.shape, self.side, self.stride = shape, size, stride
        height, width, channels = shape
        self.out = ((height - size) // stride + 1, (width - size) // stride + 1, channels)

    def forward(self, theta: Floats32, x: Floats32) -> tuple[Floats32, Any]:
        """Take the largest along rows, then along columns."""
        along = self._largest(x, 3)
        out = self._largest(along, 2)
        return out, (x, along, out)

    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, found: Floats32, first: bool
    ) -> Floats32:
        """Give each slope to the pixel that was the largest."""
        x, along, out = tape
        return self._routed(x, along, self._routed(along, out, slopes, 2), 3)

    def _parts(self, x: Floats32, axis: int) -> list[Floats32]:
        """Return the first, second, ... member of every window along an axis."""
        count = self.out[axis - 2]
        before = (slice(None),) * axis
        stop = self.stride * (count - 1) + 1
        return [x[(*before, slice(k, k + stop, self.stride))] for k in range(self.side)]

    def _largest(self, x: Floats32, axis: int) -> Floats32:
        first, second, *others = self._parts(x, axis)
        out = np.maximum(first, second)
        for other in others:
            np.maximum(out, other, out=out)
        return out

    def _routed(self, x: Floats32, largest: Floats32, slopes: Floats32, axis: int) -> Floats32:
        """Give slopes to the first members of windows that are the largest."""
        out = np.zeros_like(x)
        *members, _ = self._parts(x, axis)
        *places, last = self._parts(out, axis)
        left = slopes
        for member, place in zip(members, places, strict=True):
            own = left * (member == largest)
            place += own
            left = left - own
        last += left
        return out


class Bend(Layer):
    """An activation, number by number."""

    def __init__(self, shape: Shape, kind: Activation) -> None:
        self.out, self.kind = shape, kind

    def forward(self, theta: Floats32, x: Floats32) -> tuple[Floats32, Any]:
        """Return tanh(x), or max(x, 0); the tape is the same."""
        out: Floats32 = np.tanh(x) if self.kind == "tanh" else np.maximum(x, 0.0)
        return out, out

    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, found: Floats32, first: bool
    ) -> Floats32:
        """Multiply with 1 - tanh^2, or with 1 where x > 0."""
        if self.kind == "relu":
            return np.asarray(slopes * (tape > 0.0))
        out: Floats32 = np.multiply(tape, tape)
        np.subtract(1.0, out, out=out)
        return np.multiply(out, slopes, out=out)


class Flatten(Layer):
    """Pixels as one row, channel by channel, as torch flattens them."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.out = shape, (math.prod(shape),)

    def forward(self, theta: Floats32, x: Floats32) -> tuple[Floats32, Any]:
        """Move the channels first and flatten."""
        return np.moveaxis(x, -1, 2).reshape(*x.shape[:2], -1), None

    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, found: Floats32, first: bool
    ) -> Floats32:
        """Give the pixels their shape again."""
        *plane, channels = self.shape
        return np.ascontiguousarray(
            np.moveaxis(slopes.reshape(*slopes.shape[:2], channels, *plane), 2, -1)
        )


class Dense(Layer):
    """Logits or features W x + b."""

    def __init__(self, width: int, units: int) -> None:
        self.width, self.units, self.out = width, units, (units,)
        self.parts = (Part("weight", (units, width)), Part("bias", (units,)))

    def forward(self, theta: Floats32, x: Floats32) -> tuple[Floats32, Any]:
        """Return W x + b; the tape is x."""
        out = np.matmul(x, self._weight(theta).swapaxes(1, 2))
        out += theta[:, None, -self.units :]
        return out, x

    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, found: Floats32, first: bool
    ) -> Floats32:
        """Write sum over samples of slope x and of slope."""
        if slopes.shape[1] == 1:
            # The same product, without a call of BLAS for each client.
            np.multiply(slopes.swapaxes(1, 2), tape, out=self._weight(found))
        else:
            np.matmul(slopes.swapaxes(1, 2), tape, out=self._weight(found))
        np.sum(slopes, axis=1, out=found[:, -self.units :])
        return slopes if first else np.matmul(slopes, self._weight(theta))

    def _weight(self, theta: Floats32) -> NDArray[np.float32]:
        return theta[:, : -self.units].reshape(len(theta), self.units, self.width)
