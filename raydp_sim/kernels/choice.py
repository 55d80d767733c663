"""Which kernels are used: decided once, when they are first imported."""

import os

VARIABLE = "RAYDP_SIM_KERNELS"
_BUILD = "a C compiler and `pip install` anew would make them several times as fast"


def choose(wanted: str) -> tuple[str, str | None]:
    """Return the name of what is used, and what to say of it."""
    if wanted == "numpy":
        return "numpy", None
    try:
        from raydp_sim.kernels import compiled
    except ImportError:
        if wanted:
            return "numpy", f"{VARIABLE} is {wanted}, but the kernels are not compiled; unset it"
        return "numpy", f"kernels: NumPy's, since none are compiled; {_BUILD}"
    sets = compiled.sets()
    if wanted and wanted not in sets:
        return "numpy", f"{VARIABLE} is {wanted}; it must be one of numpy, {', '.join(sets)}"
    compiled.use(wanted or sets[-1])
    if not compiled.agrees():
        return "numpy", "kernels: NumPy's, since this NumPy draws or sums in another order"
    return wanted or sets[-1], None


CHOSEN, _NOTICE = choose(os.environ.get(VARIABLE, ""))


def name() -> str:
    """Return what is used: "numpy", or the instruction set of the compiled kernels."""
    return CHOSEN


def notice() -> str | None:
    """Return one line where something else is used than was asked for or could be; else None."""
    return _NOTICE
