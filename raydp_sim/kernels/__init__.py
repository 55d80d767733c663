"""Array functions in which simulations spend their time: in C where built, else in NumPy.

Both give the same bits, on every instruction set. `RAYDP_SIM_KERNELS` chooses: `numpy`, or an
instruction set, `baseline`, `avx2` or `avx512`; without it the fastest that the machine has.
"""

from raydp_sim.kernels.choice import CHOICE

if CHOICE.name == "numpy":
    from raydp_sim.kernels.plain import (
        buckets,
        coefficients,
        coins,
        dots,
        encrypt,
        entries,
        gathered,
        group,
        hadamard,
        largest,
        leaned,
        mark,
        normals,
        picked,
        sample,
        shuffle,
        squares,
        steps,
        tally,
        toss,
        turned,
        uniforms,
        words,
    )
else:
    from raydp_sim.kernels.compiled import (
        buckets,
        coefficients,
        coins,
        dots,
        encrypt,
        entries,
        gathered,
        group,
        hadamard,
        largest,
        leaned,
        mark,
        normals,
        picked,
        sample,
        shuffle,
        squares,
        steps,
        tally,
        toss,
        turned,
        uniforms,
        words,
    )

__all__ = [
    "CHOICE",
    "buckets",
    "coefficients",
    "coins",
    "dots",
    "encrypt",
    "entries",
    "gathered",
    "group",
    "hadamard",
    "largest",
    "leaned",
    "mark",
    "normals",
    "picked",
    "sample",
    "shuffle",
    "squares",
    "steps",
    "tally",
    "toss",
    "turned",
    "uniforms",
    "words",
]
