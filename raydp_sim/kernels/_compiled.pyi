"""The C extension, where it was built: sizes are checked there, types by its only caller."""

from typing import Any

def sets() -> tuple[str, ...]: ...
def use(name: str, /) -> None: ...
def encrypt(k0: int, k1: int, x0: Any, x1: Any, /) -> None: ...
def words(k0: int, k1: int, ids: Any, draws: int, high: Any, low: Any, /) -> None: ...
def uniforms(k0: int, k1: int, ids: Any, draws: int, out: Any, /) -> None: ...
def normals(k0: int, k1: int, ids: Any, draws: int, out: Any, /) -> None: ...
def sample(k0: int, k1: int, ids: Any, high: Any, out: Any, /) -> None: ...
def toss(
    k0: int, k1: int, ids: Any, offset: Any, chance: Any, flip: Any, gap: Any, out: Any, /
) -> None: ...
def picked(
    i0: int,
    i1: int,
    k0: int,
    k1: int,
    ids: Any,
    values: Any,
    itemsize: int,
    starts: Any,
    high: Any,
    shift: float,
    scale: float,
    flip: Any,
    gap: Any,
    out: Any,
    /,
) -> None: ...
def coins(
    k0: int,
    k1: int,
    m0: int,
    m1: int,
    ids: Any,
    octets: int,
    cells: Any,
    open: Any,
    ends: Any,
    out: Any,
    /,
) -> int: ...
def buckets(k0: int, k1: int, ids: Any, draws: int, out: Any, /) -> None: ...
def dealt(
    k0: int,
    k1: int,
    first: int,
    clients: int,
    messages: int,
    apart: bool,
    width: int,
    out: Any,
    /,
) -> None: ...
def tally(index: Any, symbols: Any, width: int, rows: int, counts: Any, /) -> None: ...
def mark(rows: Any, bit: Any, /) -> None: ...
def group(
    keys: Any, width: int, sizes: Any, room: Any, items: Any, size: int, out: Any, /
) -> None: ...
def merge(items: Any, size: int, sizes: Any, next: Any, out: Any, /) -> None: ...
def shuffle(items: Any, size: int, starts: Any, lengths: Any, seeds: Any, /) -> None: ...
def dots(one: Any, other: Any, out: Any, /) -> None: ...
def turned(
    k0: int, k1: int, ids: Any, x: Any, sided: Any, right: Any, length: float, out: Any, /
) -> None: ...
def leaned(
    k0: int,
    k1: int,
    ids: Any,
    x: Any,
    size: Any,
    shortest: float,
    height: Any,
    across: Any,
    exact: bool,
    room: Any,
    out: Any,
    /,
) -> None: ...
def entries(
    x: Any,
    d: int,
    signs: Any,
    rows: Any,
    wanted: int,
    left: Any,
    right: Any,
    room: Any,
    out: Any,
    /,
) -> None: ...
def coefficients(kept: Any, rest: Any, rounds: int, cut: float, frame: Any, /) -> None: ...
def squares(x: Any, size: int, out: Any, /) -> None: ...
def largest(x: Any, size: int, out: Any, /) -> None: ...
def gathered(pool: Any, size: int, numbers: Any, scale: float, out: Any, /) -> None: ...
def steps(x: Any, size: int, factors: Any, scale: float, most: float, total: Any, /) -> bool: ...
def hadamard(x: Any, full: int, size: int, /) -> None: ...
def softmax(
    pool: Any,
    size: int,
    width: int,
    numbers: Any,
    scale: float,
    labels: Any,
    weights: Any,
    theta: Any,
    apart: bool,
    samples: int,
    classes: int,
    room: Any,
    out: Any,
    total: Any,
    below: Any,
    right: Any,
    /,
) -> None: ...
