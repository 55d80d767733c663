"""Lines with fewer points that look the same: a million rows are no more than a screen can show."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOST = 600
"""Buckets of a line: more than a panel has pixels to tell apart, few enough to send at once."""


def kept(columns: Sequence[Floats], most: int = MOST) -> NDArray[np.int64]:
    """Return the places that are kept of columns of one length, in order.

    Neighbours are put into buckets, and of each bucket the places of the least and the largest
    value of every column are kept, with the first and the last place of all: no peak is lost.

    Args:
        columns: of one length; what is not a number is passed over.
        most: buckets.

    Example:
        >>> line = np.zeros(10_000)
        >>> line[1234] = 1.0
        >>> places = kept([line], most=10)
        >>> len(places) <= 22, 1234 in places
        (True, True)
    """
    length = len(columns[0]) if columns else 0
    if length <= 2 * most:
        return np.arange(length)
    size = -(-length // most)
    starts = np.arange(0, length, size)
    found = [np.array([0, length - 1])]
    for column in columns:
        padded = np.full(len(starts) * size, np.nan)
        padded[:length] = column
        buckets = padded.reshape(len(starts), size)
        known = np.isfinite(buckets).any(axis=1)
        for fill, look in ((np.inf, np.argmin), (-np.inf, np.argmax)):
            places = look(np.where(np.isfinite(buckets), buckets, fill), axis=1)
            found.append((starts + places)[known])
    return np.unique(np.concatenate(found))


def by_release(
    release: NDArray[np.int64], values: Sequence[Floats]
) -> tuple[Floats, list[tuple[Floats, Floats]]]:
    """Return the releases, from 1, and of each column its mean over repetitions and their error.

    Args:
        release: of every row, from 0.
        values: columns; what is not a number is left out of the mean.

    Returns:
        Places on the axis, and per column the mean and the standard error, which is not a number
        where there is but one repetition.

    Example:
        >>> at, [(mean, error)] = by_release(np.array([0, 1, 0]), [np.array([1.0, 5.0, 3.0])])
        >>> at.tolist(), mean.tolist(), error.tolist()
        ([1.0, 2.0], [2.0, 5.0], [1.0, nan])
    """
    if (np.diff(release) > 0).all():  # one repetition, as most runs have
        alone = np.full(len(release), np.nan)
        return release.astype(np.float64) + 1.0, [
            (np.where(np.isfinite(c), c, np.nan), alone) for c in values
        ]
    at, place = np.unique(release, return_inverse=True)
    found = []
    for column in values:
        fine = np.isfinite(column)
        where, numbers = place[fine], column[fine]
        count = np.bincount(where, minlength=len(at)).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(where, numbers, minlength=len(at)) / count
            off = np.bincount(where, (numbers - mean[where]) ** 2, minlength=len(at))
            error = np.sqrt(off / (count - 1.0) / count)
        error[count < 2.0] = np.nan
        found.append((mean, error))
    return at.astype(np.float64) + 1.0, found


def looked_up(keys: NDArray[np.int64], values: Floats, wanted: NDArray[np.int64]) -> Floats:
    """Return the values of some keys; of one that is not there, not a number.

    Args:
        keys: in order, each once.
        values: one per key.
        wanted: keys, in any order.

    Example:
        >>> looked_up(np.array([1, 3]), np.array([0.5, 0.25]), np.array([3, 2])).tolist()
        [0.25, nan]
    """
    if not len(keys):
        return np.full(len(wanted), np.nan)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], np.nan)


def numbers(column: Floats, digits: int = 6) -> list[float | None]:
    """Return a column for JSON, which has no word for what is not a number or infinite.

    Args:
        column: the numbers.
        digits: that a screen can show.

    Example:
        >>> numbers(np.array([1.0, np.nan, 0.123456789, 41.0]))
        [1, None, 0.123457, 41]
    """
    return [
        None if not fine else int(value) if value == int(value) else float(f"{value:.{digits}g}")
        for value, fine in zip(column.tolist(), np.isfinite(column).tolist(), strict=True)
    ]
