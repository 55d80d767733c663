"""The first principal component, by power iteration on sketched products."""

from typing import Any, ClassVar

import numpy as np

from raydp_sim.tasks.base import Floats, Setting
from raydp_sim.tasks.sketching.iterated import Iterated


class PowerIteration(Iterated):
    """Each client sends X'X v / points; their mean, normalised, is the next v.

    004, section 2.5. The loss is the share of the variance (mean squared length) that v misses.
    """

    kind: ClassVar[str] = "power-iteration"
    centre: bool = True
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 2},
            "trust": "local",
            "privacy": {"guarantee": "none"},
            "population": {
                "clients": 6,
                "data": {"kind": "synthetic-digits", "n": 60, "side": 4, "test": 20, "points": 10},
            },
            "mechanism": {"kind": "rand-proj", "kept": 4, "radius": 10.0},
        },
    )

    def start(self, setting: Setting) -> Floats:
        """Return v_0 = 1/sqrt(d)."""
        width = setting.mechanism.domain.dimension
        return np.full((1, width), width**-0.5)

    def sent(self, point: Floats, samples: Floats, real: Floats) -> Floats:
        """Return X'X v over the number of samples."""
        along = (samples @ point[0][:, None])[..., 0] * real
        total = (along[:, None, :] @ samples)[:, 0]
        return np.asarray(total / real.sum(axis=1, keepdims=True))[:, None, :]

    def moved(self, point: Floats, means: Floats) -> Floats:
        """Normalise; a mean of nothing leaves v as it is."""
        length = float(np.sqrt(np.square(means).sum()))
        return means / length if length > 0.0 else point

    def loss(self, point: Floats, samples: Floats, real: Floats) -> Floats:
        """Return 1 - |X v|^2 / |X|^2."""
        along = (samples @ point[0][:, None])[..., 0] * real
        squares = np.einsum("ijk,ijk->ij", samples, samples) * real
        whole = squares.sum(axis=1)
        kept = np.square(along).sum(axis=1)
        return np.asarray(1.0 - kept / np.where(whole > 0.0, whole, 1.0))
