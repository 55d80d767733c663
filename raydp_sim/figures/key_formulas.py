"""Closed forms of 000 Chapter 7: randomness of reports and keys, and bounds on their errors."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import scipy

from raydp_sim.figures.formulas import Formula, Known
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.hadamard_bit import HadamardBit
from raydp_sim.mechanisms.hadamard_cascade import HadamardCascade
from raydp_sim.mechanisms.parts.entropy import h2, rarer
from raydp_sim.mechanisms.parts.hadamard_sign import HadamardSign
from raydp_sim.mechanisms.parts.heavy_keys import fewest_bits, key_entropy, relaxed_entropy
from raydp_sim.mechanisms.parts.lower_bounds import distribution_lower_bound, report_information

_NATS = 1.0 / math.log(2.0)
_DECAY = 0.8


def geometric(categories: int) -> Floats:
    """Return probabilities proportional to 0.8^x.

    Example:
        >>> geometric(2).round(6).tolist()
        [0.555556, 0.444444]
    """
    share = _DECAY ** np.arange(categories, dtype=np.float64)
    return np.asarray(share / share.sum())


def flip(epsilon: float) -> float:
    """Return z = 1 / (e^epsilon + 1)."""
    return float(scipy.special.expit(-epsilon))


def cascade_bits(levels: tuple[float, ...]) -> float:
    """Return the entropies of all coins of a cascade, (7.34); equal levels share a coin.

    Example:
        >>> round(cascade_bits((1.0, 0.5)), 12)
        1.626573969032
    """
    z = [flip(level) for level in levels]
    coins = [(b - a) / (1.0 - 2.0 * a) for a, b in itertools.pairwise(z)]
    return h2(z[0]) + sum(h2(coin) for coin in coins)


def _drawn_bits(levels: tuple[float, ...]) -> float:
    own = tuple(dict.fromkeys(levels))
    return HadamardCascade(epsilon_local=own[-1], finer=own[:-1], categories=2).entropy


def _two(known: Known) -> tuple[float, ...]:
    return (1.0, known["epsilon0"])


def _ten(known: Known) -> tuple[float, ...]:
    """Return epsilon_1 = 2 and epsilon_j = 2 - 0.1 j."""
    return tuple(2.0 if j == 1 else 2.0 - 0.1 * j for j in range(1, int(known["levels"]) + 1))


def _apart(levels: tuple[float, ...]) -> float:
    return sum(h2(flip(level)) for level in levels)


def _krr(known: Known) -> float:
    p, k = math.exp(known["epsilon0"]), known["categories"]
    return _NATS * (math.log(k - 1 + p) - known["epsilon0"] * p / (k - 1 + p))


def _response(known: Known) -> float:
    """Return the bound (7.51) on the entropy of Hadamard response."""
    p, k = math.exp(known["epsilon0"]), known["categories"]
    return _NATS * (math.log(2 * k * (3 * p - 1) / p) - known["epsilon0"] * p / (3 * p - 1))


def _least(known: Known) -> float:
    k, epsilon = int(known["categories"]), known["epsilon0"]
    return key_entropy(k, fewest_bits(k, epsilon), epsilon)


def _sign(known: Known) -> HadamardSign:
    return HadamardBit(
        epsilon_local=known["epsilon0"],
        categories=int(known["categories"]),
        randomness=known["randomness"],
    ).sign


def _exact(known: Known) -> float:
    k = int(known["categories"])
    return k * _sign(known).grouped_variance(geometric(k), known["clients"])


def _worst(known: Known) -> float:
    k = int(known["categories"])
    return k * _sign(known).grouped_variance(np.eye(k)[0], known["clients"])


def _upper(known: Known) -> float:
    p, q = math.exp(known["epsilon0"]), _sign(known).up
    return 2.0 * known["categories"] * p**2 / (known["clients"] * q**2 * (p - 1.0) ** 2)


def _lower(known: Known) -> float:
    return distribution_lower_bound(
        int(known["categories"]), int(known["clients"]), known["epsilon0"], known["randomness"]
    )


def _enough(known: Known) -> bool:
    return known["randomness"] >= h2(flip(known["epsilon0"]))


def _lower_printed(known: Known) -> float:
    p, n, k = math.exp(known["epsilon0"]), known["clients"], known["categories"]
    if _enough(known):
        return k * (p + 1.0) ** 2 / (16.0 * n * p * (p - 1.0) ** 2)
    return k * p / (16.0 * n * rarer(known["randomness"]) ** 2 * (p - 1.0) ** 2)


def _information_printed(known: Known) -> float:
    if _enough(known):
        return report_information(known["epsilon0"], known["randomness"])
    a = rarer(known["randomness"])
    return 2.0 * (a - a * math.exp(-known["epsilon0"])) ** 2


def _range(known: Known) -> tuple[float, float]:
    """Return the least and largest b that may go with a, (7.15): nan where a takes too much."""
    a, epsilon = known["likelihood"], known["epsilon0"]
    q, p = math.exp(-epsilon), math.exp(epsilon)
    low, high = max(a * q, 1.0 - (1.0 - a) * p), min(a * p, 1.0 - (1.0 - a) * q)
    edge = rarer(known["randomness"])
    if not 0.0 < a < 1.0 or edge < a < 1.0 - edge:
        return math.nan, math.nan
    # Of the two sides, the one that a is on; that both can be reached takes R >= R*.
    if edge < 0.5 and a <= edge and high < 1.0 - edge:
        high = min(high, edge)
    if edge < 0.5 and a >= 1.0 - edge and low > edge:
        low = max(low, 1.0 - edge)
    return low, high


def _total(kind: str) -> Callable[[Known], float]:
    def compute(known: Known) -> float:
        k = int(known["categories"])
        mechanism = make(kind, epsilon_local=known["epsilon0"], categories=k)
        return float(mechanism.laws(np.arange(float(k))[:, None])[0].sum(axis=0).max())

    return compute


_TWO = ("epsilon0",)
_TABLE = ("epsilon0", "categories")
_RISK = ("epsilon0", "categories", "clients", "randomness")
_INFORMATION = ("epsilon0", "randomness")
_PAIRS = ("epsilon0", "randomness", "likelihood")

KEY_FORMULAS: dict[str, Formula] = {
    "two-levels": Formula(
        "bits", "formula", _TWO, lambda k: cascade_bits(_two(k)), "000 Section 7.4, epsilon_1 = 1"
    ),
    "two-levels-drawn": Formula(
        "bits", "formula", _TWO, lambda k: _drawn_bits(_two(k)), "coins of 'hadamard-cascade'"
    ),
    "two-levels-apart": Formula(
        "bits", "formula", _TWO, lambda k: _apart(_two(k)), "000 Section 7.4, separate releases"
    ),
    "ten-levels": Formula(
        "bits", "formula", ("levels",), lambda k: cascade_bits(_ten(k)), "000 Section 7.4"
    ),
    "ten-levels-drawn": Formula(
        "bits",
        "formula",
        ("levels",),
        lambda k: _drawn_bits(_ten(k)),
        "coins of 'hadamard-cascade'",
    ),
    "ten-levels-apart": Formula(
        "bits", "formula", ("levels",), lambda k: _apart(_ten(k)), "000, separate releases"
    ),
    "krr-bits": Formula("bits", "formula", _TABLE, _krr, "000 Table 7.1, RR"),
    "response-bits": Formula("bits", "formula", _TABLE, _response, "000 (7.51), a bound"),
    "rappor-printed": Formula(
        "bits",
        "formula",
        _TABLE,
        lambda k: k["categories"] * h2(flip(k["epsilon0"])),
        "000 Table 7.1, RAPPOR as printed, which loses twice epsilon",
    ),
    "bit-bits": Formula(
        "bits", "formula", _TABLE, lambda k: h2(flip(k["epsilon0"])), "000 Table 7.1, BH"
    ),
    "key-least": Formula("bits", "formula", _TABLE, _least, "000 Theorem 7.5.1"),
    "key-relaxed": Formula(
        "bits",
        "formula",
        _TABLE,
        lambda k: relaxed_entropy(int(k["categories"]), k["epsilon0"]),
        "000 (7.52), corrected",
    ),
    "key-uniform": Formula(
        "bits", "formula", _TABLE, lambda k: math.log2(k["categories"]), "a uniform key"
    ),
    "frequencies-exact": Formula("mse", "formula", _RISK, _exact, "exact, shares 0.8^x"),
    "frequencies-worst": Formula("mse", "formula", _RISK, _worst, "exact, all hold category 0"),
    "frequencies-upper": Formula("mse", "formula", _RISK, _upper, "000 (7.10)"),
    "frequencies-lower": Formula("mse", "formula", _RISK, _lower, "000 (7.8), corrected"),
    "frequencies-lower-printed": Formula("mse", "formula", _RISK, _lower_printed, "000 (7.8)"),
    "pairs-high": Formula(
        "likelihood", "formula", _PAIRS, lambda k: _range(k)[1], "000 Figure 7.4, largest b"
    ),
    "pairs-low": Formula(
        "likelihood", "formula", _PAIRS, lambda k: _range(k)[0], "000 Figure 7.4, least b"
    ),
    "response-total": Formula(
        "likelihood", "formula", _TABLE, _total("hadamard-response"), "largest sum_x Q(y | x)"
    ),
    "recoverable-total": Formula(
        "likelihood", "formula", _TABLE, _total("recoverable-hadamard"), "largest sum_x Q(y | x)"
    ),
    "information": Formula(
        "information",
        "formula",
        _INFORMATION,
        lambda k: report_information(k["epsilon0"], k["randomness"]),
        "optimum of P1, 000 (7.19) corrected",
    ),
    "information-printed": Formula(
        "information", "formula", _INFORMATION, _information_printed, "000 (7.19) and (7.23)"
    ),
}
