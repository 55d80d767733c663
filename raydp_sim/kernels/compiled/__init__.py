"""Every kernel in C, with the arguments and the results of `plain`.

Types and shapes are checked here, before C is entered; arrays that are not contiguous are copied.
Where C has no loop for an argument (an alphabet of more than 32 bits, say), `plain` does the work.
"""

from functools import lru_cache

import numpy as np

from raydp_sim.kernels import _compiled, plain
from raydp_sim.kernels.compiled.draws import (
    buckets,
    coins,
    dealt,
    encrypt,
    mark,
    normals,
    picked,
    sample,
    toss,
    uniforms,
    words,
)
from raydp_sim.kernels.compiled.rows import (
    coefficients,
    dots,
    entries,
    gathered,
    hadamard,
    largest,
    leaned,
    squares,
    steps,
    turned,
)
from raydp_sim.kernels.compiled.shuffle import group, merge, shuffle, tally
from raydp_sim.kernels.compiled.softmax import softmax


def sets() -> tuple[str, ...]:
    """Return the instruction sets of this machine that there are loops for, slowest first."""
    return _compiled.sets()


def use(name: str) -> None:
    """Use one of them from now on."""
    _compiled.use(name)


@lru_cache(maxsize=1)
def agrees() -> bool:
    """Say whether NumPy draws and sums as the loops do: another version or processor may not."""
    ids, key = np.arange(9, dtype=np.uint32), (1, 2)
    drawn = plain.normals(key, ids, 65)
    same = np.array_equal(normals(key, ids, 65), drawn)
    wide = np.tile(drawn, 5)
    same &= np.array_equal(dots(drawn, drawn[::-1]), plain.dots(drawn, drawn[::-1]))
    same &= np.array_equal(squares(wide), plain.squares(wide))
    rows = np.arange(18).reshape(9, 2) * 3
    same &= np.array_equal(
        entries(drawn[:, :64], drawn[0, :64].copy(), rows),
        plain.entries(drawn[:, :64], drawn[0, :64].copy(), rows),
    )
    start = drawn[:3, 0].view(np.uint64)[None]
    items = np.arange(99)
    again, none, all_of_it = items.copy(), np.zeros(1, np.int64), np.full(1, 99)
    shuffle(items, none, all_of_it, start)
    plain.shuffle(again, none, all_of_it, start)
    return bool(same and np.array_equal(items, again))


__all__ = [
    "agrees",
    "buckets",
    "coefficients",
    "coins",
    "dealt",
    "dots",
    "encrypt",
    "entries",
    "gathered",
    "group",
    "hadamard",
    "largest",
    "leaned",
    "mark",
    "merge",
    "normals",
    "picked",
    "sample",
    "sets",
    "shuffle",
    "softmax",
    "squares",
    "steps",
    "tally",
    "toss",
    "turned",
    "uniforms",
    "use",
    "words",
]
