"""The interface of every model: a classifier as a function of one flat vector of parameters."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from raydp_sim.datasets.labelled import Chosen
from raydp_sim.kernels.memory import keep_freed
from raydp_sim.kernels.types import Booleans, Floats32
from raydp_sim.models.losses import cross_entropy
from raydp_sim.random import Stream
from raydp_sim.registry import Piece

# Rows that callers hand to a network at a time: what it holds for the way back stays in cache, and
# so do their gradients, which are looked at again.
TILE = 32


class Part(NamedTuple):
    """A named tensor of the parameters; all of them, in order and flattened, are the vector."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return int(np.prod(self.shape))


class Slope(NamedTuple):
    """Of each client's loss, a weighted sum over its samples.

    Attributes:
        losses: one per client.
        gradient: one row per client.
        right: which samples are classified rightly.
    """

    losses: Floats32
    gradient: Floats32
    right: Booleans


class Network(ABC):
    """A classifier for features of one shape.

    Batches are rows of clients, each with its own samples: features (clients, samples, *shape). The
    parameters are one vector for all (d,), or one per client (clients, d). Gradients are one vector
    per client, the sum over its samples; with one sample per row they are per-example gradients.
    Arithmetic of one row never depends on which other rows share the call.
    """

    # Samples that go through in one call; few enough that what is gathered of them stays in cache.
    at_once: ClassVar[int] = 1024
    # Rows of which it is best handed whole multiples.
    tile: ClassVar[int] = TILE

    def __init__(self, parts: Iterable[Part]) -> None:
        self.parts = tuple(parts)
        # Number of parameters d.
        self.size = sum(part.size for part in self.parts)
        keep_freed()

    @abstractmethod
    def init(self, stream: Stream) -> Floats32:
        """Draw the first parameters."""

    @abstractmethod
    def forward(self, theta: Floats32, features: Floats32) -> tuple[Floats32, Any]:
        """Return the logits (clients, samples, classes) and what `backward` needs of the way."""

    @abstractmethod
    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, out: Floats32 | None = None
    ) -> Floats32:
        """Return each client's gradient (clients, d).

        Args:
            theta: as given to `forward`.
            tape: that `forward` returned.
            slopes: of the loss in the logits, (clients, samples, classes).
            out: where to write it; a new array by default.
        """

    def slope(
        self, theta: Floats32, chosen: Chosen, weights: Floats32, out: Floats32 | None = None
    ) -> Slope:
        """Return the cross-entropy of each client, summed with weights, and its gradient.

        Args:
            theta: the parameters.
            chosen: the samples.
            weights: of the samples.
            out: where to write the gradient; a new array by default.
        """
        logits, tape = self.forward(theta, chosen.features)
        loss = cross_entropy(logits, chosen.labels)
        losses = (loss.values * weights).sum(axis=1)
        slopes = np.multiply(loss.slopes, weights[..., None], out=loss.slopes)
        gradient = self.backward(theta, tape, slopes, out=out)
        return Slope(losses, gradient, logits.argmax(axis=-1) == chosen.labels)

    def named(self, theta: Floats32) -> dict[str, Floats32]:
        """Return the parameters (..., d) as named tensors, as a `state_dict` has them."""
        out, first = {}, 0
        for part in self.parts:
            own = theta[..., first : first + part.size]
            out[part.name] = own.reshape(*theta.shape[:-1], *part.shape)
            first += part.size
        return out


class Classifier(Piece):
    """The description of a model in a scenario; `network` makes it for the data at hand."""

    # Parameters that it is checked with, and the shape of the features.
    examples: ClassVar[tuple[tuple[dict[str, Any], tuple[int, ...]], ...]]

    @cached_property
    def written(self) -> str:
        """Its fields as text, by which a network that was made is known again."""
        return self.model_dump_json()

    @abstractmethod
    def network(self, shape: tuple[int, ...], classes: int) -> Network:
        """Return the model for features of a shape.

        Raises:
            InputError: it cannot take such features.
        """
