"""Keep memory that was freed: the same arrays are needed again a moment later."""

import ctypes
from functools import cache

# Numbers of <malloc.h>, and the largest size that glibc takes from its own heap.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST = 1 << 25
_KEPT = 1 << 28


@cache
def keep_freed() -> bool:
    """Let glibc keep up to 256 MiB of freed memory; return whether it does.

    By default it hands every array of more than a few hundred KB back to the system, and the
    kernel has to find and clear its pages anew in the next tile or span of releases: more than half
    of the time that per-example gradients take, and a tenth of that of a million 2RR reports. Where
    there is no glibc nothing changes but the speed.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, _KEPT))
