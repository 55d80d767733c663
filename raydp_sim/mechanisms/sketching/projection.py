"""Rand-Proj-Spatial: random rows of a randomized Hadamard transform, decoded together (004, 2.4).

Client i keeps k rows of G_i = E_i H D_i / sqrt(d). With S = sum G_i' G_i the estimate is
(beta/n) T(S)^+ sum G_i' y_i. On the span of all rows that is G' T(G G')^-1 y for the stacked G, and
T is affine, so that nk equations are solved in place of a decomposition of S; G is never made.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim.mechanisms.parts.hadamard import fwht
from raydp_sim.random import Ids, Stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Eigenvalues of the Gram matrix up to here are zero but for rounding.
ZERO = 1e-9
# Doubles of transformed products of signs that are held at a time.
_BUFFER = 1 << 22


def padded(dimension: int) -> int:
    """Return the length that vectors are filled up to: the next power of two.

    Example:
        >>> padded(1000), padded(1024)
        (1024, 1024)
    """
    return 1 << (dimension - 1).bit_length()


def sketches(seeds: Ids, kept: int, dimension: int) -> tuple[Floats, Ints]:
    """Return the signs and the rows that seeds stand for, (n, d) and (n, k).

    Anyone who holds the seed makes the same: signs first, one word of 64 bits for 64 of them; then
    the k smallest of d draws, in ascending order of the row.

    Example:
        >>> signs, rows = sketches(np.array([7], np.uint32), 2, 4)
        >>> signs.shape, rows.shape
        ((1, 4), (1, 2))
    """
    draws = Stream(0, ("sketch",)).clients(seeds)
    count = -(-dimension // 64)
    high, low = draws.words("signs", count)
    words = np.stack([high, low], axis=-1).astype("<u4")
    bits = np.unpackbits(
        words.reshape(len(seeds), 2 * count).view(np.uint8), axis=1, count=dimension
    )
    return np.where(bits, -1.0, 1.0), distinct_rows(seeds, kept, dimension)


def distinct_rows(seeds: Ids, kept: int, dimension: int) -> Ints:
    """Return k distinct indices below d for every seed, ascending, all sets alike."""
    draws = Stream(0, ("sketch",)).clients(seeds).uniform("rows", dimension)
    return np.sort(np.argpartition(draws, kept - 1, axis=1)[:, :kept], axis=1)


def encoded(values: Floats, signs: Floats, rows: Ints) -> Floats:
    """Return y = G x for every client, O(d log d) each."""
    transformed = fwht(values * signs) / np.sqrt(values.shape[1])
    return np.take_along_axis(transformed, rows, axis=1)


def decoded(signs: Floats, rows: Ints, sent: Floats, slope: float, normaliser: float) -> Floats:
    """Return the estimate of the mean from all that arrived.

    Args:
        signs: (n, d), d a power of two.
        rows: (n, k).
        sent: y, (n, k).
        slope: s of T.
        normaliser: beta of (n, k, d, s).
    """
    clients, kept = rows.shape
    weighted = sent.reshape(-1)
    if slope > 0.0:
        weighted = _solved(gram(signs, rows), slope, weighted)
    total = transposed(signs, rows, weighted.reshape(clients, kept)).sum(axis=0)
    return np.asarray(normaliser / clients * total)


def transposed(signs: Floats, rows: Ints, sent: Floats) -> Floats:
    """Return G' y for every client."""
    back = np.zeros(signs.shape)
    np.put_along_axis(back, rows, sent, axis=1)
    return np.asarray(signs * fwht(back) / np.sqrt(signs.shape[1]))


def gram(signs: Floats, rows: Ints) -> Floats:
    """Return G G', (nk, nk).

    Its entry for rows r of client i and s of l is the transform of D_i D_l at r xor s, over d:
    n^2/2 transforms of d numbers, where a product of matrices takes (nk)^2/2 sums of d.

    Example:
        >>> signs, rows = sketches(np.arange(3, dtype=np.uint32), 2, 8)
        >>> np.allclose(gram(signs, rows).diagonal(), 1.0)
        True
    """
    clients, dimension = signs.shape
    kept = rows.shape[1]
    out = np.empty((clients, kept, clients, kept))
    block = max(1, _BUFFER // (clients * dimension))
    for first in range(0, clients, block):
        part = slice(first, min(first + block, clients))
        products = signs[part, None, :] * signs[None, : part.stop, :]
        flat = fwht(products.reshape(-1, dimension)) / dimension
        transformed = flat.reshape(part.stop - first, part.stop, dimension)
        for i in range(first, part.stop):
            where = rows[i][None, :, None] ^ rows[: i + 1, None, :]
            picked = np.take_along_axis(
                transformed[i - first, : i + 1, None, :], where.astype(np.int64), axis=2
            )
            out[i, :, : i + 1, :] = picked.transpose(1, 0, 2)
            out[: i + 1, :, i, :] = picked.transpose(0, 2, 1)
    return out.reshape(clients * kept, clients * kept)


def _solved(matrix: Floats, slope: float, right: Floats) -> Floats:
    """Return T(M)^+ b: where M is zero b does not matter, as G' then is."""
    if slope < 1.0:
        shifted = slope * matrix
        shifted[np.diag_indices_from(shifted)] += 1.0 - slope
        return np.asarray(
            scipy.linalg.cho_solve(scipy.linalg.cho_factor(shifted, overwrite_a=True), right)
        )
    values, vectors = scipy.linalg.eigh(matrix)
    weights = np.where(values > ZERO, 1.0 / np.where(values > ZERO, values, 1.0), 0.0)
    return np.asarray(vectors @ (weights * (vectors.T @ right)))
