"""Events that tell two laws apart, learned from one half of their samples."""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# Values of a column that are distinguished: all if they are few, else bins of equal frequency.
_FINE, _COARSE, _FEW_COLUMNS = 64, 16, 4
# Columns whose own events are tried, and how often a whole row must repeat to count as known.
_ALONE, _KNOWN = 4, 10
_THRESHOLDS = 64
# Standard errors by which a learned probability is distrusted, as the final bounds will.
_CAUTION = 5.5


class Learned(NamedTuple):
    """An event, and how often it happened in the other half of the samples.

    Attributes:
        one, other: the laws' numbers; the event is likelier under `one`.
        hits, others: how often it happened under each.
        samples: of each.
    """

    one: int
    other: int
    hits: int
    others: int
    samples: int


class _Law(NamedTuple):
    """Samples of one law, with their columns and whole rows numbered.

    `cells[i, c]` is column c's value in row i as a place in one table of all columns.
    """

    rows: Floats
    mean: Floats
    cells: Codes
    counts: Codes
    wholes: Codes


def learned(samples: list[Floats]) -> Iterator[Learned]:
    """Yield for each ordered pair of laws one event and how often it happened.

    The event is {score >= threshold} with the score and threshold that serve best on the first half
    of the rows; the counts are of the second half, which the choice does not depend on. Scores are
    estimated log-likelihood ratios of single columns, of all columns as if independent, of whole
    rows that repeat, and the projection on the difference of means.

    Args:
        samples: one array of rows per law, all of one shape and drawn independently.

    Example:
        >>> first = next(learned([np.zeros((2000, 1)), np.ones((2000, 1))]))
        >>> first.hits, first.others, first.samples
        (1000, 0, 1000)
    """
    half = len(samples[0]) // 2
    laws = _numbered(samples, half)
    for one, other in combinations(range(len(samples)), 2):
        best: dict[bool, tuple[float, float, Floats, Floats]] = {}
        for a, b in _scores(laws[one], laws[other], half):
            low, high = np.sort(a[:half]), np.sort(b[:half])
            for turned in (False, True):
                worth, threshold = _threshold(high, low, True) if turned else _threshold(low, high)
                if turned not in best or worth > best[turned][0]:
                    best[turned] = worth, threshold, a[half:], b[half:]
        _, threshold, a, b = best[False]
        yield Learned(one, other, _count(a >= threshold), _count(b >= threshold), len(a))
        _, threshold, a, b = best[True]
        yield Learned(other, one, _count(b <= threshold), _count(a <= threshold), len(a))


def _count(happened: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(happened))


def _numbered(samples: list[Floats], half: int) -> list[_Law]:
    """Number the values of each column, by edges from the first halves, and whole rows."""
    width = samples[0].shape[1]
    bins = _FINE if width <= _FEW_COLUMNS else _COARSE
    cells = [np.empty(rows.shape, np.int64) for rows in samples]
    for column in range(width):
        seen = np.sort(np.concatenate([rows[:half, column] for rows in samples]))
        edges = seen[np.flatnonzero(np.diff(seen, prepend=-np.inf))]
        if len(edges) > bins:
            edges = np.unique(seen[np.arange(1, bins) * len(seen) // bins])
        for made, rows in zip(cells, samples, strict=True):
            made[:, column] = np.searchsorted(edges, rows[:, column]) + column * (bins + 1)
    wholes = _row_numbers(samples)
    return [
        _Law(
            rows,
            rows[:half].mean(axis=0),
            places,
            np.bincount(places[:half].ravel(), minlength=width * (bins + 1)),
            whole,
        )
        for rows, places, whole in zip(samples, cells, wholes, strict=True)
    ]


def _row_numbers(samples: list[Floats]) -> list[Codes]:
    """Number whole rows; equal ones have equal numbers, and others hardly ever."""
    together = np.concatenate(samples) + 0.0  # -0 becomes 0
    factors = np.random.default_rng(0).integers(1, 2**63, together.shape[1], dtype=np.uint64)
    # Sums modulo 2^64 of every double's bits times a random odd number.
    hashes = (together.view(np.uint64) * (factors | np.uint64(1))).sum(axis=1)
    _, numbers = np.unique(hashes, return_inverse=True)
    return np.split(numbers.astype(np.int64), len(samples))


def _scores(one: _Law, other: _Law, half: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield scores of all rows of both laws; what is learned comes from the first halves."""
    size = int(max(one.wholes.max(), other.wholes.max())) + 1
    in_one, in_other = (np.bincount(x.wholes[:half], minlength=size) for x in (one, other))
    whole = np.where(in_one + in_other >= _KNOWN, _ratio(in_one, in_other), 0.0)
    yield whole[one.wholes], whole[other.wholes]
    towards = one.mean - other.mean
    yield one.rows @ towards, other.rows @ towards
    table, width = _ratio(one.counts, other.counts), one.rows.shape[1]
    gains = ((one.counts - other.counts) * table).reshape(width, -1).sum(axis=1)
    for column in np.argsort(-gains)[:_ALONE]:
        yield table[one.cells[:, column]], table[other.cells[:, column]]
    if width > 1:
        yield table[one.cells].sum(axis=1), table[other.cells].sum(axis=1)


def _ratio(one: Codes, other: Codes) -> Floats:
    """Estimate log-likelihood ratios from counts."""
    return np.asarray(np.log((one + 0.5) / (other + 0.5)))


def _threshold(a: Floats, b: Floats, below: bool = False) -> tuple[float, float]:
    """Return how large P(a >= t) / P(b >= t) surely is at the best t, and that t.

    Args:
        a: scores in order, of the law that the event is likelier under.
        b: of the other.
        below: {score <= t} is meant instead.
    """
    n = len(a)
    step = max(1, n // _THRESHOLDS)
    tried = np.unique(np.concatenate([a[::step], b[::step], a[-1:], b[-1:]]))
    if below:
        p, q = (np.searchsorted(x, tried, side="right") / n for x in (a, b))
    else:
        p, q = (1.0 - np.searchsorted(x, tried) / n for x in (a, b))
    # Wilson's score intervals: nearly those of Clopper & Pearson, and fast.
    z2 = _CAUTION**2 / n
    spread_p, spread_q = (np.sqrt(z2 * (x * (1.0 - x) + z2 / 4)) for x in (p, q))
    least = np.maximum((p + z2 / 2 - spread_p) / (1.0 + z2), 0.0)
    most = (q + z2 / 2 + spread_q) / (1.0 + z2)
    best = int(np.argmax(least / most))
    return float(least[best] / most[best]), float(tried[best])
