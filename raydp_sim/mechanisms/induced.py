"""The induced compressor: the largest coordinates, and random ones of what is left."""

from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Floats, Messages
from raydp_sim.mechanisms.sketching.adaptive import induced_error, largest
from raydp_sim.mechanisms.sketching.base import Sketch, as_sent
from raydp_sim.mechanisms.sketching.projection import distinct_rows
from raydp_sim.mechanisms.wires.sketches import Sketches
from raydp_sim.random import ClientStream


class Induced(Sketch):
    """Send the h = k/2 largest coordinates, and h random ones of the rest. Hides nothing.

    Horvath & Richtarik 2021; error (d/h - 1) |rest|^2. With k = 1 it is Rand-k.

    Example:
        >>> Induced(dimension=1024, kept=20, radius=1.0).bits
        772
    """

    kind: ClassVar[str] = "induced"
    source: ClassVar[str] = "Horvath & Richtarik 2021"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"dimension": 6, "kept": 4, "radius": 1.0},
        {"dimension": 3, "kept": 1, "radius": 1.0},
    )

    @property
    def _halves(self) -> tuple[int, int]:
        half = self.need_kept() // 2
        return half, max(half, 1)

    @property
    def form(self) -> Sketches:
        """H indices and numbers, a seed and h numbers."""
        top, drawn = self._halves
        return Sketches(self.need_dimension(), seeded=drawn, indexed=top)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Take the largest out, and sample the rest."""
        top, drawn = self._halves
        seeds = stream.words("seed")[0][:, 0]
        best = largest(values, top)
        chosen = as_sent(np.take_along_axis(values, best, axis=1))
        rest = values.copy()
        np.put_along_axis(rest, best, 0.0, axis=1)
        rows = distinct_rows(seeds, drawn, self.need_dimension())
        picked = as_sent(np.take_along_axis(rest, rows, axis=1))
        parts = [seeds[:, None].astype(np.float64), picked, best.astype(np.float64), chosen]
        return Messages(np.concatenate(parts, axis=1)[:, None, :])

    def expanded(self, rows: Floats) -> Floats:
        """Put both parts where they belong, the random one times d/h."""
        d, (_, drawn) = self.need_dimension(), self._halves
        seeds, picked, indices, chosen = self.form.split(rows)
        out = np.zeros((len(rows), d))
        where = distinct_rows(seeds[:, 0].astype(np.uint32), drawn, d)
        np.put_along_axis(out, where, picked * (d / drawn), axis=1)
        each = np.arange(len(rows))[:, None]
        out[each, indices.astype(np.int64)] += chosen
        return out

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return induced_error(values, self.need_kept())

    def worst_mse(self) -> float:
        """Return it where all coordinates are alike: (d/h - 1)(1 - h/d) |x|^2; k = 1: Rand-k's."""
        d, (top, drawn) = self.need_dimension(), self._halves
        return (d / drawn - 1.0) * (1.0 - top / d) * self.radius**2
