"""The accountants of learning with noise inside local steps, of which one is a proof.

| name | what it is |
| --- | --- |
| `seed` | 000 Theorem 4.5.1 as printed; no bound for four or more steps a round |
| `aggregate` | a trusted server publishes averages only, and a client's noise of all steps of a |
|  | round is taken for one Gaussian; an argument, and a proof only for a single noisy step |
| `local` | every noisy step is seen: proved for any server, any number of steps, any sampling |

Where a noise is missing each of them is infinite (`none`). The ledger charges `local`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from raydp_sim.privacy.bounds.subsampled_gaussian import PoissonGaussian
from raydp_sim.privacy.composition.conversion import best_order, rdp_to_dp
from raydp_sim.privacy.curves.adaped import (
    Noise,
    adaped_rdp,
    cost_of_step,
    without_replacement_rdp,
)
from raydp_sim.privacy.events import SubsampledGaussian

Neighbours = Literal["add-remove", "replace-one"]
# Of the searches: the first for a minimum, which is flat, the second for a root.
_GOLDEN, _HALVES = 48, 64


@dataclass(frozen=True)
class Personal:
    """A run of rounds of noisy local steps.

    Attributes:
        rounds: T/tau.
        steps: tau, of one round.
        clients: n.
        sampled: K of them in each round, uniformly; n: all.
        noises: of a step's parts: (C1, sigma1) of the model, (C2, sigma2) of psi.

    Example:
        >>> run = Personal(100, 10, 50, 50, (Noise(1.0, 5.0), Noise(0.1, 0.5)))
        >>> round(run.seed(1e-4), 3), round(run.aggregate(1e-4, "add-remove"), 3)
        (6.154, 5.516)
        >>> round(run.aggregate(1e-4, "replace-one"), 3), round(run.local(1e-4), 2)
        (12.994, 234.23)
    """

    rounds: int
    steps: int
    clients: int
    sampled: int
    noises: tuple[Noise, ...]

    def __post_init__(self) -> None:
        if not (self.rounds >= 0 and self.steps >= 1 and 1 <= self.sampled <= self.clients):
            raise ValueError(f"{self} has no such rounds, steps or samples of clients")

    @property
    def private(self) -> bool:
        """Whether every part of a step has noise; if not, nothing holds (`none`)."""
        return math.isfinite(cost_of_step(self.noises))

    def seed(self, delta: float) -> float:
        """Return epsilon by the source's theorem, which is not proved."""
        if not self.private:
            return math.inf
        clips, sigmas = zip(*self.noises, strict=True)
        rho = adaped_rdp(2.0, self.rounds, self.clients, self.sampled, clips, sigmas) / 2.0
        return linear_epsilon(rho, delta)

    def aggregate(self, delta: float, neighbours: Neighbours) -> float:
        """Return epsilon of the averages, which is not proved for more than one noisy step.

        The mean of K clients moves by steps C/K if a client is added or removed, by twice that if
        it is replaced, against a variance of steps sigma^2/K. With K < n clients are taken for a
        Poisson sample (add-remove), or a uniform one (replace-one).
        """
        if not self.private:
            return math.inf
        inverse = self.steps * cost_of_step(self.noises) / self.sampled  # 1/z^2, add or remove
        if neighbours == "replace-one":
            inverse *= 4.0
        if self.sampled == self.clients or inverse == 0.0:
            return linear_epsilon(0.5 * inverse * self.rounds, delta)
        multiplier, rate = 1.0 / math.sqrt(inverse), self.sampled / self.clients
        if neighbours == "add-remove":
            release, bound = SubsampledGaussian(multiplier, rate), PoissonGaussian()

            def one(order: int) -> float:
                return bound.one(release, order)
        else:

            def one(order: int) -> float:
                return without_replacement_rdp(order, rate, multiplier)

        def curve(orders: np.ndarray) -> np.ndarray:
            return self.rounds * np.array([one(int(order)) for order in orders])

        return best_order(curve, delta, 1024).epsilon

    def local(self, delta: float, taken: int | None = None) -> float:
        """Return epsilon of a client in so many rounds, 2 alpha steps sum C^2/sigma^2 a round.

        Proved, against whoever sees every noisy step. By divergences, as the others; the ledger's
        own bound is a little smaller.
        """
        if not self.private:
            return math.inf
        rounds = self.rounds if taken is None else taken
        return linear_epsilon(2.0 * rounds * self.steps * cost_of_step(self.noises), delta)


def linear_epsilon(rho: float, delta: float) -> float:
    """Return the least epsilon of divergences alpha rho, over real orders alpha > 1.

    Example:
        >>> round(linear_epsilon(0.342743, 1e-4), 4)
        3.35
    """
    if rho == 0.0:
        return 0.0

    def epsilon(x: float) -> float:
        alpha = 1.0 + math.exp(x)
        return rdp_to_dp(alpha * rho, alpha, delta)

    # Around 1 + sqrt(log(1/delta)/rho) there is one minimum; any order is valid.
    centre = 0.5 * math.log(-math.log(delta) / rho)
    low, high = centre - 4.0, centre + 4.0
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(_GOLDEN):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if epsilon(a) <= epsilon(b) else (a, high)
    return epsilon(0.5 * (low + high))


@lru_cache(maxsize=256)
def linear_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho whose `linear_epsilon` is at most epsilon.

    Example:
        >>> round(linear_rho(3.35, 1e-4), 6)
        0.342743
    """
    low, high = -60.0, math.log(epsilon)
    for _ in range(_HALVES):
        middle = 0.5 * (low + high)
        if linear_epsilon(math.exp(middle), delta) <= epsilon:
            low = middle
        else:
            high = middle
    return math.exp(low)


def calibrated_aggregate(
    epsilon: float,
    delta: float,
    run: tuple[int, int, int, int],
    radii: Sequence[float],
    shares: Sequence[float],
) -> tuple[Noise, ...]:
    """Return the noises at which `aggregate` says epsilon, neighbours replace a client.

    Args:
        epsilon: of the whole run.
        delta: that goes with it.
        run: rounds, steps, clients, sampled.
        radii: of the parts of a step.
        shares: of the cost that each part bears; they add up to 1.

    Example:
        >>> noises = calibrated_aggregate(3.35, 1e-4, (30, 10, 50, 50), (0.5, 0.05), (0.9, 0.1))
        >>> [round(noise.sigma, 4) for noise in noises]
        [3.1186, 0.9356]
    """
    rounds, steps, clients, sampled = run

    def noises(cost: float) -> tuple[Noise, ...]:
        pairs = zip(radii, shares, strict=True)
        return tuple(Noise(c, c / math.sqrt(share * cost)) for c, share in pairs)

    if sampled == clients:
        # (2 steps cost/K) rounds = rho
        return noises(linear_rho(epsilon, delta) * sampled / (2.0 * steps * rounds))
    low, high = -40.0, 10.0
    for _ in range(_HALVES):
        middle = 0.5 * (low + high)
        found = Personal(rounds, steps, clients, sampled, noises(math.exp(middle)))
        if found.aggregate(delta, "replace-one") <= epsilon:
            low = middle
        else:
            high = middle
    return noises(math.exp(low))
