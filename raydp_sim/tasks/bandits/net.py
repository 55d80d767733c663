"""Finite nets of continuous action sets (000 Lemma 6.3.1).

Every action is within zeta of one of the net, which costs T zeta ||theta|| of regret at most: 1 at
the usual zeta = 1/T. A net has up to (3/zeta)^d + d points, which is out of reach but for tiny d
and T, so `max_net_size` guards memory.
"""

import math

import numpy as np

from raydp_sim.errors import InputError, bad_field
from raydp_sim.tasks.bandits.checks import Floats, check_vectors
from raydp_sim.tasks.bandits.design import greedy_basis, spanned

MAX_NET_SIZE = 100_000


def net_bound(zeta: float, dimension: int) -> float:
    """Return how many points a zeta-net of the unit ball needs at most.

    Example:
        >>> net_bound(0.5, 2)
        38.0
    """
    return float((3.0 / _check_zeta(zeta)) ** dimension + dimension)


def circle_net(zeta: float, max_net_size: int = MAX_NET_SIZE) -> Floats:
    """Return evenly spaced points of the unit circle, neighbours at most zeta apart.

    It also serves the unit disc: rewards are linear, so the best action is on the circle.

    Raises:
        InputError: when it would have more points than `max_net_size`; it names the size.

    Example:
        >>> circle_net(0.5).shape
        (13, 2)
    """
    spacing = 2.0 * math.asin(min(1.0, _check_zeta(zeta) / 2.0))
    size = max(3, math.ceil(2.0 * math.pi / spacing - 1e-12))
    if size > max_net_size:
        raise _too_large(size, zeta, max_net_size)
    angles = 2.0 * math.pi * np.arange(size) / size
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def greedy_net(cloud: Floats, zeta: float, max_net_size: int = MAX_NET_SIZE) -> Floats:
    """Return points of the cloud such that each of it is within zeta of one, and the span is kept.

    A point is taken if it is farther than zeta from all taken before it, in the order of the cloud;
    then as many as the span lacks. It covers an action set as finely as the cloud does.

    Raises:
        InputError: when more than `max_net_size` points are needed.

    Example:
        >>> greedy_net(np.array([[0.5, 0.0], [0.6, 0.0], [0.6, 0.1]]), 0.3)
        array([[0.5, 0. ],
               [0.6, 0.1]])
    """
    cloud, _ = check_vectors("cloud", cloud), _check_zeta(zeta)
    far, taken = np.ones(len(cloud), dtype=bool), []
    while far.any():
        first = int(far.argmax())
        taken.append(first)
        if len(taken) > max_net_size:
            raise _too_large(len(taken), zeta, max_net_size, f"{int(far.sum())} are not covered")
        far &= np.linalg.norm(cloud - cloud[first], axis=1) > zeta
    basis = spanned(cloud[taken]) if cloud[taken].any() else np.zeros((cloud.shape[1], 0))
    lacking = spanned(cloud).shape[1] - basis.shape[1]
    taken += greedy_basis(cloud - cloud @ basis @ basis.T, lacking)
    return cloud[sorted(taken)]


def _check_zeta(zeta: float) -> float:
    if not 0.0 < zeta <= 1.0:
        raise bad_field("zeta", zeta, "it must lie in (0, 1]; 1/T is usual")
    return zeta


def _too_large(size: int, zeta: float, most: int, more: str = "") -> InputError:
    need = f"a net at zeta {zeta:g} needs {size:,} points or more{'; ' * bool(more)}{more}"
    return bad_field("max_net_size", most, f"{need}; raise it, or zeta")
