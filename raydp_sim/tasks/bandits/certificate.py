"""What a run may have lost at most, computed from its log alone."""

import numpy as np
from numpy.typing import NDArray

from raydp_sim.tasks.bandits.checks import Floats


def regret_certificate(
    slots: Floats,
    radii: Floats,
    horizon: int,
    width: float = 2.0,
    drift: Floats | None = None,
    dropped: NDArray[np.bool_] | None = None,
) -> Floats:
    """Return a bound on the regret that holds whenever all confidence radii do.

    Then the actions left after batch i have gaps of at most 4 gamma_i, and the one committed to
    2 gamma of the last batch: R_T <= 2 n_1 + sum n_i min(2, 4 gamma_(i-1)) + the rest times
    min(2, 2 gamma_last). A batch that was void is paid for and teaches nothing. Where rewards lie
    in a narrower range than [-1, 1], no gap is larger than its width, which takes the place of 2.

    With mean rewards that are linear up to omega only, an estimate is off by gamma_i + w_i, where
    w_i = omega (1 + sqrt(n_i l_i)) (`drift_of`). The best of the active actions may then go, but
    only for one that is worse by 2 w_i at most; so gaps are larger by the drift 2 w_i and by that
    of all earlier batches that dropped an action (as Lattimore, Szepesvari and Weisz 2020 argue,
    for elimination that does not know omega).

    Args:
        slots: clients of each batch, in order; leading axes are runs.
        radii: gamma of each batch; nan where it was void or never played.
        horizon: T.
        width: of the range of rewards.
        drift: 2 w_i of each batch; None: rewards are linear.
        dropped: whether an action was dropped after each batch; None: after every one.

    Example:
        >>> float(regret_certificate(np.array([10.0, 30.0]), np.array([0.4, 0.1]), 100))
        80.0
    """
    gap = np.full(slots.shape[:-1], width)
    last, total, lost = gap.copy(), np.zeros_like(gap), np.zeros_like(gap)
    for i in range(slots.shape[-1]):
        total += slots[..., i] * gap
        learned = ~np.isnan(radii[..., i])
        more = 0.0 if drift is None else np.where(learned, drift[..., i], 0.0)
        gap = np.where(learned, np.minimum(width, 4.0 * radii[..., i] + lost + more), gap)
        last = np.where(learned, np.minimum(width, 2.0 * radii[..., i] + lost + more), last)
        lost = lost + (more if dropped is None else np.where(dropped[..., i], more, 0.0))
    return np.asarray(total + (horizon - slots.sum(axis=-1)) * last)


def drift_of(misspecification: float, reports: Floats, leverage: Floats) -> Floats:
    """Return 2 w_i of batches, w_i = omega (1 + sqrt(n_i l_i)).

    <a, theta> weighs what is wrong with n_i rewards by a' V^+ a_k, whose absolute values add up to
    sqrt(n_i l_i) at most (Cauchy and Schwarz), and a's own mean is off by omega again.

    Args:
        misspecification: omega, by which mean rewards are off from being linear at most.
        reports: n_i of each batch.
        leverage: l_i, of every active action at most.

    Example:
        >>> drift_of(0.01, np.array([100.0]), np.array([0.04]))
        array([0.06])
    """
    return np.asarray(2.0 * misspecification * (1.0 + np.sqrt(reports * leverage)))
