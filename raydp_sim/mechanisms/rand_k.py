"""Rand-k: k coordinates at random."""

from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Floats, Messages
from raydp_sim.mechanisms.sketching.base import SeededSketch, as_sent
from raydp_sim.mechanisms.sketching.joint import Basis
from raydp_sim.mechanisms.sketching.projection import distinct_rows
from raydp_sim.mechanisms.wires.sketches import Sketches
from raydp_sim.random import ClientStream


class RandK(SeededSketch):
    """Send k coordinates, drawn without replacement by a seed that is sent along. Hides nothing.

    Error (d/k - 1) |x|^2 a client (004, Eq. 2.1); a rotation that all share changes nothing.

    Example:
        >>> RandK(dimension=1024, kept=20, radius=1.0).worst_mse()
        50.2
    """

    kind: ClassVar[str] = "rand-k"
    source: ClassVar[str] = "Jiang 2025, section 2.2"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"dimension": 5, "kept": 2, "radius": 1.0},
        {"dimension": 4, "kept": 3, "radius": 2.0},
    )

    @property
    def basis(self) -> Basis:
        """Rows are coordinates."""
        return "coordinates"

    @property
    def form(self) -> Sketches:
        """A seed and k numbers."""
        return Sketches(self.need_dimension(), seeded=self.need_kept(), indexed=0)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw a seed, and send what it picks."""
        seeds = stream.words("seed")[0][:, 0]
        rows = distinct_rows(seeds, self.need_kept(), self.need_dimension())
        picked = as_sent(np.take_along_axis(values, rows, axis=1))
        return Messages(np.concatenate([seeds[:, None], picked], axis=1)[:, None, :])

    def expanded(self, rows: Floats) -> Floats:
        """Put the numbers where they were picked, times d/k."""
        d, k = self.need_dimension(), self.need_kept()
        seeds, picked, _, _ = self.form.split(rows)
        out = np.zeros((len(rows), d))
        where = distinct_rows(seeds[:, 0].astype(np.uint32), k, d)
        np.put_along_axis(out, where, picked * (d / k), axis=1)
        return out

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        share = self.need_dimension() / self.need_kept()
        return np.asarray((share - 1.0) * np.square(values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return it at the surface of the ball."""
        return (self.need_dimension() / self.need_kept() - 1.0) * self.radius**2
