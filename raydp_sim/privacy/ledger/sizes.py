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


def without_size(release: Release) -> Release:
    """Return the release without the size of its batch: what is alike in releases of one kind.

    Example:
        >>> from raydp_sim.privacy.events import Shuffle
        >>> without_size(Shuffle(1.0, 1000)).n
        1
    """
    return replace(release, n=1) if isinstance(release, Batch) else release


def size_of(release: Release) -> int:
    """Return the size of a release's batch; 0 where that plays no part."""
    return release.n if isinstance(release, Batch) else 0


def covers(worst: Release, release: Release) -> bool:
    """Say whether a release costs no more than another: one of its kind, in a batch no smaller.

    Example:
        >>> from raydp_sim.privacy.events import Shuffle
        >>> [covers(Shuffle(1.0, 100), Shuffle(1.0, n)) for n in (120, 99)]
        [True, False]
    """
    alike = without_size(worst) == without_size(release)
    return alike and size_of(worst) <= size_of(release)
