"""Samples as the vectors that sketched algorithms work on."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets.labelled import HeldOut, Labelled
from raydp_sim.errors import InputError

Floats = NDArray[np.float64]


@lru_cache(maxsize=16)
def interpolation(pixels: int, side: int) -> Floats:
    """Return the matrix that stretches `pixels` numbers to `side`, linearly between centres.

    Example:
        >>> interpolation(2, 4).sum(axis=1).tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    at = np.clip((np.arange(side) + 0.5) * pixels / side - 0.5, 0.0, pixels - 1.0)
    low = np.minimum(at.astype(np.int64), max(pixels - 2, 0))
    high = np.minimum(low + 1, pixels - 1)
    out = np.zeros((side, pixels))
    np.add.at(out, (np.arange(side), low), 1.0 - (at - low))
    np.add.at(out, (np.arange(side), high), at - low)
    return out


def vectors(features: NDArray[Any], side: int | None) -> Floats:
    """Return samples (..., h, w) or (..., d) as vectors; images are stretched to side x side."""
    x = np.asarray(features, np.float64)
    if side is None:
        return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    if x.ndim != 4:
        raise InputError("task.side is for images; leave it out for data that are vectors")
    stretch = interpolation(x.shape[-2], side), interpolation(x.shape[-1], side)
    return np.asarray(stretch[0] @ x @ stretch[1].T).reshape(*x.shape[:2], side * side)


def held(data: Any, side: int | None) -> tuple[Floats, Floats]:
    """Return what clients hold as (clients, samples, d), and which of them count: 0 or 1."""
    if isinstance(data, Labelled):
        if not _last or not _last[0].of(data, side):
            _last[:] = [_Stretched(data, side, *_labelled(data, side))]
        return _last[0].samples, _last[0].real
    rows = np.asarray(data, np.float64)
    if rows.ndim != 3:
        raise InputError("the task needs clients with several vectors each; choose such data")
    return rows, np.ones(rows.shape[:2])


class _Stretched(NamedTuple):
    """Samples as vectors, and what they were made of."""

    data: Labelled
    side: int | None
    samples: Floats
    real: Floats

    def of(self, data: Labelled, side: int | None) -> bool:
        """Whether they are these clients' samples."""
        mine = self.data
        alike = mine.pool is data.pool and self.side == side
        return (
            alike
            and mine.index.shape == data.index.shape
            and bool((mine.index == data.index).all() and (mine.sizes == data.sizes).all())
        )


# Clients are asked again in every iteration, and stretching takes longer than all that follows.
_last: list[_Stretched] = []


def _labelled(data: Labelled, side: int | None) -> tuple[Floats, Floats]:
    places = np.broadcast_to(np.arange(data.index.shape[1]), data.index.shape)
    samples = vectors(data.take(places).features, side)
    real = (places < data.sizes[:, None]).astype(np.float64)
    samples.flags.writeable = real.flags.writeable = False
    return samples, real


def public(held_out: HeldOut | None, side: int | None) -> Floats | None:
    """Return the samples that everyone may read, as vectors; None where there are none."""
    if held_out is None:
        return None
    return np.asarray(vectors(held_out.test().features[None], side)[0])
