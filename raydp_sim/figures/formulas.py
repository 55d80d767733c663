"""Closed forms that the seeds' figures and tables compare with, by name.

Unless said otherwise the radius is 1. An `order` has its constants dropped, as it is stated.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from raydp_sim.figures import user_level
from raydp_sim.mechanisms.linf import LInfVector
from raydp_sim.mechanisms.parts.levels import weights
from raydp_sim.mechanisms.parts.lower_bounds import privacy_lower_bound

Known = Mapping[str, float]


@dataclass(frozen=True)
class Formula:
    """A closed form.

    Attributes:
        quantity: that it gives.
        status: `formula`; `order` if its constants are dropped; `simulated` if it is played.
        needs: names of the parameters.
        compute: from those parameters.
        source: where it is stated.
    """

    quantity: Literal[
        "mse",
        "bits",
        "likelihood",
        "information",
        "gamma",
        "error",
        "accuracy",
        "guarantee",
    ]
    status: Literal["formula", "order", "simulated"]
    needs: tuple[str, ...]
    compute: Callable[[Known], float]
    source: str


def _k2(known: Known) -> float:
    return 1.0 / math.tanh(known["epsilon0"] / 2.0) ** 2


def _lower(power: float) -> Callable[[Known], float]:
    def compute(known: Known) -> float:
        return privacy_lower_bound(
            power, int(known["dimension"]), int(known["clients"]), known["epsilon0"]
        )

    return compute


def _worth(known: Known) -> float:
    return known["clients"] * known["epsilon"] ** 2


def _ours(known: Known) -> float:
    d, worth = known["dimension"], _worth(known)
    if d < worth:
        return d * math.log2(worth / d)
    return worth * math.log2(d / worth) if d > worth else d


def _secagg(known: Known) -> float:
    d, n = known["dimension"], known["clients"]
    if d > n * _worth(known):
        return n * _worth(known) * math.log2(d)
    return d * math.log2(n)


def _linf(known: Known) -> LInfVector:
    """Return R^linf on [-1, 1]^d with the seed's calibration v = epsilon0."""
    return LInfVector(
        dimension=int(known["dimension"]),
        radius=1.0,
        epsilon_local=known["epsilon0"],
        coordinates=int(known["coordinates"]),
        levels=int(known["levels"]),
        calibration="seed",
    )


def _sampling(known: Known) -> float:
    """Return what leaving coordinates out costs at the corner of ones."""
    blocks = _linf(known).wire.blocks
    w2 = float((weights(int(known["levels"])) ** 2).sum())
    return 4.0 * w2 * float((blocks.factors - 1.0).sum()) / known["clients"]


def _noise(known: Known) -> float:
    """Return what the flipped bits cost, whatever the input."""
    wire = _linf(known).wire
    w2 = weights(int(known["levels"])) ** 2
    return 4.0 * float((w2 * wire.noise).sum() * wire.blocks.factors.sum()) / known["clients"]


def _rounding(known: Known) -> float:
    return float(4.0 * known["dimension"] * 4.0 ** -known["levels"] / known["clients"])


def _user(known: Known) -> tuple[int, int, float, int]:
    samples, levels = int(known["samples"]), int(known["levels"])
    return int(known["clients"]), samples, known["epsilon0"], levels


_LOCAL = ("epsilon0", "dimension", "clients")
_PIECES = (*_LOCAL, "coordinates", "levels")
_USER = ("epsilon0", "clients", "samples", "levels")
_TABLE = ("epsilon", "dimension", "clients")

FORMULAS: dict[str, Formula] = {
    "r1-bound": Formula(
        "mse",
        "formula",
        _LOCAL,
        lambda k: k["dimension"] * _k2(k) / k["clients"],
        "001 Theorem 5: d K^2/n",
    ),
    "r2-bound": Formula(
        "mse",
        "formula",
        _LOCAL,
        lambda k: 6.0 * k["dimension"] * _k2(k) / k["clients"],
        "001 Theorem 6: 6 d K^2/n",
    ),
    "rinf-bound": Formula(
        "mse",
        "formula",
        _LOCAL,
        lambda k: k["dimension"] ** 2 * _k2(k) / k["clients"],
        "001 Theorem 7: d^2 K^2/n",
    ),
    "r2-bits": Formula(
        "bits",
        "formula",
        ("dimension",),
        lambda k: k["dimension"] * (math.log2(math.e) + 1.0),
        "001 Lemma 5: d (log e + 1)",
    ),
    "l1-lower": Formula("mse", "order", _LOCAL, _lower(1.0), "001 Theorem 2, p = 1"),
    "l2-lower": Formula("mse", "order", _LOCAL, _lower(2.0), "001 Theorem 2, p = 2"),
    "linf-lower": Formula("mse", "order", _LOCAL, _lower(math.inf), "001 Theorem 3, p = infinity"),
    "linf-sampling": Formula("mse", "formula", _PIECES, _sampling, "000 (3.20), sampling"),
    "linf-noise": Formula("mse", "formula", _PIECES, _noise, "000 (3.20), privacy"),
    "linf-rounding": Formula("mse", "formula", _PIECES, _rounding, "000 (3.20), quantisation"),
    "table-ours": Formula("bits", "order", _TABLE, _ours, "000 Table 3.1, R^l2"),
    "table-cheu": Formula(
        "bits",
        "order",
        _TABLE,
        lambda k: k["dimension"] * math.sqrt(k["clients"]),
        "000 Table 3.1, Cheu et al. 2022",
    ),
    "table-chang": Formula(
        "bits",
        "order",
        _TABLE,
        lambda k: k["dimension"] * math.log2(k["clients"]),
        "000 Table 3.1, Chang et al. 2021",
    ),
    "table-secagg": Formula("bits", "order", _TABLE, _secagg, "000 Table 3.1, secure aggregation"),
    "user-bound": Formula(
        "mse",
        "formula",
        _USER,
        lambda k: user_level.bound(*_user(k)),
        "000 Theorem 3.7.1, tau corrected",
    ),
    "user-naive": Formula(
        "mse",
        "formula",
        ("epsilon0", "clients"),
        lambda k: user_level.naive(int(k["clients"]), k["epsilon0"]),
        "Laplace noise on the whole interval",
    ),
    "user-played": Formula(
        "mse",
        "simulated",
        _USER,
        lambda k: user_level.played(*_user(k), repetitions=200),
        "both stages, 200 repetitions, samples normal around 3.7",
    ),
}
