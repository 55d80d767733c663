"""What rests on the Walsh-Hadamard transform: frame coefficients, and single entries."""

from functools import lru_cache

import numpy as np

from raydp_sim.kernels.plain.hadamard import hadamard
from raydp_sim.kernels.plain.rows import dots
from raydp_sim.kernels.types import Counts, Floats

_BUFFER = 1 << 17


def coefficients(wide: Floats, rounds: int, cut: float, frame: Floats) -> Floats:
    """Return small coefficients of every row in a tight frame, by truncation.

    Lyubarskii & Vershynin 2010, "Uncertainty principles and vector quantization", Theorem 3.5.

    Args:
        wide: rows of the full length, zero outside of the frame.
        rounds: of truncation; what they leave is added as it is.
        cut: what each round keeps, in units of the root mean square.
        frame: 1 / full at the frame's rows of the matrix, else 0.
    """
    full = wide.shape[1]
    # `rest` is F^T times what is still to be represented, so it has the same length.
    rest = hadamard(wide)
    kept = np.zeros_like(rest)
    for _ in range(rounds):
        limit = cut * np.sqrt(dots(rest, rest) / full)[:, None]
        small = np.clip(rest, -limit, limit)
        kept += small
        rest -= small
        # F^T F: to the matrix's rows, drop those not of the frame, and back.
        inner = hadamard(rest)
        inner *= frame
        rest = hadamard(inner)
    kept += rest
    return kept


def entries(x: Floats, signs: Floats, rows: Counts) -> Floats:
    """Return entry `rows[i, l]` of H (signs * pad(x)), for client i and message l.

    H is the Kronecker product of two smaller ones, so a client's L entries are L rows of the one
    times its vector as a matrix, then L dot products with rows of the other.
    """
    n, d = x.shape
    full, messages = len(signs), rows.shape[1]
    left, right = factors(full)
    low = len(right).bit_length() - 1
    out = np.empty((n, messages))
    step = min(n, max(1, _BUFFER // full))
    flipped = np.zeros((step, full))
    one = np.empty((step, messages, len(left)))
    other, product = (np.empty((step, messages, len(right))) for _ in range(2))
    for first in range(0, n, max(1, step)):
        size = min(step, n - first)
        a, b, c, wanted = one[:size], other[:size], product[:size], rows[first : first + size]
        np.multiply(x[first : first + size], signs[:d], out=flipped[:size, :d])
        left.take(wanted >> low, axis=0, out=a, mode="clip")
        np.matmul(a, flipped[:size].reshape(size, len(left), len(right)), out=c)
        right.take(wanted & (len(right) - 1), axis=0, out=b, mode="clip")
        np.einsum("njk,njk->nj", b, c, out=out[first : first + size])
    return out


def factors(full: int) -> tuple[Floats, Floats]:
    """Return the two matrices whose Kronecker product is H, the second the smaller one."""
    low = (full.bit_length() - 1) // 2
    return _matrix(full >> low), _matrix(1 << low)


@lru_cache(maxsize=16)
def _matrix(size: int) -> Floats:
    matrix = hadamard(np.eye(size))
    matrix.flags.writeable = False
    return matrix
