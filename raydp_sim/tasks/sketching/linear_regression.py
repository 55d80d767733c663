"""Linear regression, by gradient descent on sketched gradients."""

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.tasks.base import Floats, Setting
from raydp_sim.tasks.sketching.iterated import Iterated
from raydp_sim.tasks.sketching.samples import held


class LinearRegression(Iterated):
    """Each client sends X'(Xw - y) / points; the last column of its data is y.

    004, section 2.5. The loss is half of the mean squared residual.

    Fields:
        step_size: of the descent.
    """

    kind: ClassVar[str] = "linear-regression"
    step_size: Annotated[float, Field(gt=0)] = 0.001
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 2},
            "trust": "local",
            "privacy": {"guarantee": "none"},
            "population": {"clients": 6, "data": {"kind": "points", "points": 5, "dimension": 9}},
            "mechanism": {"kind": "rand-proj", "kept": 4, "radius": 100.0},
        },
    )

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return the number of features: all columns but the last."""
        return shape[-1] - 1

    def samples(self, setting: Setting, data: Any) -> tuple[Floats, Floats]:
        """Return the rows of the clients."""
        return held(data, None)

    def start(self, setting: Setting) -> Floats:
        """Return w_0 = 1."""
        return np.ones((1, setting.mechanism.domain.dimension))

    def _residual(self, point: Floats, samples: Floats, real: Floats) -> Floats:
        found = (samples[..., :-1] @ point[0][:, None])[..., 0]
        return np.asarray((found - samples[..., -1]) * real)

    def sent(self, point: Floats, samples: Floats, real: Floats) -> Floats:
        """Return the gradient."""
        off = self._residual(point, samples, real)
        total = (off[:, None, :] @ samples[..., :-1])[:, 0]
        return np.asarray(total / real.sum(axis=1, keepdims=True))[:, None, :]

    def moved(self, point: Floats, means: Floats) -> Floats:
        """Descend."""
        return point - self.step_size * means

    def loss(self, point: Floats, samples: Floats, real: Floats) -> Floats:
        """Return half of the mean squared residual."""
        off = self._residual(point, samples, real)
        return np.asarray(0.5 * np.square(off).sum(axis=1) / real.sum(axis=1))
