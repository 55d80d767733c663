"""Columns of keys: packed side by side, and put in the order of the public records."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.wires.packing import pack_bits, unpack_bits


def pack_keys(keys: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Pack one key per record, `bits` bits each, into ceil(n bits / 8) bytes.

    Example:
        >>> pack_keys(np.array([1, 0, 1], np.uint8), 1).tolist()
        [160]
    """
    if not len(keys):
        return np.zeros(0, np.uint8)
    if bits == 1:
        return np.packbits(keys)
    return np.asarray(pack_bits(keys[None], bits)[0])


def unpack_keys(packed: NDArray[np.uint8], bits: int, records: int) -> NDArray[Any]:
    """Undo `pack_keys` for so many records.

    Raises:
        InputError: where the bytes are not those of so many keys.

    Example:
        >>> unpack_keys(np.array([160], np.uint8), 1, 3).tolist()
        [1, 0, 1]
    """
    expected = (records * bits + 7) // 8
    if packed.shape != (expected,):
        raise InputError(
            f"keys are {len(packed)} bytes, but {records} public records of {bits} bits each make "
            f"{expected}; hand over one key for each record"
        )
    if bits == 1:
        return np.unpackbits(packed, count=records)
    if not records:
        return np.zeros(0, _dtype(bits))
    return np.asarray(unpack_bits(packed[None], bits, records)[0], _dtype(bits))


def _dtype(bits: int) -> np.dtype[Any]:
    return np.min_scalar_type((1 << bits) - 1)


def aligned(records: NDArray[Any], named: NDArray[Any], keys: NDArray[Any]) -> NDArray[Any]:
    """Return keys in the order of the public records that they are for.

    Args:
        records: ids of the public records.
        named: ids of the records that the keys are for, in any order.
        keys: one for each of `named`.

    Raises:
        InputError: where ids come twice, a record has no key, or a key no record.

    Example:
        >>> aligned(np.array([7, 3]), np.array([3, 7]), np.array([0, 1])).tolist()
        [1, 0]
    """
    if len(named) != len(keys):
        raise InputError(f"there are {len(keys)} keys for {len(named)} record ids; give one each")
    place, order = np.argsort(records), np.argsort(named)
    ids = records[place]
    if np.array_equal(ids, named[order]) and not (ids[1:] == ids[:-1]).any():
        out = np.empty_like(keys)
        out[place] = keys[order]
        return out
    for what, ids in (("public record", records), ("key record", named)):
        ids = np.sort(ids)
        twice = ids[1:][ids[1:] == ids[:-1]]
        if len(twice):
            raise InputError(
                f"{what} {twice[0]} comes twice; a key opens one record and is never used again"
            )
    if not len(named):
        missing = records
    else:
        place = np.minimum(np.searchsorted(named, records, sorter=order), len(named) - 1)
        missing = records[named[order[place]] != records]
    if len(missing):
        raise InputError(
            f"{len(missing)} of {len(records)} public records have no key, the first is "
            f"{missing[0]}; leave them out, or ask for their keys"
        )
    if len(named) != len(records):
        strange = named[~np.isin(named, records)]
        raise InputError(f"key record {strange[0]} is for no public record; drop it")
    raise AssertionError("ids that are the same, each once, were put in order above")
