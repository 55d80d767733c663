"""Which kernels are used: decided once, when they are first imported."""

import os
from typing import NamedTuple

VARIABLE = "RAYDP_SIM_KERNELS"
_BUILD = "with a C compiler, `pip install` anew makes them several times as fast"


class Choice(NamedTuple):
    """What is used.

    Attributes:
        name: "numpy", or the instruction set of the compiled kernels.
        notice: one line to tell, where more could be had.
        refused: what is wrong with what was asked for.
    """

    name: str
    notice: str | None = None
    refused: str | None = None


def choose(wanted: str) -> Choice:
    """Choose what was asked for; if nothing was, the fastest that gives NumPy's bits."""
    if wanted == "numpy":
        return Choice("numpy")
    try:
        from raydp_sim.kernels import compiled
    except ImportError:
        if wanted:
            return Choice("numpy", refused=f"{VARIABLE} is {wanted}, but no kernels are compiled")
        return Choice("numpy", f"kernels: NumPy's, since none are compiled; {_BUILD}")
    sets = compiled.sets()
    if wanted and wanted not in sets:
        remedy = f"this machine has numpy, {', '.join(sets)}; without it the last is used"
        return Choice("numpy", refused=f"{VARIABLE} is {wanted}; {remedy}")
    compiled.use(wanted or sets[-1])
    if not compiled.agrees():
        return Choice("numpy", "kernels: NumPy's, since this NumPy draws or sums in another order")
    return Choice(wanted or sets[-1])


CHOICE = choose(os.environ.get(VARIABLE, ""))
