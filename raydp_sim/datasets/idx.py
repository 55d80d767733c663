"""IDX files: images and labels as MNIST and its successors come in, gzipped or not."""

import gzip
import hashlib
import zlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

NAMES = tuple(
    f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")
)
"""The four files: images and labels for training, then for the test."""

# Two zero bytes, the type (8: unsigned byte) and the number of dimensions.
_UNSIGNED = 8


class Idx(NamedTuple):
    """The contents of one file.

    Attributes:
        array: as it is in the file; nobody can write to it.
        packed: MD5 of the file as it lies there.
        sha256: of the contents, unzipped.
    """

    array: Bytes
    packed: str
    sha256: str


@cache
def read_idx(path: Path) -> Idx:
    """Read a file of bytes, once in a process.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no IDX file of bytes, or cut off.
    """
    packed = path.read_bytes()
    content = packed
    if packed[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(packed)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"it cannot be unzipped ({error}); it may be cut off") from None
    if len(content) < 4 or content[:3] != bytes((0, 0, _UNSIGNED)):
        found = content[:4].hex(" ")
        raise ValueError(f"it begins with {found}; an IDX file of bytes begins with 00 00 08")
    head = 4 + 4 * content[3]
    if len(content) < head:
        raise ValueError("its header is cut off")
    shape = tuple(int(n) for n in np.frombuffer(content[4:head], ">u4"))
    if len(content) - head != np.prod(shape, dtype=np.int64):
        size = " x ".join(map(str, shape))
        raise ValueError(f"its header says {size} bytes, and {len(content) - head:,} follow")
    array = np.frombuffer(content, np.uint8, offset=head).reshape(shape)
    md5 = hashlib.md5(packed, usedforsecurity=False).hexdigest()
    return Idx(array, md5, hashlib.sha256(content).hexdigest())
