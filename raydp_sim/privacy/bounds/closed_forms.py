"""(epsilon, delta) of one shuffle in closed form, and by the privacy blanket."""

import math
from dataclasses import dataclass
from typing import Literal

from raydp_sim.privacy.bound import check_delta
from raydp_sim.privacy.bounds.efm19 import efm19_rho
from raydp_sim.privacy.composition.conversion import linear_rdp_to_dp
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Shuffle

_STEPS = 200


def fmt_closed(
    epsilon0: float, n: int, delta: float, variant: Literal["paper", "ref"] = "paper"
) -> float:
    """Return the closed form of Feldman, McMillan and Talwar for n shuffled messages.

    FMT20 Theorem 3.1 (002 (8)), if epsilon0 <= log(n/(16 log(2/delta))). "ref" is the authors'
    released code: log(4/delta) in the condition and a slightly larger factor.

    Raises:
        NotApplicable: where the condition fails; then only (epsilon0, 0) is known.

    Example:
        >>> round(fmt_closed(4.0, 100_000, 1e-6), 12)
        0.534633991652
    """
    Shuffle(epsilon0, n)
    check_delta(delta)
    if epsilon0 == 0.0:
        return 0.0
    inside = 2.0 if variant == "paper" else 4.0
    if not epsilon0 <= math.log(n / (16.0 * (math.log(inside) - math.log(delta)))):
        raise NotApplicable(
            f"the closed form needs epsilon0 <= log(n/(16 log({inside:g}/delta))); epsilon0 is "
            f"{epsilon0:g}, n is {n}, delta is {delta:g}"
        )
    E = math.exp(epsilon0)
    bracket = 8.0 * math.sqrt(E * (math.log(4.0) - math.log(delta)) / n) + 8.0 * E / n
    if variant == "paper":
        return math.log1p(math.tanh(epsilon0 / 2.0) * bracket)
    factor = -math.expm1(-epsilon0) / (1.0 + 1.0 / (E * (1.0 + bracket)))
    return math.log1p(factor * bracket)


def efm19(epsilon0: float, n: int, delta: float) -> float:
    """Return 12 epsilon0 sqrt(log(1/delta)/n).

    Erlingsson et al. 2019, Corollary 9, if epsilon0 < 1/2, delta < 1/100 and n >= 1000.

    Raises:
        NotApplicable: where a condition fails.

    Example:
        >>> round(efm19(0.1, 10_000, 1e-6), 6)
        0.044603
    """
    Shuffle(epsilon0, n)
    check_delta(delta)
    if not (epsilon0 < 0.5 and delta < 0.01 and n >= 1000):
        raise NotApplicable(
            f"efm19 needs epsilon0 < 1/2, delta < 1/100, n >= 1000; they are {epsilon0:g}, "
            f"{delta:g}, {n}"
        )
    return 12.0 * epsilon0 * math.sqrt(-math.log(delta) / n)


def efm19_general(epsilon0: float, n: int, delta: float) -> float:
    """Return rho + 2 sqrt(rho log(1/delta)), rho = 2 e^(4 epsilon0) (E - 1)^2/n, for all epsilon0.

    Example:
        >>> round(efm19_general(1.0, 10_000, 1e-6), 3)
        1.367
    """
    Shuffle(epsilon0, n)
    return linear_rdp_to_dp(efm19_rho(epsilon0, n), delta)


@dataclass(frozen=True)
class Blanket:
    """What the blanket bound knows of the randomizer: mass g, range and second moment of L.

    `constants` "generic" takes the second input's own law as blanket (any epsilon0-LDP randomizer,
    g = 1/E). "published" and "tight" need the true blanket mass g of a known mechanism: 2/(E + 1)
    for 2RR, B/(E + B - 1) for B-ary randomized response. Putting g = 1/E into them is NOT valid.
    """

    constants: Literal["generic", "published", "tight"] = "generic"
    mass: float | None = None

    def __post_init__(self) -> None:
        if (self.constants == "generic") != (self.mass is None):
            raise ValueError(
                f"mass is {self.mass}; generic constants take none, others the true blanket mass"
            )
        if self.mass is not None and not 0.0 < self.mass <= 1.0:
            raise ValueError(f"mass is {self.mass}; it must lie in (0, 1]")

    def moments(self, epsilon0: float, epsilon: float) -> tuple[float, float, float, float]:
        """Return g, b+, b-, c with L in [b-, b+] and E L^2 <= c."""
        E, e = math.exp(epsilon0), math.exp(epsilon)
        if self.mass is None:
            v0 = 4.0 * math.sinh(epsilon0 / 2.0) ** 2
            top = -E * math.expm1(epsilon - epsilon0)
            return 1.0 / E, top, 1.0 / E - e, v0 + math.expm1(epsilon) ** 2
        g = self.mass
        if self.constants == "tight":
            low = -g * math.expm1(epsilon + epsilon0)
            return g, g * (E - e), low, g * E * (e * e + 1.0) - 2.0 * g * g * e
        high = -g * E * math.expm1(epsilon - 2.0 * epsilon0)
        low = -g / E * math.expm1(epsilon + 2.0 * epsilon0)
        return g, high, low, g * E * (e * e + 1.0) - 2.0 * g * g * e / E**2


GENERIC = Blanket()


def balle_log_delta(epsilon0: float, n: int, epsilon: float, blanket: Blanket = GENERIC) -> float:
    """Return the log of a delta at epsilon > 0, the better of Hoeffding and Bennett.

    Balle et al. 2019, with the number of blanket messages M ~ Bin(n, g) averaged in closed form.
    Bennett's phi is taken from below; 1e-12 of each exponent is added for rounding.

    Example:
        >>> round(balle_log_delta(1.0, 10_000, 0.069313), 3)
        -13.816
    """
    g, top, low, second = blanket.moments(epsilon0, epsilon)
    if top <= 0.0:
        return -math.inf
    a, b = math.expm1(epsilon), top - low
    log_gn = math.log(g) + math.log(n)
    hoeffding = 2.0 * math.log(b) - math.log(4.0 * a) - log_gn
    hoeffding += n * math.log1p(g * math.expm1(-2.0 * (a / b) ** 2)) * (1.0 - 1e-12)
    u = a * top / second
    bennett = math.log(top) - math.log(math.log1p(u)) - log_gn
    bennett += n * math.log1p(g * math.expm1(-second / top**2 * _phi(u))) * (1.0 - 1e-12)
    return min(0.0, min(hoeffding, bennett) + 1e-12)


def _phi(u: float) -> float:
    """Return (1 + u) log(1 + u) - u for u >= 0, from below to 1e-12 of itself."""
    if u > 0.01:
        return (1.0 + u) * math.log1p(u) - u
    # Its alternating series, ended with a negative term: u^9/72 is what is left at most.
    return u * u * sum((-u) ** j / ((j + 1.0) * (j + 2.0)) for j in range(6))


def balle(epsilon0: float, n: int, delta: float, blanket: Blanket = GENERIC) -> float:
    """Return the blanket bound's epsilon for n shuffled messages, rounded up.

    Balle et al. 2019, "The privacy blanket of the shuffle model".

    Raises:
        NotApplicable: if nothing below epsilon0 is found; then only (epsilon0, 0) is known.

    Example:
        >>> round(balle(1.0, 10_000, 1e-6), 6)
        0.069313
    """
    Shuffle(epsilon0, n)
    check_delta(delta)
    if epsilon0 == 0.0:
        return 0.0
    target = math.log(delta)
    low, high = 0.0, epsilon0 * (1.0 - 1e-9)
    if balle_log_delta(epsilon0, n, high, blanket) > target:
        raise NotApplicable(
            f"the blanket bound finds nothing below epsilon0 = {epsilon0:g} at n = {n}, delta = "
            f"{delta:g}"
        )
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high or high - low <= 1e-13 * high:
            break
        if balle_log_delta(epsilon0, n, middle, blanket) <= target:
            high = middle
        else:
            low = middle
    return high
