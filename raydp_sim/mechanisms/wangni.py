"""Wangni et al.'s sparsifier: large coordinates are likelier to be sent."""

from typing import Any, ClassVar, Literal

import numpy as np

from raydp_sim.mechanisms.base import Floats, Messages
from raydp_sim.mechanisms.sketching.adaptive import wangni_error, wangni_probabilities
from raydp_sim.mechanisms.sketching.base import Sketch, as_sent
from raydp_sim.mechanisms.wires.sketches import Sketches
from raydp_sim.random import ClientStream


class Wangni(Sketch):
    """Send k coordinates with their indices, each with a probability that grows with its size.

    Wangni et al. 2018 toss a coin per coordinate, so that k are sent on average. Here one uniform
    number picks exactly k (systematic sampling) with the same probabilities: the error,
    sum_j (1/p_j - 1) x_j^2, depends on nothing else. Hides nothing.

    Example:
        >>> Wangni(dimension=1024, kept=20, radius=1.0).bits
        840
    """

    kind: ClassVar[str] = "wangni"
    source: ClassVar[str] = "Wangni et al. 2018, Algorithm 3"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"dimension": 5, "kept": 2, "radius": 1.0},
        {"dimension": 8, "kept": 3, "radius": 2.0},
    )

    @property
    def form(self) -> Sketches:
        """K indices and numbers."""
        return Sketches(self.need_dimension(), seeded=0, indexed=self.need_kept())

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Lay the probabilities end to end and take those that u, u + 1, ... fall on."""
        k = self.need_kept()
        chance = wangni_probabilities(values, k)
        ends = np.cumsum(chance, axis=1)
        # Rounding must not cost the last of them: their sum is whole, or less than k.
        start = stream.uniform("start")
        hits = np.floor(ends - start) - np.floor(
            np.concatenate([np.zeros((len(values), 1)), ends[:, :-1]], axis=1) - start
        )
        sure = chance >= 1.0
        picked = sure | (hits > 0.0)
        # At most k: where rounding made one more, the last one that was not sure is left.
        order = np.argsort(~picked, axis=1, kind="stable")[:, :k]
        kept = np.take_along_axis(picked, order, axis=1)
        probability = np.take_along_axis(chance, order, axis=1)
        weight = np.divide(1.0, probability, out=np.zeros_like(probability), where=kept)
        sent = as_sent(np.take_along_axis(values, order, axis=1) * weight)
        return Messages(np.concatenate([order.astype(np.float64), sent], axis=1)[:, None, :])

    def expanded(self, rows: Floats) -> Floats:
        """Put the numbers where they belong."""
        _, _, indices, sent = self.form.split(rows)
        out = np.zeros((len(rows), self.need_dimension()))
        np.put_along_axis(out, indices.astype(np.int64), sent, axis=1)
        return out

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return wangni_error(values, self.need_kept())

    def worst_mse(self) -> float:
        """Return it where all coordinates are alike: (d/k - 1) |x|^2, as for Rand-k."""
        return (self.need_dimension() / self.need_kept() - 1.0) * self.radius**2

    @property
    def worst_mse_is(self) -> Literal["exact", "bound"]:
        """At least for vectors with all coordinates alike it is attained."""
        return "exact"
