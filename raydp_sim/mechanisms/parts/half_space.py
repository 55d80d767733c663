"""Directions drawn from the side of a client's vector, or from the other: the core of Priv."""

import math

import numpy as np

from raydp_sim import kernels
from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.parts.coin import Coin
from raydp_sim.mechanisms.parts.rowwise import dots
from raydp_sim.random import ClientStream

# From here on a generator per client is faster than one inversion per draw.
_WIDE = 64
# From here on the series of `half_step` is exact to the last digits of a double.
_SERIES = 100.0


def half_step(x: float) -> float:
    """Return sqrt(pi) Gamma(x + 1/2) / Gamma(x), for x > 0, without overflow or cancellation.

    Example:
        >>> round(half_step(1.5), 12)
        2.0
    """
    if x < _SERIES:
        return math.sqrt(math.pi) * math.gamma(x + 0.5) / math.gamma(x)
    # Tricomi & Erdelyi 1951, "The asymptotic expansion of a ratio of gamma functions".
    y = 1.0 / x
    series = (5 / 1024 + y * (-21 / 32768 + y * (-399 / 262144 + y * 869 / 4194304))) * y**3
    return math.sqrt(math.pi * x) * (1.0 + y * (-1 / 8 + y / 128) + series)


def half_space(
    values: Floats, radius: float, coin: Coin, stream: ClientStream, length: float = 1.0
) -> Floats:
    """Draw a uniform direction and turn it to the side of the client's vector as the coin says.

    The side is right with probability 1/2 + gap |x| / (2 radius): a vector shorter than the radius
    is first rounded to its direction or the opposite one. The mean, for `length` 1, is the vector
    over radius * coin.scale * half_step(d / 2). A vector of zeros has no side and any will do.
    """
    x = np.ascontiguousarray(values)
    size = np.sqrt(dots(x, x))
    bits = np.minimum(0.5 + size * (0.5 / radius), 1.0)
    right = coin.shows(bits, stream.uniform("side")[:, 0])
    if x.shape[1] >= _WIDE:
        return kernels.turned(stream.key("direction"), stream.ids, x, size > 0.0, right, length)
    g = stream.normal("direction", x.shape[1])
    along = np.where(size > 0.0, dots(g, x), g[:, 0])
    g *= (np.where((along > 0.0) == right, 1.0, -1.0) / np.sqrt(np.maximum(dots(g, g), 1e-300)))[
        :, None
    ]
    g *= length
    return g
