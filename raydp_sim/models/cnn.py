"""The small convolutional network of the papers' experiments on MNIST."""

from typing import Any, ClassVar

from pydantic import Field

from raydp_sim.models.base import Classifier, Network
from raydp_sim.models.layers import Activation, Bend, Convolution, Dense, Flatten, MaxPool
from raydp_sim.models.stack import Stack, pixels


class Cnn(Classifier):
    """Two convolutions (16 filters 8x8, `filters` 4x4), each pooled, 32 units, softmax.

    Padding and strides are those of Papernot et al. 2020 ("Tempered sigmoid activations for deep
    learning with differential privacy"), on images of 28 x 28: 14 x 14 behind the first
    convolution, 13 x 13 pooled, 5 x 5, 4 x 4 pooled.

    Example:
        >>> Cnn().network((28, 28), 10).size, Cnn(filters=32).network((28, 28), 10).size
        (13706, 26010)
    """

    kind: ClassVar[str] = "cnn"
    examples: ClassVar[tuple[tuple[dict[str, Any], tuple[int, ...]], ...]] = (
        ({}, (28, 28)),
        ({"filters": 32, "activation": "relu"}, (28, 28)),
    )
    filters: int = Field(default=16, ge=1, description="filters of the second convolution")
    activation: Activation = Field(default="tanh", description="tanh or relu")

    def network(self, shape: tuple[int, ...], classes: int) -> Network:
        """Return the network for images, grey or with channels last."""
        image = pixels(self.kind, shape, 14)
        first = Convolution(image, 16, 8, stride=2, pad=3)
        pooled = MaxPool(first.out, 2, 1)
        second = Convolution(pooled.out, self.filters, 4, stride=2)
        smaller = MaxPool(second.out, 2, 1)
        flat = Flatten(smaller.out)
        hidden = Dense(flat.out[0], 32)
        # The largest of bent numbers is the largest one bent, and there are fewer of them.
        return Stack(
            {
                "conv1": first,
                "pool1": pooled,
                "bend1": Bend(pooled.out, self.activation),
                "conv2": second,
                "pool2": smaller,
                "bend2": Bend(smaller.out, self.activation),
                "flat": flat,
                "fc1": hidden,
                "bend3": Bend(hidden.out, self.activation),
                "fc2": Dense(32, classes),
            },
            image,
        )
