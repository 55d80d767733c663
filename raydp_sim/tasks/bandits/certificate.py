"""What a run may have lost at most, computed from its log alone."""

import numpy as np

from raydp_sim.tasks.bandits.checks import Floats


def regret_certificate(slots: Floats, radii: Floats, horizon: int) -> Floats:
    """Return a bound on the regret that holds whenever all confidence radii do.

    Then the actions left after batch i have gaps of at most 4 gamma_i, and the one committed to
    2 gamma of the last batch: R_T <= 2 n_1 + sum n_i min(2, 4 gamma_(i-1)) + the rest times
    min(2, 2 gamma_last). A batch that was void is paid for and teaches nothing.

    Args:
        slots: clients of each batch, in order; leading axes are runs.
        radii: gamma of each batch; nan where it was void or never played.
        horizon: T.

    Example:
        >>> float(regret_certificate(np.array([10.0, 30.0]), np.array([0.4, 0.1]), 100))
        80.0
    """
    gap = np.full(slots.shape[:-1], 2.0)
    last, total = gap.copy(), np.zeros_like(gap)
    for i in range(slots.shape[-1]):
        total += slots[..., i] * gap
        learned = ~np.isnan(radii[..., i])
        gap = np.where(learned, np.minimum(2.0, 4.0 * radii[..., i]), gap)
        last = np.where(learned, np.minimum(2.0, 2.0 * radii[..., i]), last)
    return np.asarray(total + (horizon - slots.sum(axis=-1)) * last)
