"""User-level means of one number (000 Section 3.7): the bound on their error, and played.

Samples lie in [-10, 10] and have the deviation 1; the event that some user's mean is further than
tau from the true one has probability 0.01 at most.
"""

import math

import numpy as np

from raydp_sim.mechanisms.base import Floats, Mechanism
from raydp_sim.mechanisms.linf import LInfVector
from raydp_sim.mechanisms.projected_mean import ProjectedMean
from raydp_sim.mechanisms.user_range import UserRange
from raydp_sim.random import Stream

RANGE, SIGMA, GAMMA = 10.0, 1.0, 0.01
# Where the users' samples are drawn around.
_TRUTH = 3.7
_SEED = 3700


def tau(clients: int, samples: int) -> float:
    """Return the radius that all users' means keep to, with the factor 2 that the text omits.

    Example:
        >>> round(tau(4000, 100), 5)
        0.52139
    """
    return SIGMA * math.sqrt(2.0 * math.log(2.0 * clients / GAMMA) / samples)


def bound(clients: int, samples: int, epsilon0: float, levels: int) -> float:
    """Return f(3 tau, epsilon0/2)/n of the second stage, R^linf with v = epsilon0/2.

    Example:
        >>> round(bound(4000, 100, 2.0, 3), 7)
        0.0070979
    """
    stage = LInfVector(
        dimension=1,
        radius=3.0 * tau(clients, samples),
        epsilon_local=epsilon0 / 2.0,
        coordinates=1,
        levels=levels,
        calibration="seed",
    )
    return stage.worst_mse() / clients


def naive(clients: int, epsilon0: float) -> float:
    """Return the error of Laplace noise for the whole interval, at the whole budget."""
    return 8.0 * RANGE**2 / (clients * epsilon0**2)


def played(clients: int, samples: int, epsilon0: float, levels: int, repetitions: int) -> float:
    """Return the mean squared error of both stages played with normal samples around 3.7."""
    width = tau(clients, samples)
    bins = max(1, math.ceil(RANGE / width))
    half = {"epsilon_local": epsilon0 / 2.0, "dimension": 1, "clients": clients}
    search = UserRange(bins=bins, **half)
    total = 0.0
    for repetition in range(repetitions):
        place = Stream(_SEED).at("user-level", repetition)
        noise = place.at("samples").generator().standard_normal((clients, 1))
        means = np.clip(_TRUTH + SIGMA / math.sqrt(samples) * noise, -RANGE, RANGE)
        number = np.clip(np.floor((means + RANGE) / (2.0 * width)), 0.0, bins - 1.0)
        densest = int(np.argmax(_estimate(search, number, place.at("range"))[:bins]))
        projected = ProjectedMean(
            radius=RANGE,
            centre=-RANGE + width * (2 * densest + 1),
            reach=3.0 * width,
            levels=levels,
            calibration="seed",
            **half,
        )
        found = _estimate(projected, means, place.at("mean"))
        total += float((found[0] - means.mean()) ** 2) / repetitions
    return total


def _estimate(mechanism: Mechanism, values: Floats, place: Stream) -> Floats:
    clients = len(values)
    payload = mechanism.randomize(values, place.clients(np.arange(clients))).payload
    counts = mechanism.zero()
    for message in range(mechanism.messages_per_report):
        counts = mechanism.fold(counts, np.full(clients, message), payload[:, message])
    return mechanism.decode(counts, place)
