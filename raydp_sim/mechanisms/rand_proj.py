"""Rand-Proj: k rows of a randomized Hadamard transform."""

from typing import Any, ClassVar

import numpy as np

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import Floats, Messages
from raydp_sim.mechanisms.sketching import projection
from raydp_sim.mechanisms.sketching.base import SeededSketch, as_sent
from raydp_sim.mechanisms.sketching.joint import Basis
from raydp_sim.mechanisms.wires.sketches import Sketches
from raydp_sim.random import ClientStream


class RandProj(SeededSketch):
    """Send k rows of H D x / sqrt(d), signs and rows drawn by a seed. Hides nothing.

    Decoded report by report its error is Rand-k's, (d/k - 1) |x|^2, for any vectors (004, Theorem
    2.4.4, whose beta is d/k); what it gains it gains where all reports are decoded together. d is
    the next power of two: vectors are filled up with zeros, which are dropped afterwards.

    Fields:
        pad: whether vectors may be filled up.

    Example:
        >>> RandProj(dimension=1000, kept=20, radius=1.0).length
        1024
    """

    kind: ClassVar[str] = "rand-proj"
    source: ClassVar[str] = "Jiang 2025, section 2.4"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"dimension": 8, "kept": 2, "radius": 1.0},
        {"dimension": 5, "kept": 3, "radius": 1.0},
    )

    pad: bool = True

    @property
    def length(self) -> int:
        """Vectors as they are transformed: the next power of two."""
        d = self.need_dimension()
        full = projection.padded(d)
        if full != d and not self.pad:
            raise bad_field(
                "mechanism.pad", self.pad, f"{d} is no power of two; fill vectors up with zeros"
            )
        return full

    @property
    def basis(self) -> Basis:
        """Rows are those of a transform."""
        return "hadamard"

    @property
    def form(self) -> Sketches:
        """A seed and k numbers."""
        return Sketches(self.length, seeded=self.need_kept(), indexed=0)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw a seed, transform, and send the rows that it picks."""
        seeds = stream.words("seed")[0][:, 0]
        signs, rows = projection.sketches(seeds, self.need_kept(), self.length)
        filled = np.zeros((len(values), self.length))
        filled[:, : values.shape[1]] = values
        sent = as_sent(projection.encoded(filled, signs, rows))
        return Messages(np.concatenate([seeds[:, None], sent], axis=1)[:, None, :])

    def expanded(self, rows: Floats) -> Floats:
        """Transform back, times d/k."""
        k, length = self.need_kept(), self.length
        seeds, sent, _, _ = self.form.split(rows)
        signs, picked = projection.sketches(seeds[:, 0].astype(np.uint32), k, length)
        back = projection.transposed(signs, picked, sent)
        return np.asarray(back[:, : self.need_dimension()] * (length / k))

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error: that of the whole, less what falls on the filling.

        The error is spread evenly over the coordinates but for the part along x itself, which is
        zero on the filling: (d/k - 1) |x|^2 of which each of d coordinates has the same share, less
        x_j^2 (1/k) of its own.
        """
        return np.asarray(self._share() * np.square(values).sum(axis=1))

    def _share(self) -> float:
        d, length, k = self.need_dimension(), self.length, self.need_kept()
        if length == 1:
            return 0.0
        # E[(G'G)_jj] = k/d; off the diagonal E[(G'G)_jl^2] = (k/d^2)(1 - (k-1)/(d-1)), and signs
        # make different entries of a row uncorrelated.
        off = (k / length**2) * (1.0 - (k - 1.0) / (length - 1.0))
        return (length / k) ** 2 * off * (d - 1.0)

    def worst_mse(self) -> float:
        """Return it at the surface of the ball."""
        return self._share() * self.radius**2
