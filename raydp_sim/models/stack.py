"""A network that is one layer behind another."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from raydp_sim.errors import InputError
from raydp_sim.kernels.types import Floats32
from raydp_sim.models.base import Network, Part
from raydp_sim.models.layers import Layer
from raydp_sim.random import Stream


class Stack(Network):
    """Layers by name; the names of those with parameters are those of a torch module.

    Example:
        >>> from raydp_sim.models.layers import Dense
        >>> made = Stack({"fc": Dense(4, 2)}, (4,))
        >>> [part.name for part in made.parts], made.size
        (['fc.weight', 'fc.bias'], 10)
    """

    def __init__(self, layers: dict[str, Layer], shape: Sequence[int]) -> None:
        self.layers, self.shape = tuple(layers.values()), tuple(shape)
        super().__init__(
            Part(f"{name}.{part.name}", part.shape)
            for name, layer in layers.items()
            for part in layer.parts
        )

    def init(self, stream: Stream) -> Floats32:
        """Draw weights as Glorot & Bengio 2010 do, uniform; biases are zero.

        The papers do not say how they began; this is the default of the library they used.
        """
        out, drawn = np.zeros(self.size, np.float32), stream.generator().random(self.size)
        for layer, own in self._own(out[None]):
            if layer.parts:
                weight = layer.parts[0]
                units, inputs, area = *weight.shape[:2], math.prod(weight.shape[2:])
                part = slice(own.start, own.start + weight.size)
                scale = math.sqrt(6.0 / ((units + inputs) * area))
                out[part] = (2.0 * drawn[part] - 1.0) * scale
        return out

    def forward(self, theta: Floats32, features: Floats32) -> tuple[Floats32, Any]:
        """Pass the features through the layers; the tape is all of theirs."""
        rows = theta.reshape(-1, self.size)
        x: Floats32 = features.reshape(*features.shape[:2], *self.shape)
        tapes = []
        for layer, own in self._own(rows):
            x, tape = layer.forward(rows[:, own], x)
            tapes.append(tape)
        return x, tapes

    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, out: Floats32 | None = None
    ) -> Floats32:
        """Pass the slopes back through the layers."""
        rows = theta.reshape(-1, self.size)
        found = np.empty((len(slopes), self.size), slopes.dtype) if out is None else out
        places = list(self._own(rows))
        first = next(place for place, (layer, _) in enumerate(places) if layer.parts)
        for place in range(len(places) - 1, first - 1, -1):
            layer, own = places[place]
            slopes = layer.backward(
                rows[:, own], tape[place], slopes, found[:, own], place == first
            )
        return found

    def _own(self, rows: Floats32) -> Iterator[tuple[Layer, slice]]:
        """Return each layer and where its parameters are."""
        start = 0
        for layer in self.layers:
            yield layer, slice(start, start + layer.size)
            start += layer.size


def pixels(kind: str, shape: tuple[int, ...], least: int) -> tuple[int, int, int]:
    """Return the shape of an image, height, width and channels.

    Example:
        >>> pixels("cnn", (28, 28), 14), pixels("cnn", (32, 32, 3), 14)
        ((28, 28, 1), (32, 32, 3))

    Raises:
        InputError: it is no image, or too small a one.
    """
    if len(shape) not in (2, 3) or min(shape[:2]) < least:
        shown = " x ".join(map(str, shape))
        raise InputError(
            f"task.model.kind is {kind!r}, but a sample of the data is {shown}; it takes images "
            f"(height, width[, channels]) of at least {least} x {least}: use such data, or linear"
        )
    return shape[0], shape[1], shape[2] if len(shape) == 3 else 1
