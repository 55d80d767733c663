"""One epoch: n steps, one record each, then the proximal map (Algorithm 3)."""

import math

import numpy as np
from numpy.typing import NDArray

from raydp_sim.tasks.shuffled_gradients.losses import LossName, gradient

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def steps(
    loss: LossName,
    point: Floats,
    features: Floats,
    targets: Floats,
    order: Ints,
    step: float,
    clip: float,
    noise: Floats | None,
) -> Floats:
    """Return x after one step per record, x -= eta (clip(grad f(x; record)) + noise).

    Steps follow one another; each is a few operations on vectors of length d.

    Args:
        loss: of one record.
        point: x before.
        features: of the records.
        targets: of the records.
        order: in which they are used.
        step: eta.
        clip: G; infinite: gradients are left as they are.
        noise: (steps, d), one row per step; None: no noise.
    """
    x = point.copy()
    for place, record in enumerate(order):
        direction = gradient(loss, x, features[record], float(targets[record]))
        length = math.sqrt(float(direction @ direction))
        if length > clip:
            direction *= clip / length
        if noise is not None:
            direction = direction + noise[place]
        x -= step * direction
    return x
