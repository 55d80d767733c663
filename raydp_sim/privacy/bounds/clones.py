"""The divergence of the pair that dominates every shuffle."""

from raydp_sim.privacy.bounds.base import RdpBound
from raydp_sim.privacy.events import Shuffle


class Clones(RdpBound):
    """Return D_alpha of the pair of Feldman, McMillan and Talwar's reduction, for real alpha > 1.

    Feldman et al. 2021, "Hiding among the clones": each other client is a clone of one of the two
    inputs with probability e^-epsilon0, which dominates every epsilon0-LDP randomizer.

    Example:
        >>> round(Clones().rdp(Shuffle(1.0, 100), 5), 6)
        0.058494
    """

    name = "clones"
    events = (Shuffle,)
    source = "Feldman et al. 2021, Theorem 3.1 and its dominating pair"
    real_orders = True

    def one(self, event: Shuffle, alpha: float) -> float:
        """Return the bound at one order."""
        from raydp_sim.privacy.clones import clones_rdp

        return clones_rdp(alpha, event.epsilon0, event.n) if event.epsilon0 else 0.0
