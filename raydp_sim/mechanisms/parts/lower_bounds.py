"""What no private or short report can beat: minimax errors of mean estimation, by their orders."""

import math

from raydp_sim.mechanisms.parts.entropy import h2, rarer


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


def report_information(epsilon: float, randomness: float = 1.0) -> float:
    """Return the largest (a - b)^2 (1/(a + b) + 1/(2 - a - b)) of bits that are 1 with a or b.

    Their ratios, and those of 1 - a and 1 - b, are at most e^epsilon, and their entropies at most
    `randomness`: Girgis 2024, problem P1. Two bits of equal noise have the most, 2 ((e^epsilon - 1)
    / (e^epsilon + 1))^2; where they take too much randomness, a is of that entropy, at most 1/2,
    and b = a e^-epsilon. (7.19) prints 2 (a - b)^2 for the latter.

    Example:
        >>> round(report_information(1.0), 4), round(report_information(1.0, 0.5), 4)
        (0.4271, 0.0348)
    """
    if randomness >= h2(1.0 / (1.0 + math.exp(-epsilon))):
        return 2.0 * math.tanh(epsilon / 2.0) ** 2
    a = rarer(randomness)
    b = a * math.exp(-epsilon)
    return 2.0 * (a - b) ** 2 / ((a + b) * (2.0 - a - b))


def distribution_lower_bound(
    categories: int, clients: int, epsilon: float, randomness: float = 1.0
) -> float:
    """Return what the squared l2 error of an estimated distribution is at least, for some truth.

    Each of n clients sends an epsilon-LDP report that draws at most so many bits of randomness. As
    Girgis 2024, Theorem 7.3.1, with its proof mended: (k/2)^2 / (n k e^epsilon v + 2 pi^2 k^3), v
    the `report_information`. The printed bound has less than v where randomness is short, and
    leaves out 2 pi^2 k^3, what is known beforehand; errors below it can be reached.

    Args:
        categories: k >= 2.
        clients: n >= 1.
        epsilon: local loss, > 0.
        randomness: bits, > 0.

    Example:
        >>> round(distribution_lower_bound(1024, 10**12, 1.0, 0.02) * 1e8, 4)
        16.635
    """
    v = report_information(epsilon, randomness)
    told = clients * categories * math.exp(min(epsilon, 700.0)) * v
    return (categories / 2.0) ** 2 / (told + 2.0 * math.pi**2 * categories**3)


def _check(power: float, dimension: int) -> None:
    if not power >= 1.0:
        raise ValueError(f"power is {power}; it must be at least 1")
    if dimension < 1:
        raise ValueError(f"dimension is {dimension}; it must be at least 1")
