"""Symbols of a few bits each, packed into bytes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def pack_bits(symbols: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Pack rows of unsigned symbols of `width` bits each into whole bytes, first symbol first.

    Example:
        >>> pack_bits(np.array([[5, 3]]), 3).tolist()
        [[172]]
    """
    whole = _word(width)
    octets = np.ascontiguousarray(symbols, dtype=whole)[..., None].view(np.uint8)
    bits = np.unpackbits(octets, axis=-1)[..., 8 * whole.itemsize - width :]
    return np.packbits(bits.reshape(len(symbols), -1), axis=1)


def unpack_bits(wire: NDArray[np.uint8], width: int, symbols: int) -> NDArray[np.uint64]:
    """Undo `pack_bits`: return (n, symbols) unsigned integers.

    Example:
        >>> unpack_bits(np.array([[172]], np.uint8), 3, 2).tolist()
        [[5, 3]]
    """
    whole = _word(width)
    bits = np.zeros((len(wire), symbols, 8 * whole.itemsize), np.uint8)
    sent = np.unpackbits(wire, axis=1, count=width * symbols)
    bits[..., bits.shape[2] - width :] = sent.reshape(len(wire), symbols, width)
    return np.packbits(bits, axis=-1).view(whole)[..., 0].astype(np.uint64)


def _word(width: int) -> np.dtype[Any]:
    # Big-endian, so that the first bit of its octets is the highest.
    return np.dtype(f">u{next(octets for octets in (1, 2, 4, 8) if 8 * octets >= width)}")


def index_bits(alphabet: int) -> int:
    """Return the bits of one symbol out of `alphabet`: ceil(log2), and 0 for a single one."""
    return (alphabet - 1).bit_length()
