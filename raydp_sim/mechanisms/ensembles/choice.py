"""Which noise function an ensemble uses, by name, held against all of its worst cases."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.ensembles.gamma import (
    check_gamma,
    constant,
    double_subsampling,
    subsampling,
)
from raydp_sim.mechanisms.ensembles.program import excess, optimal, verified
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble

Floats = NDArray[np.float64]
Noise = Literal["monotone", "full", "double-subsampling", "subsampling", "constant", "given"]
# Largest f over the limit, as a share of it, that is put down to rounding and taken off gamma.
_ROUNDING = 1e-9


def chosen(
    ensemble: Ensemble, noise: Noise, given: ArrayLike | None = None, mean: float = 0.75
) -> Floats:
    """Return a noise function that keeps every worst case of the ensemble.

    Args:
        ensemble: votes, and what shall be guaranteed.
        noise: `monotone` or `full`, optimised; `double-subsampling` or `subsampling`, of votes;
            `constant`; `given`, by the caller.
        given: one number per tally 0..K, for `given`.
        mean: of the votes' probabilities, for the optimised ones.

    Raises:
        InputError: the function is not private, or the noise is not proved for such votes.

    Example:
        >>> chosen(Ensemble(3, 0.5, 0.0, 1, 0.0), "subsampling").round(4).tolist()
        [1.0, 0.3333, 0.3333, 1.0]
    """
    if (given is not None) != (noise == "given"):
        raise bad_field("gamma", given, "give it with noise: given, and only then")
    if noise in ("full", "monotone"):
        return optimal(ensemble, noise, mean)
    return held(ensemble, _made(ensemble, noise, given), noise)


def held(ensemble: Ensemble, gamma: Floats, noise: str) -> Floats:
    """Return gamma if it keeps every worst case, rounding taken off; refuse it if it does not."""
    # Growing away from a tie, it has fewer worst cases; of the others there may be too many.
    rising = bool((np.diff(gamma[len(gamma) // 2 :]) >= 0.0).all())
    over = excess(ensemble, gamma, rising)
    if over > _ROUNDING * ensemble.limit:
        share = ensemble.limit / (ensemble.limit + over)
        raise InputError(
            f"gamma ({noise}) is not private: a worst case exceeds the limit {ensemble.limit:.6g} "
            f"by {over:.3g}; multiply it by {share:.4g}, or raise epsilon or delta"
        )
    return verified(ensemble, gamma, rising)


def _made(ensemble: Ensemble, noise: Noise, given: ArrayLike | None) -> Floats:
    voters, multiple = ensemble.voters, ensemble.multiple
    if noise == "given":
        numbers = np.size(given) if given is not None else 0
        if numbers != voters + 1:
            raise InputError(
                f"gamma has {numbers} numbers; give {voters + 1}, one per tally of the voters"
            )
        return check_gamma(given if given is not None else ())
    if noise == "constant":
        failure = -np.expm1(voters * np.log1p(-ensemble.failure))
        return constant(
            voters, multiple, ensemble.epsilon, ensemble.delta, float(voters), float(failure)
        )
    if multiple != int(multiple):
        remedy = f"noise '{noise}' asks a whole number of votes; use monotone or full"
        raise bad_field("multiple", multiple, remedy)
    if noise == "subsampling":
        return subsampling(voters, int(multiple))
    if ensemble.failure > 0.0:
        remedy = "double-subsampling is proved for votes of pure privacy only; use monotone"
        raise bad_field("failure", ensemble.failure, remedy)
    return double_subsampling(voters, int(multiple))
