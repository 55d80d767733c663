"""Laws by fewer atoms, so that averages of smooth convex functions err to one side.

A sum over 10^5 counts, for 100 other counts and 50 orders, would take a minute. So atoms are taken
together in pieces, and each piece is replaced by one or two, in one of two ways.

Two moments. Let f''' >= 0 on [l, r], let q be the quadratic that equals f at r and touches it at x.
Then f - q = f'''/6 (t - x)^2 (t - r) <= 0 on [l, r], so E f <= E q for every law on [l, r]. E q
depends on mass, mean and second moment only. With d = r - t, the atoms x = r - E d^2/E d, of mass
(E d)^2/E d^2, and r, of the rest, have the law's own, so E f is at most their average of q = f.
With l for r all signs turn and E f is at least the average. (The upper and lower principal
representations of Karlin & Studden 1966; Gauss-Radau quadrature.) Both are exact for quadratic f; a
piece of length w costs f''' w^3/216 of its mass.

One moment. If only f'' >= 0, the two ends with the same mean are above (Edmundson & Madansky), the
mean itself is below (Jensen); a piece of length w costs f'' w^2/12 of its mass.
"""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from raydp_sim.privacy.curves.binomials import Floats, log_binomial

Kind = Literal["above", "below", "ends", "mean"]
"""Two moments from above or below (f''' >= 0); one moment from above or below (f'' >= 0)."""

Atoms = tuple[Floats, Floats]
"""Where they are, and the logarithms of their probabilities."""

# Pieces of fewer counts than this would not be fewer atoms by much.
_LEAST = 5
# Single counts follow from every twelfth: ratios from 1e-18 to 1e18 could not overflow between.
_BLOCK = 12
# Logarithms of masses that are added up together lie within this.
_BAND = 500.0
# Most elements of one array.
_ELEMENTS = 1 << 20


def two(
    mean_of: Callable[[Floats | float], Floats], away: Floats, last: float, kind: Kind
) -> list[tuple[Floats | float, Floats]]:
    """Return the atoms of pieces as (distance from the left end, mass).

    Args:
        mean_of: sums a function over each piece, weighted.
        away: distance of what is summed over from the left end.
        last: the pieces' length.
        kind: which atoms.
    """
    total = mean_of(1.0)
    if kind == "mean":
        return [(mean_of(away) / total, total)]
    if kind == "ends":
        return [(0.0, mean_of(1.0 - away / last)), (last, mean_of(away / last))]
    if kind == "above":
        away = last - away
    first, second = mean_of(away), mean_of(away * away)
    # A piece whose law sits at the end has no inner atom.
    inner, distance = (
        first * (first / np.maximum(second, 1e-300)),
        second / np.maximum(first, 1e-300),
    )
    rest = np.maximum(total - inner, 0.0)
    if kind == "above":
        return [(last - distance, inner), (last, rest)]
    return [(0.0, rest), (distance, inner)]


def count_atoms(trials: int, p: float, low: int, high: int, step: int, kind: Kind) -> Atoms:
    """Return atoms for the counts low, ..., high of Bin(trials, p), `step` of them at a time.

    The probabilities of a piece follow from the first one's by their exact ratios. Counts outside
    are not looked at: callers charge them.

    Args:
        trials: >= 1.
        p: in (0, 1).
        low: >= 0.
        high: <= trials.
        step: counts per piece; below 5 every count is an atom.
        kind: which side averages err to, and for which functions.

    Example:
        >>> for kind in ("below", "above"):
        ...     at, logs = count_atoms(100, 0.5, 0, 100, 10, kind)
        ...     print(round(float(np.exp(logs) @ 1.1 ** at), 4))
        131.1846
        131.8783
        >>> round(1.05**100, 4)
        131.5013
    """
    if step < _LEAST:
        return _singles(trials, p, low, high)
    pieces = (high - low + 1) // step
    at, logs = _singles(trials, p, low + pieces * step, high)
    places, masses = [at], [logs]
    rows = max(1, _ELEMENTS // step)
    away = np.arange(step, dtype=np.float64)
    for first in range(0, pieces, rows):
        starts = low + step * np.arange(first, min(first + rows, pieces), dtype=np.float64)
        relative = _relative(starts, trials, p, step)

        def mean_of(f: Floats | float, relative: Floats = relative) -> Floats:
            return np.asarray(relative @ np.broadcast_to(f, step))

        base = log_binomial(float(trials), p, starts)
        for offset, mass in two(mean_of, away, step - 1.0, kind):
            places.append(starts + offset)
            masses.append(base + _log(mass))
    return np.concatenate(places), np.concatenate(masses)


def _singles(trials: int, p: float, low: int, high: int) -> Atoms:
    """Return every count from low to high with its probability."""
    at = np.arange(low, high + 1, dtype=np.float64)
    starts = at[::_BLOCK]
    logs = log_binomial(float(trials), p, starts)[:, None] + _log(
        _relative(starts, trials, p, _BLOCK)
    )
    return at, logs.ravel()[: len(at)]


def _relative(starts: Floats, trials: int, p: float, step: int) -> Floats:
    """Return (pieces, step) probabilities over that of each piece's first count."""
    k = starts[:, None] + np.arange(step - 1)
    out = np.ones((len(starts), step))
    np.cumprod(np.maximum(trials - k, 0.0) / (k + 1.0) * (p / (1.0 - p)), axis=1, out=out[:, 1:])
    return out


def merged(atoms: Atoms, cuts: Floats, kind: Kind) -> Atoms:
    """Take atoms together between neighbouring cuts.

    Args:
        atoms: all of them in [cuts[0], cuts[-1]).
        cuts: ascending.
        kind: as above.

    Example:
        >>> law = (np.array([0.0, 0.5, 1.0]), np.log([0.25, 0.5, 0.25]))
        >>> at, logs = merged(law, np.array([0.0, 2.0]), "above")
        >>> [round(float(np.exp(logs) @ at**power), 9) for power in (1, 2, 3)]
        [0.5, 0.375, 0.489583333]
    """
    at, logs = atoms
    # By bands of the logarithm, so that nothing underflows beside what it is added to.
    band = np.floor(np.maximum(logs, -1e9) / _BAND)
    levels = np.unique(band)
    parts = []
    for level in levels:
        inside = band == level if len(levels) > 1 else slice(None)
        parts.append(_merged_band(at[inside], logs[inside], cuts, (level + 1.0) * _BAND, kind))
    places, masses = zip(*parts, strict=True)
    return np.concatenate(places), np.concatenate(masses)


def _merged_band(at: Floats, logs: Floats, cuts: Floats, scale: float, kind: Kind) -> Atoms:
    cell = np.searchsorted(cuts, at, side="right") - 1
    lengths, cells = np.diff(cuts), len(cuts) - 1
    away = np.minimum((at - cuts[cell]) / lengths[cell], 1.0)
    weights = np.exp(logs - scale)
    kept = np.flatnonzero(np.bincount(cell, weights, cells) > 0.0)

    def mean_of(f: Floats | float) -> Floats:
        return np.asarray(np.bincount(cell, weights * f, cells)[kept], dtype=np.float64)

    found = two(mean_of, away, 1.0, kind)
    places = [cuts[kept] + lengths[kept] * offset for offset, _ in found]
    return np.concatenate(places), np.concatenate([scale + _log(mass) for _, mass in found])


def _log(mass: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(mass)


def piece(width: float, per_width: float) -> int:
    """Return a power of two, about how many counts make a piece of a law that varies over `width`.

    Example:
        >>> piece(1000.0, 16.0)
        32
    """
    return 1 << max(0, math.floor(math.log2(width / per_width))) if width > per_width else 1
