"""Shuffle bounds for named randomizers, smaller than the generic one, and the stronger clones.

Each randomizer's constants are derived in its function below and go into the theorem of blanket.py.
They hold for that randomizer only: any other name is refused.

Stronger clones (clone probability 2/(e^epsilon0 + 1) instead of e^-epsilon0). With p = e^epsilon0 a
neutral ball of weight (1, 1) is the mean of (p, 1) and (1, p), with probability 1/(p+1) each, and
(0, 0) otherwise. Splitting it so is a spread as in step (2) of blanket.py and turns the blanket
pair into the clone pair with g (2u + (1 - 2u) 2/(p+1)) = 2/(p+1). So the stronger form holds for
every randomizer whose blanket has mass g >= 2/(p+1), that is u <= 1/2: all of those below. Where
only epsilon0-LDP is known g can be as small as 1/p, u > 1/2, and it is refused.
"""

import math
from collections.abc import Callable

from raydp_sim.privacy.curves.blanket import Blanket
from raydp_sim.privacy.curves.clones import check_batch, clone_pair
from raydp_sim.privacy.curves.tilted import TiltedCoins
from raydp_sim.privacy.errors import Unsupported
from raydp_sim.privacy.names import hadamard_blocks, parameter_of


def two_rr(epsilon0: float, alphabet: int | None = None) -> Blanket:
    """Binary randomized response.

    R(x) is p/(p+1) at x and 1/(p+1) at the other bit, so W = 1/(p+1) on both, g = 2/(p+1), u = 1/2:
    no neutral balls, the clone pair with clone probability 2/(p+1).

    Example:
        >>> round(two_rr(1.0).mass, 9)
        0.537882843
    """
    _expect("2rr", alphabet, (None, 2))
    return k_rr(epsilon0, 2)


def k_rr(epsilon0: float, alphabet: int | None = None) -> Blanket:
    """k-ary randomized response.

    R(x) is p/(p+k-1) at x and 1/(p+k-1) elsewhere, so W = 1/(p+k-1) everywhere, g = k/(p+k-1) and
    u = 1/k: "first" and "second" are the victim's two symbols.

    Example:
        >>> round(k_rr(1.0, 10).variation, 9)
        0.146632574
    """
    if alphabet is None or alphabet < 2:
        raise ValueError(f"alphabet of krr is {alphabet}; it must be an integer >= 2")
    return Blanket(epsilon0, 1.0 / (1.0 + math.expm1(epsilon0) / alphabet), 1.0 / alphabet)


def hadamard(epsilon0: float, alphabet: int | None = None) -> Blanket:
    """Hadamard response over `alphabet` symbols, with the B blocks of b outputs of its authors.

    R(x) is p/Z on a set C_x of b/2 outputs of x's block and 1/Z on the other K - b/2, K = B b and
    Z = (b/2)(p + 2B - 1), so W = 1/Z everywhere, g = K/Z = 2B/(p + 2B - 1) and u = 1/(2B): the same
    constants as randomized response over 2B symbols, attained by symbols of different blocks.

    With one block (epsilon0 <= log 2) two symbols always share it, and their sets overlap in b/4
    outputs: of W's draws a quarter is first, a quarter second, a quarter neutral with weight p and
    a quarter neutral with weight 1. Splitting the last ones between p and 0 (blanket.py) leaves
    neutral weight p, mass (3p+1)/(2p(p+1)) and share p/(3p+1).

    Example:
        >>> round(hadamard(2.0, 100).mass, 9)
        0.555978095
    """
    if alphabet is None or alphabet < 2:
        raise ValueError(f"alphabet of hadamard is {alphabet}; it must be an integer >= 2")
    blocks = hadamard_blocks(epsilon0, alphabet)
    if blocks > 1:
        return k_rr(epsilon0, 2 * blocks)
    p = math.exp(epsilon0)
    return Blanket(epsilon0, (3.0 * p + 1.0) / (2.0 * p * (p + 1.0)), p / (3.0 * p + 1.0), p)


def r_bin(epsilon0: float, alphabet: int | None = None) -> Blanket:
    """One message of R^Bin: a uniform coordinate of a block of a bits, and that bit by 2RR.

    The alphabet is 2a symbols (index, bit), of probability p/(a(p+1)) or 1/(a(p+1)), so W =
    1/(a(p+1)), g = 2/(p+1) and u = 1/2, as for 2RR; complementary blocks attain it.

    Example:
        >>> r_bin(1.0, 8) == two_rr(1.0)
        True
    """
    if alphabet is not None and (alphabet < 2 or alphabet % 2):
        raise ValueError(f"alphabet of rbin is {alphabet}; it must be 2a for blocks of a bits")
    return two_rr(epsilon0)


def laplace(epsilon0: float, alphabet: int | None = None) -> Blanket:
    """A vector of an l1 ball of diameter D plus Laplace noise of scale D/epsilon0 per coordinate.

    laws.py has its blanket, in any dimension of mass g = e^(-epsilon0/2): so u = (e^(epsilon0/2) -
    1)/(p - 1) = 1/(e^(epsilon0/2) + 1) <= 1/2.

    Example:
        >>> round(laplace(2.0).mass, 9)
        0.367879441
    """
    _expect("laplace", alphabet, (None,))
    return Blanket(epsilon0, math.exp(-0.5 * epsilon0), 1.0 / (math.exp(0.5 * epsilon0) + 1.0))


def rappor(epsilon0: float, alphabet: int | None = None) -> Blanket:
    """Bits of which one is set, each flipped with probability 1/(e^(epsilon0/2) + 1).

    laws.py has its blanket, of mass e^(-epsilon0/2), as that of `laplace`: so u is the same.

    Example:
        >>> rappor(2.0, 10) == laplace(2.0)
        True
    """
    return laplace(epsilon0)


def privunit(share: float, epsilon0: float) -> Blanket:
    """PrivUnit with a cap of this mass: densities of two values, u is the mass (laws.py).

    Example:
        >>> privunit(0.25, 1.0) == k_rr(1.0, 4)
        True
    """
    if not 0.0 < share <= 0.5:
        raise ValueError(f"the cap of privunit has mass {share}; it must lie in (0, 1/2]")
    return Blanket(epsilon0, 1.0 / (1.0 + share * math.expm1(epsilon0)), share)


def _expect(name: str, alphabet: int | None, allowed: tuple[int | None, ...]) -> None:
    if alphabet not in allowed:
        raise ValueError(f"alphabet of {name} is {alphabet}; it must be one of {allowed}")


BLANKETS: dict[str, Callable[[float, int | None], Blanket]] = {
    "2rr": two_rr,
    "krr": k_rr,
    "hadamard": hadamard,
    "rbin": r_bin,
    "laplace": laplace,
    "rappor": rappor,
}


def is_known(randomizer: str | None) -> bool:
    """Say whether the blanket of a randomizer of this name is known.

    Example:
        >>> is_known("krr"), is_known("privunit(0.25)"), is_known("privunit"), is_known(None)
        (True, True, False, False)
    """
    kind, share = parameter_of(randomizer)
    return randomizer in BLANKETS or (kind == "privunit" and share is not None)


def blanket_of(randomizer: str | None, epsilon0: float, alphabet: int | None = None) -> Blanket:
    """Return the blanket of a named randomizer, or raise Unsupported.

    Example:
        >>> round(blanket_of("krr", 1.0, 3).share, 6)
        0.333333
    """
    kind, share = parameter_of(randomizer)
    if kind == "privunit" and share is not None:
        return privunit(share, epsilon0)
    if randomizer not in BLANKETS:
        raise Unsupported(
            f"the variation-ratio bound is not proved for {randomizer}; it is for "
            f"{', '.join(BLANKETS)}; use clones"
        )
    return BLANKETS[randomizer](epsilon0, alphabet)


def variation_pair(
    randomizer: str | None,
    epsilon0: float,
    n: int,
    alphabet: int | None = None,
    count: int = 60,
) -> TiltedCoins:
    """Return the dominating pair of n shuffled messages of a named randomizer.

    `count` is the resolution (buckets of M around its mean); fewer are faster and looser.

    Example:
        >>> variation_pair("2rr", 1.0, 10).most
        1.0
    """
    check_batch(epsilon0, n)
    return blanket_of(randomizer, float(epsilon0), alphabet).pair(int(n) - 1, count)


def variation_delta(
    randomizer: str | None, epsilon0: float, n: int, epsilon: float, alphabet: int | None = None
) -> float:
    """Return an upper bound on delta at epsilon of n shuffled messages of a named randomizer.

    Replace-one neighbours, every client runs this randomizer (blanket.py has theorem and proof).

    Args:
        randomizer: a name of BLANKETS, or "privunit(mass of its cap)"; others are refused.
        epsilon0: >= 0.
        n: shuffled messages, >= 1.
        epsilon: >= 0.
        alphabet: number of input symbols for krr and hadamard; 2a for rbin (optional).

    Example:
        >>> round(variation_delta("krr", 1.0, 1000, 0.05, alphabet=10), 6)
        0.000105
    """
    pairs = _pairs(randomizer, epsilon0, n, alphabet, 60)
    return min(pair.delta(epsilon) for pair in pairs)


def variation_epsilon(
    randomizer: str | None, epsilon0: float, n: int, delta: float, alphabet: int | None = None
) -> float:
    """Return an epsilon at which n shuffled messages of a named randomizer need at most delta.

    Arguments as in `variation_delta`.

    Example:
        >>> round(variation_epsilon("krr", 3.0, 10_000, 1e-6, alphabet=100), 3)
        0.089
    """
    blanket, clones = _pairs(randomizer, epsilon0, n, alphabet, 60)
    found = blanket.epsilon(delta)
    # One look says whether the other pair could do with less.
    return found if clones.delta(found) >= delta else min(found, clones.epsilon(delta))


def variation_rdp(
    alpha: float, randomizer: str | None, epsilon0: float, n: int, alphabet: int | None = None
) -> float:
    """Return an upper bound on the order-alpha RDP of n shuffled messages of a named randomizer.

    Arguments as in `variation_delta`; alpha is real and > 1.

    Example:
        >>> round(variation_rdp(2.0, "krr", 1.0, 1000, alphabet=10), 6)
        0.00051
    """
    pairs = _pairs(randomizer, epsilon0, n, alphabet, 24)
    return min(pair.rdp(float(alpha)) for pair in pairs)


def _pairs(
    randomizer: str | None, epsilon0: float, n: int, alphabet: int | None, count: int
) -> tuple[TiltedCoins, ...]:
    """Return the blanket pair and the stronger clones, which are resolved more finely."""
    pair = variation_pair(randomizer, epsilon0, n, alphabet, count)
    return (pair, stronger_clones_pair(randomizer, epsilon0, n, 6000 if count >= 60 else 750))


def stronger_clones_pair(
    randomizer: str | None, epsilon0: float, n: int, count: int = 6000
) -> TiltedCoins:
    """Return the clone pair with clone probability 2/(e^epsilon0 + 1), where that is proved.

    Example:
        >>> round(stronger_clones_pair("2rr", 3.0, 10_000).epsilon(1e-6), 3)
        0.226
    """
    check_batch(epsilon0, n)
    if not is_known(randomizer):
        raise Unsupported(
            f"stronger clones are not proved for {randomizer}, whose blanket may be smaller than "
            f"2/(e^epsilon0 + 1); they are for {', '.join(BLANKETS)}; use clones"
        )
    return clone_pair(float(epsilon0), int(n) - 1, two_rr(float(epsilon0)).mass, count)
