"""Noisy epochs in an order that nobody knows."""

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.iteration import secret_rdp
from raydp_sim.privacy.events import SecretEpochRelease


class SecretOrder(RdpBound):
    """Mix the places that a record may have, as amplification by iteration charges each of them.

    By joint convexity (Jiang 2025, Lemma C.2.1), real alpha > 1. It needs an order that is uniform
    and unknown to whoever sees the iterates. Of several epochs that share one, an even part each.

    Example:
        >>> event = SecretEpochRelease(161.0 / 20.0, steps=1000, private=1000)
        >>> round(SecretOrder().rdp(event, 6), 6)
        0.000356
    """

    name = "secret-order"
    events = (SecretEpochRelease,)
    source = "Jiang 2025, Lemma C.2.1"
    real_orders = True
    streams = True

    def one(self, event: SecretEpochRelease, alpha: float) -> float:
        """Return the divergence at one order."""
        place = (event.noise_multiplier, event.steps, event.private)
        return secret_rdp(alpha, *place, event.epochs) / event.epochs
