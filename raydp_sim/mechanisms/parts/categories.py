"""What mechanisms for one category per client share: their checks, and draws of exact probability.

A draw has 53 bits, so every probability that is really drawn is a multiple of 2^-53. The mechanisms
here round the probability that hides the category up to such a multiple, and take their loss, their
decoder and their error from the rounded one: all three are exact for what is drawn, and the loss is
never above epsilon, however small or large that is.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.mechanisms.base import Floats, Messages
from raydp_sim.mechanisms.parts.budget import SLACK
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Ids

Categories = Annotated[int, Field(ge=2, le=1 << 20)]

# Reports drawn at a time, so that the arrays of one step stay in cache.
BLOCK = 1 << 15
# Of a draw's 64 bits the coin takes the upper 53.
_COIN_BITS = 53
_SPARE = 1 << (64 - _COIN_BITS)


def check_width(kind: str, dimension: int | None, categories: int) -> None:
    """Refuse data of more than one column."""
    if dimension not in (None, 1):
        raise ValueError(
            f"dimension is {dimension}, but '{kind}' takes one number per client, its category out "
            f"of {categories}; the data must have 1 column"
        )


def allowed(epsilon: float) -> float:
    """Return the loss to aim at: so far below epsilon that rounding cannot pass it."""
    return epsilon * (1.0 - SLACK)


def stated(epsilon: float, exact: float) -> LocalReport:
    """Return the event of a report that loses `exact`, rounded up and never above epsilon."""
    return LocalReport(min(epsilon, exact * (1.0 + 2.0 * SLACK)))


def step_up(probability: float, bits: int = _COIN_BITS) -> float:
    """Return the least positive multiple of 2^-bits that is not below `probability`.

    Example:
        >>> step_up(0.3, bits=2), step_up(0.25, bits=2)
        (0.5, 0.25)
    """
    return math.ldexp(max(1, math.ceil(math.ldexp(probability, bits))), -bits)


def step_down(probability: float, bits: int = _COIN_BITS) -> float:
    """Return the largest multiple of 2^-bits that is not above `probability`.

    Example:
        >>> step_down(0.3, bits=2)
        0.25
    """
    return math.ldexp(math.floor(math.ldexp(probability, bits)), -bits)


def coin(high: Ids, low: Ids, probability: float) -> NDArray[np.bool_]:
    """Throw a coin with the upper 53 bits of each pair of words; the lower 11 stay independent.

    `probability` is a multiple of 2^-53, and then exact.

    Example:
        >>> coin(np.array([0, 1 << 31], np.uint32), np.zeros(2, np.uint32), 0.5).tolist()
        [True, False]
    """
    upper, lower = divmod(int(math.ldexp(probability, _COIN_BITS)) * _SPARE, 1 << 32)
    if upper >> 32:
        return np.ones(high.shape, np.bool_)
    tied: NDArray[np.bool_] = high == np.uint32(upper)
    tied &= low < np.uint32(lower)
    tied |= high < np.uint32(upper)
    return tied


def bits_beside(low: Ids, size: int, stream: ClientStream) -> Ids:
    """Return numbers uniform on 0..size-1, a power of two, independent of the coin of `low`."""
    if size > _SPARE:
        low = stream.words("index")[1][:, 0]
    return low & np.uint32(size - 1)


def odd_overlap(a: Ids, b: Ids) -> NDArray[np.uint8]:
    """Return 1 where the Hadamard matrix holds -1 at (a, b): where a & b has an odd number of ones.

    Example:
        >>> odd_overlap(np.arange(4, dtype=np.uint32), np.uint32(3)).tolist()
        [0, 1, 1, 0]
    """
    ones: NDArray[np.uint8] = np.bitwise_count(a & b)
    ones &= np.uint8(1)
    return ones


def codes(column: Floats) -> Ids:
    """Return categories as integers."""
    # By way of signed ones, to which processors convert doubles much faster.
    return column.astype(np.int32).view(np.uint32)


def symbols(
    values: Floats,
    stream: ClientStream,
    dtype: np.dtype[Any],
    draw: Callable[[Floats, ClientStream], NDArray[Any]],
) -> Messages:
    """Draw one symbol per client, block by block: `draw` gets a block's categories and stream."""
    out = np.empty((len(values), 1), dtype)
    for first in range(0, len(values), BLOCK):
        rows = slice(first, first + BLOCK)
        out[rows, 0] = draw(values[rows, 0], stream.take(rows))
    return Messages(out)
