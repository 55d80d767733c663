"""Parameters of learning with several messages per client: levels, coordinates, budget, step."""

import math
from typing import NamedTuple

# A of the divergence A alpha v^2/(s n) of one round, as the two seeds have it.
SEED_003, SEED_000 = 768.0, 48.0


class MmsParameters(NamedTuple):
    """Of R^l2_{v,m,s}.

    Attributes:
        levels: m.
        coordinates: s.
        budget: v, of a client's report.
        bits: of a client's report.
    """

    levels: int
    coordinates: int
    budget: float
    bits: int


def safe_constant(epsilon: float, constant: float) -> float:
    """Return c for which v^2 = s n min{eps^2, eps}/(c T log(1/delta)) gives (epsilon, delta).

    With the conversion epsilon <= 3 max{rho L, sqrt(rho L)}, rho = A v^2 T/(s n): 9 A up to epsilon
    1, 9 A/epsilon up to 3, and 3 A beyond. The seeds print 3 A throughout, which up to epsilon 1
    gives sqrt(3) epsilon.

    Example:
        >>> [safe_constant(epsilon, 48.0) for epsilon in (0.5, 2.0, 4.0)]
        [432.0, 216.0, 144.0]
    """
    return 9.0 * constant if epsilon <= 1.0 else max(3.0, 9.0 / epsilon) * constant


def mms_parameters(
    clients: int, dimension: int, rounds: int, epsilon: float, delta: float, c: float
) -> MmsParameters:
    """Return the parameters of 003 Theorem 9 for a run of full gradients of all clients.

    Args:
        clients: n.
        dimension: d.
        rounds: T.
        epsilon: of the whole run, user-level.
        delta: that goes with it.
        c: see `safe_constant`; 2304 is what 003 prints.

    Example:
        >>> mms_parameters(1000, 300, 5, 2.0, 1e-5, 2304.0)[:2]
        (1, 300)
    """
    worth = clients * min(epsilon**2, epsilon) / rounds
    levels = max(1, math.ceil(math.log2(worth / dimension)))
    coordinates = max(1, min(dimension, math.floor(worth)))
    budget = math.sqrt(coordinates * worth / (c * -math.log(delta)))
    block = math.ceil(math.log2(math.ceil(dimension / coordinates))) + 1
    return MmsParameters(levels, coordinates, budget, levels * coordinates * block)


def smooth_step(smoothness: float, gap: float, mse: float, rounds: int) -> float:
    """Return eta = min{1/L, sqrt(2 D_F)/(sigma sqrt(L T))}, for L-smooth losses.

    Args:
        smoothness: L.
        gap: D_F, at least F(theta^0) - min F.
        mse: sigma^2, of the estimate of a round's gradient.
        rounds: T.
    """
    return min(1.0 / smoothness, math.sqrt(2.0 * gap / (mse * smoothness * rounds)))


def smooth_bound(smoothness: float, gap: float, mse: float, rounds: int) -> float:
    """Bound the mean over rounds of E||grad F||^2: 2 L D_F/T + 2 sigma sqrt(2 L D_F/T).

    003 (18) as it follows from smoothness and unbiasedness; the printed one lacks a square and has
    a stray epsilon.

    Example:
        >>> round(smooth_bound(1.0, 1.0, 0.01, 200), 6)
        0.03
    """
    first = 2.0 * smoothness * gap / rounds
    return first + 2.0 * math.sqrt(mse * first)
