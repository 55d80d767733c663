"""What no private or short report can beat: minimax errors of mean estimation, by their orders."""

import math


def privacy_lower_bound(
    power: float, dimension: int, clients: int, epsilon: float, radius: float = 1.0
) -> float:
    """Return the order of the least worst-case error of n clients, each epsilon-LDP.

    Girgis et al. 2021, Theorems 2 and 3, for the lp ball of radius a, up to a constant factor that
    they do not give: a^2 min(1, d / (n epsilon^2)) for p <= 2, and for p >= 2
    a^2 d^(1 - 2/p) min(1, d / (n min(epsilon, epsilon^2))).

    Args:
        power: p, at least 1; may be infinite.
        dimension: d >= 1.
        clients: n >= 1.
        epsilon: local loss, > 0. Above sqrt(d) they prove nothing, and 0 is returned.
        radius: a > 0.

    Example:
        >>> privacy_lower_bound(2.0, 100, 10_000, 1.0)
        0.01
    """
    _check(power, dimension)
    if epsilon > math.sqrt(dimension):
        return 0.0
    if power <= 2.0:
        return radius**2 * min(1.0, dimension / (clients * epsilon**2))
    spent = min(epsilon, epsilon**2)
    size: float = dimension ** (1.0 - 2.0 / power)
    return radius**2 * size * min(1.0, dimension / (clients * spent))


def bits_lower_bound(power: float, dimension: int, bits: float, radius: float = 1.0) -> float:
    """Return the least worst-case error, for any number of clients, of reports of too few bits.

    Girgis et al. 2021, Theorem 4: with fewer than log2 d bits, the same private randomizer at every
    client and an average of decoded reports, the error stays above a^2 min(1, d^(1 - 2/p)). The
    theorem prints max for min, which is false: in the cube of d = 4 one bit can do with 3.25.

    Example:
        >>> bits_lower_bound(math.inf, 4, 1), bits_lower_bound(2.0, 4, 2)
        (1.0, 0.0)
    """
    _check(power, dimension)
    if bits >= math.log2(dimension):
        return 0.0
    size: float = dimension ** (1.0 - 2.0 / power)
    return radius**2 * min(1.0, size)


def _check(power: float, dimension: int) -> None:
    if not power >= 1.0:
        raise ValueError(f"power is {power}; it must be at least 1")
    if dimension < 1:
        raise ValueError(f"dimension is {dimension}; it must be at least 1")
