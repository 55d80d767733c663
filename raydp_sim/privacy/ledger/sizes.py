"""Sizes of batches, of which there are many, put on few."""

import math
from dataclasses import replace

from raydp_sim.privacy.events import Batch, Release


def rounded(event: Release, per_octave: int = 4) -> Release:
    """Round a batch down to one of few sizes, so that releases of nearly one size are one.

    A batch of n hides no less than a batch of fewer: the others' messages are independent of the
    victim's, so whoever sees fewer can add them. Steps of a quarter of an octave cost little.

    Args:
        event: any; only shuffles of 8 clients and more are rounded.
        per_octave: sizes while n doubles, >= 1.

    Example:
        >>> from raydp_sim.privacy.events import Shuffle
        >>> rounded(Shuffle(1.0, 1000)).n
        861
    """
    if not isinstance(event, Batch) or event.n < 8:
        return event
    step = math.floor(per_octave * math.log2(event.n))
    size = math.floor(2 ** (step / per_octave))
    while size > event.n:  # rounding of the logarithm
        size -= 1
    return replace(event, n=size)
