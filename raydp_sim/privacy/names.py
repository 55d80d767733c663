"""What the names of randomizers in events mean, for upper bounds and floors alike."""

import math


def parameter_of(name: str | None) -> tuple[str | None, float | None]:
    """Return a randomizer's kind, and its parameter in brackets if it has one.

    Example:
        >>> parameter_of("privunit(0.25)"), parameter_of("krr")
        (('privunit', 0.25), ('krr', None))
    """
    if name is None or not name.endswith(")") or "(" not in name:
        return name, None
    kind, _, inside = name[:-1].partition("(")
    try:
        return kind, float(inside)
    except ValueError:
        return name, None


def with_parameter(kind: str, parameter: float) -> str:
    """Return the name of a randomizer with a parameter, which `parameter_of` reads exactly.

    Example:
        >>> with_parameter("privunit", 0.25)
        'privunit(0.25)'
    """
    return f"{kind}({float(parameter)!r})"


def hadamard_blocks(epsilon0: float, alphabet: int) -> int:
    """Return B, the number of blocks of Hadamard response (Acharya, Sun & Zhang 2019).

    Example:
        >>> hadamard_blocks(2.0, 100)
        4
    """
    # The least power of two that is at least min(e^epsilon0, 2k), halved.
    log2 = min(epsilon0 / math.log(2.0), math.log2(2 * alphabet))
    # Rounding must not give more blocks than there are: fewer make the bound larger.
    return 1 << max(0, math.ceil(log2 - 1e-9) - 1)
