"""Private majorities of votes (004, chapter 3): noise functions, errors and what they cost."""

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import scipy

from raydp_sim.figures.formulas import Formula, Known
from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.ensembles import gnmax
from raydp_sim.mechanisms.ensembles.choice import Noise, chosen
from raydp_sim.mechanisms.ensembles.error import accuracy, error
from raydp_sim.mechanisms.ensembles.gamma import constant, subsampling
from raydp_sim.mechanisms.ensembles.program import gain
from raydp_sim.mechanisms.ensembles.votes import tally_law
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble
from raydp_sim.privacy.composition.theorems import compose, kov_exact, total_delta

# Means of the votes' probabilities that the program is solved for: U[0.5, 1], and U[0.7, 1].
_UNIFORM, _POLAR = 0.75, 0.85
_SEED = 4
# Draws of votes' probabilities; the error of their mean is below a hundredth of it.
_DRAWS = {11: 6000}
_FEWER = 2000


def ensemble(known: Known) -> Ensemble:
    """Return the votes of a panel, with delta = 1 - (1 - Delta)^m as in 004."""
    failure, multiple = known["vote_delta"], known["multiple"]
    delta = -math.expm1(multiple * math.log1p(-failure))
    return Ensemble(int(known["voters"]), known["vote_epsilon"], failure, multiple, delta)


@lru_cache(maxsize=256)
def _function(votes: Ensemble, noise: Noise, mean: float) -> Floats:
    return chosen(votes, noise, mean=mean)


@lru_cache(maxsize=8)
def _chances(voters: int, law: str) -> Floats:
    draws = _DRAWS.get(voters, _FEWER)
    drawn = np.random.default_rng(_SEED).random((draws, voters))
    return {"uniform": drawn, "low": 0.1 * drawn, "half": np.full((1, voters), 0.5)}[law]


def _gamma(noise: Noise, known: Known) -> float:
    return float(_function(ensemble(known), noise, _UNIFORM)[int(known["tally"])])


def _error(noise: Noise, law: str, mean: float, known: Known) -> float:
    gamma = _function(ensemble(known), noise, mean)
    return float(error(gamma, _chances(int(known["voters"]), law)).mean())


def _gain(noise: Noise, known: Known) -> float:
    return gain(_function(ensemble(known), noise, _UNIFORM))


def _printed_gain(known: Known) -> float:
    """Return the objective with votes uniform on [0, 1] and no absolute value (Eq. B.60)."""
    votes = ensemble(known)
    gamma = _function(votes, "full", _UNIFORM)
    lean = tally_law(np.full(votes.voters, 0.5))
    half = len(gamma) // 2
    return abs(0.5 * math.fsum((lean[half:] - lean[:half][::-1]) * gamma[half:]))


def _ties_to_one(side: int, known: Known) -> float:
    """Return the noise that Algorithm 8 as printed amounts to, above a tie (1) or below it (-1)."""
    voters, asked = int(known["voters"]), int(known["multiple"])
    tally = int(known["tally"]) if side > 0 else voters - int(known["tally"])
    says_one = float(scipy.stats.hypergeom(voters, tally, asked).sf(math.ceil(asked / 2) - 1))
    return side * (2.0 * says_one - 1.0)


# Of general composition: Table B.1 and Figure B.4. M votes cost (m epsilon, delta).


def _multiple(known: Known) -> float:
    epsilon = known["vote_epsilon"]
    return compose(epsilon, int(known["asked"]), known["slack"]) / epsilon


def _delta(known: Known) -> float:
    return total_delta([(known["vote_delta"], int(known["asked"]))], known["slack"])


def _all_votes(known: Known) -> tuple[float, float]:
    """Return tau and lambda: releasing all votes is (tau epsilon, lambda)-DP."""
    return _multiple({**known, "asked": known["voters"]}), _delta(
        {**known, "asked": known["voters"]}
    )


def _composed(known: Known) -> Ensemble:
    return Ensemble(
        int(known["voters"]),
        known["vote_epsilon"],
        known["vote_delta"],
        _multiple(known),
        _delta(known),
    )


@lru_cache(maxsize=64)
def _best(votes: Ensemble) -> Floats:
    return chosen(votes, "monotone")


def _constant(known: Known) -> Floats:
    votes, all_votes = _composed(known), _all_votes(known)
    return constant(votes.voters, votes.multiple, votes.epsilon, votes.delta, *all_votes)


def _printed_failure(known: Known) -> float:
    """Return lambda with delta where Delta is meant, as printed."""
    return total_delta([(_delta(known), int(known["voters"]))], known["slack"])


def _error_of(made: Callable[[Known], Floats], known: Known) -> float:
    return float(error(made(known), _chances(int(known["voters"]), "uniform")).mean())


# GNMax, and queries one after the other.


def _sigma_at(known: Known) -> float:
    """Return the noise that a given order asks for."""
    spare = known["epsilon"] + math.log(known["delta"]) / (known["alpha"] - 1.0)
    return math.sqrt(known["alpha"] / spare) if spare > 0.0 else math.nan


def _labels(noise: Noise, known: Known) -> float:
    gamma = _function(ensemble(known), noise, _UNIFORM)
    return accuracy(gamma, known["right"], int(known["voters"]))


def _unanimous(known: Known) -> float:
    votes = ensemble(known)
    # Per query (m epsilon, m Delta), as in the tables.
    sigma, _ = gnmax.least_sigma(votes.multiple * votes.epsilon, votes.multiple * votes.failure)
    return gnmax.accuracy(sigma, votes.voters)


def _dependent(known: Known) -> float:
    """Return GNMax's divergence given unanimous votes, over what it is without looking at them."""
    sigma, order = gnmax.least_sigma(known["epsilon"], known["delta"])
    found = gnmax.data_dependent_rdp([known["voters"], 0.0], sigma, order)
    return found / (order / sigma**2)


def _least_total(known: Known) -> float:
    return kov_exact(known["epsilon"], int(known["queries"]), known["slack"])


_VOTES = ("voters", "vote_epsilon", "vote_delta", "multiple")
_ASKED = ("voters", "vote_epsilon", "vote_delta", "asked", "slack")
_QUERIES = ("epsilon", "delta", "queries", "slack")
_NAMES: dict[str, tuple[Noise, str]] = {
    "full": ("full", "004, Eq. 3.2, all symmetric functions"),
    "monotone": ("monotone", "004, Eq. 3.2, growing away from a tie"),
    "double": ("double-subsampling", "004 Theorem 3.5.1"),
    "sub": ("subsampling", "004 Lemma 3.4.1"),
    "const": ("constant", "004 Lemma B.1.1"),
}


def _formulas() -> dict[str, Formula]:
    found: dict[str, Formula] = {}
    for name, (noise, source) in _NAMES.items():
        found |= {
            f"gamma-{name}": Formula(
                "gamma", "formula", (*_VOTES, "tally"), partial(_gamma, noise), source
            ),
            f"error-{name}": Formula(
                "error", "simulated", _VOTES, partial(_error, noise, "uniform", _UNIFORM), source
            ),
            f"error-{name}-low": Formula(
                "error", "simulated", _VOTES, partial(_error, noise, "low", _UNIFORM), source
            ),
            f"error-{name}-half": Formula(
                "error", "formula", _VOTES, partial(_error, noise, "half", _UNIFORM), source
            ),
            f"gain-{name}": Formula("gamma", "formula", _VOTES, partial(_gain, noise), source),
            f"labels-{name}": Formula(
                "accuracy", "formula", (*_VOTES, "right"), partial(_labels, noise), source
            ),
        }
    for law in ("uniform", "low", "half"):
        found[f"error-polar-{law}"] = Formula(
            "error",
            "simulated",
            _VOTES,
            partial(_error, "full", law, _POLAR),
            "004, Eq. B.62, prior on [0, 0.3] and [0.7, 1]",
        )
    return found


VOTE_FORMULAS: dict[str, Formula] = {
    **_formulas(),
    "gain-printed": Formula("gamma", "formula", _VOTES, _printed_gain, "004 Eq. B.60"),
    "ties-above": Formula(
        "gamma", "formula", (*_VOTES, "tally"), partial(_ties_to_one, 1), "004 Algorithm 8"
    ),
    "ties-below": Formula(
        "gamma", "formula", (*_VOTES, "tally"), partial(_ties_to_one, -1), "004 Algorithm 8"
    ),
    "gnmax-dependent": Formula(
        "guarantee", "formula", ("epsilon", "delta", "voters"), _dependent, "004 Algorithm 11"
    ),
    "error-asked-best": Formula(
        "error",
        "simulated",
        _ASKED,
        lambda k: _error_of(lambda known: _best(_composed(known)), k),
        "004 Figure B.4, growing away from a tie",
    ),
    "error-asked-sub": Formula(
        "error",
        "simulated",
        _ASKED,
        lambda k: _error_of(
            lambda known: subsampling(int(known["voters"]), int(known["asked"])), k
        ),
        "004 Figure B.4, the majority of M votes",
    ),
    "error-asked-const": Formula(
        "error", "simulated", _ASKED, lambda k: _error_of(_constant, k), "004 Lemma B.1.1"
    ),
    "least-best": Formula(
        "gamma", "formula", _ASKED, lambda k: float(_best(_composed(k)).min()), "004 Figure B.4"
    ),
    "multiple": Formula("guarantee", "formula", _ASKED, _multiple, "004 Theorem 3.3.3, m"),
    "release-epsilon": Formula(
        "guarantee", "formula", _ASKED, lambda k: _multiple(k) * k["vote_epsilon"], "m epsilon"
    ),
    "release-delta": Formula("guarantee", "formula", _ASKED, _delta, "004 Theorem 3.3.3, delta"),
    "tau": Formula("guarantee", "formula", _ASKED, lambda k: _all_votes(k)[0], "tau, all votes"),
    "lambda": Formula("guarantee", "formula", _ASKED, lambda k: _all_votes(k)[1], "with Delta"),
    "lambda-printed": Formula(
        "guarantee", "formula", _ASKED, _printed_failure, "lambda with delta, as printed"
    ),
    "constant": Formula(
        "guarantee", "formula", _ASKED, lambda k: float(_constant(k)[0]), "004 Lemma B.1.1"
    ),
    "gnmax-sigma": Formula(
        "guarantee",
        "formula",
        ("epsilon", "delta"),
        lambda k: gnmax.least_sigma(k["epsilon"], k["delta"])[0],
        "least over all orders",
    ),
    "gnmax-order": Formula(
        "guarantee",
        "formula",
        ("epsilon", "delta"),
        lambda k: gnmax.least_sigma(k["epsilon"], k["delta"])[1],
        "the order at which it is least",
    ),
    "gnmax-sigma-at": Formula(
        "guarantee", "formula", ("epsilon", "delta", "alpha"), _sigma_at, "at a given order"
    ),
    "labels-gnmax": Formula(
        "accuracy", "formula", (*_VOTES, "right"), _unanimous, "GNMax, all teachers right"
    ),
    "total": Formula(
        "guarantee",
        "formula",
        _QUERIES,
        lambda k: compose(k["epsilon"], int(k["queries"]), k["slack"]),
        "004 Theorem 3.3.3",
    ),
    "total-delta": Formula(
        "guarantee",
        "formula",
        _QUERIES,
        lambda k: total_delta([(k["delta"], int(k["queries"]))], k["slack"]),
        "004 Theorem 3.3.3",
    ),
    "total-least": Formula(
        "guarantee",
        "formula",
        _QUERIES,
        _least_total,
        "Kairouz, Oh & Viswanath 2015, Theorem 3.3, at the same delta",
    ),
    "all-teachers": Formula(
        "guarantee",
        "formula",
        ("voters", "vote_epsilon"),
        lambda k: k["voters"] * k["vote_epsilon"],
        "all teachers published, if they share samples",
    ),
    "one-teacher": Formula(
        "guarantee",
        "formula",
        ("vote_epsilon",),
        lambda k: k["vote_epsilon"],
        "all teachers published, if no two share a sample",
    ),
}
