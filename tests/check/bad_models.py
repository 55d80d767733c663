"""Models that break one promise each."""

from typing import Any, ClassVar

import numpy as np

from raydp_sim.datasets.labelled import Chosen
from raydp_sim.models.base import Classifier, Network
from raydp_sim.models.linear import LinearNetwork

_LAST: list[Any] = []


class Model(Classifier):
    """Softmax regression, as `network_class` bends it."""

    kind: ClassVar[str] = "honest"
    examples: ClassVar[tuple[tuple[dict[str, Any], tuple[int, ...]], ...]] = (({}, (3, 4)),)
    network_class: ClassVar[type[LinearNetwork]] = LinearNetwork

    def network(self, shape: tuple[int, ...], classes: int) -> Network:
        return self.network_class(int(np.prod(shape)), classes)


class Wide(Model):
    class network_class(LinearNetwork):
        def backward(self, theta: Any, tape: Any, slopes: Any) -> Any:
            return super().backward(theta, tape, slopes).astype(np.float64)


class Unseeded(Model):
    class network_class(LinearNetwork):
        def init(self, stream: Any) -> Any:
            return np.random.default_rng().random(self.size).astype(np.float32)


class Remembering(Model):
    class network_class(LinearNetwork):
        def forward(self, theta: Any, features: Any) -> Any:
            logits, tape = super().forward(theta, features)
            _LAST[:] = [tape]
            return logits, None

        def backward(self, theta: Any, tape: Any, slopes: Any) -> Any:
            return super().backward(theta, _LAST[0], slopes)


class Mixing(Model):
    class network_class(LinearNetwork):
        def forward(self, theta: Any, features: Any) -> Any:
            return super().forward(theta, features - features.mean(axis=0, dtype=np.float32))


class Crossing(Model):
    class network_class(LinearNetwork):
        def forward(self, theta: Any, features: Any) -> Any:
            scale = np.float32(2.0 if theta.ndim == 2 else 1.0)
            return super().forward(theta, features * scale)


class Averaging(Model):
    class network_class(LinearNetwork):
        def backward(self, theta: Any, tape: Any, slopes: Any) -> Any:
            return super().backward(theta, tape, slopes) / np.float32(slopes.shape[1])


class Detouring(Model):
    class network_class(LinearNetwork):
        def slope(self, theta: Any, chosen: Any, weights: Any, out: Any = None) -> Any:
            return super().slope(theta, chosen, np.ones_like(weights), out)


class Keeping(Model):
    class network_class(LinearNetwork):
        def slope(self, theta: Any, chosen: Any, weights: Any, out: Any = None) -> Any:
            return super().slope(theta, chosen, weights)


class Unscaled(Model):
    class network_class(LinearNetwork):
        def slope(self, theta: Any, chosen: Any, weights: Any, out: Any = None) -> Any:
            plain = Chosen(chosen.pool.astype(np.float32), chosen.numbers, chosen.labels)
            return super().slope(theta, plain, weights, out)


class Boasting(Model):
    class network_class(LinearNetwork):
        def slope(self, theta: Any, chosen: Any, weights: Any, out: Any = None) -> Any:
            found = super().slope(theta, chosen, weights, out)
            return found._replace(right=np.ones_like(found.right))


class Sloping(Model):
    class network_class(LinearNetwork):
        def backward(self, theta: Any, tape: Any, slopes: Any) -> Any:
            return super().backward(theta, tape, slopes * np.float32(1.001))


class Swallowing(Model):
    class network_class(LinearNetwork):
        def forward(self, theta: Any, features: Any) -> Any:
            return super().forward(theta, np.nan_to_num(features))
