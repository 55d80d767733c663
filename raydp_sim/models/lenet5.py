"""LeNet-5: two convolutions and three dense layers."""

from typing import Any, ClassVar

from pydantic import Field

from raydp_sim.models.base import Classifier, Network
from raydp_sim.models.layers import Activation, Bend, Convolution, Dense, Flatten, MaxPool
from raydp_sim.models.stack import Stack, pixels


class LeNet5(Classifier):
    """Convolutions of 6 and 16 filters 5x5, each pooled 2x2, then 120 and 84 units, softmax.

    As in LeCun et al. 1998 but without padding, on images of 28 x 28: 24 x 24 behind the first
    convolution, 12 x 12 pooled, 8 x 8, 4 x 4 pooled.

    Example:
        >>> LeNet5().network((28, 28), 10).size
        44426
    """

    kind: ClassVar[str] = "lenet5"
    examples: ClassVar[tuple[tuple[dict[str, Any], tuple[int, ...]], ...]] = (
        ({}, (28, 28)),
        ({"activation": "tanh"}, (28, 28)),
    )
    activation: Activation = Field(default="relu", description="relu or tanh")

    def network(self, shape: tuple[int, ...], classes: int) -> Network:
        """Return the network for images, grey or with channels last."""
        image = pixels(self.kind, shape, 16)
        first = Convolution(image, 6, 5)
        pooled = MaxPool(first.out, 2, 2)
        second = Convolution(pooled.out, 16, 5)
        smaller = MaxPool(second.out, 2, 2)
        flat = Flatten(smaller.out)
        return Stack(
            {
                "conv1": first,
                "pool1": pooled,
                "bend1": Bend(pooled.out, self.activation),
                "conv2": second,
                "pool2": smaller,
                "bend2": Bend(smaller.out, self.activation),
                "flat": flat,
                "fc1": Dense(flat.out[0], 120),
                "bend3": Bend((120,), self.activation),
                "fc2": Dense(120, 84),
                "bend4": Bend((84,), self.activation),
                "fc3": Dense(84, classes),
            },
            image,
        )
