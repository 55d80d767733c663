"""One mechanism under check, with what several checks need of it computed once."""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from raydp_sim.check.enumeration import Parts, contributions
from raydp_sim.check.finding import NotChecked
from raydp_sim.check.samples import SERVER, folded, inputs, repeated, reports
from raydp_sim.mechanisms.base import Floats, Mechanism

# Releases of a few clients each, by which estimates are judged; fewer for very long vectors.
_RELEASES, _CLIENTS = 8000, 5
_CELLS = 1 << 24
# Accumulators of more cells are not enumerated: one cell at a time is decoded.
_MOST_CELLS = 1 << 12
# Errors of longer vectors are not judged coordinate by coordinate.
MANY = 100
# A bit that may lose more than this is flipped less than once in 400 times.
_RARE = 6.0


class Sampled(NamedTuple):
    """What the estimates of many releases were off by.

    Attributes:
        values: of the clients of a release.
        releases: how many.
        mean, deviation: of the error, per coordinate, and its standard error; of long vectors
            along a few random directions, for a coordinate may be reported too seldom.
        square, square_deviation: of the squared l2 error, and its standard error.
        telling: from how many releases the spread v of the squared error comes, (sum v^2)^2 /
            sum v^4; 0 if all err alike.
    """

    values: Floats
    releases: int
    mean: Floats
    deviation: Floats
    square: float
    square_deviation: float
    telling: float


class Subject:
    """A mechanism and what is known of it by trying.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> Subject(make("2rr", epsilon_local=1.0)).sampled.releases
        8000
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    @property
    def name(self) -> str:
        """The class's name, for sentences about it."""
        return type(self.mechanism).__name__

    def touch(self) -> None:
        """Ask for everything once, without clients: nothing is tried, but all must be known.

        Raises:
            InputError: says which parameter is missing, such as the dimension.
        """
        mechanism = self.mechanism
        nobody = np.zeros((0, mechanism.domain.width))
        mechanism.messages(nobody, SERVER.clients(np.arange(0)))
        mechanism.decode(mechanism.zero(), SERVER)
        _ = mechanism.bits, mechanism.event()
        if self.has("worst_mse"):
            mechanism.worst_mse()

    def has(self, method: str) -> bool:
        """Say whether the class has an optional method of its own."""
        return getattr(type(self.mechanism), method) is not getattr(Mechanism, method)

    def need(self, method: str) -> None:
        """Leave the check out where the class has no such method."""
        if not self.has(method):
            raise NotChecked(f"{self.name} has no method `{method}`")

    @property
    def hardly_random(self) -> bool:
        """Whether so much may be lost that chance hardly ever shows in a few thousand reports."""
        return self.mechanism.guarantee != "none" and self.mechanism.event().epsilon > _RARE

    @cached_property
    def values(self) -> Floats:
        """Rows of its domain."""
        return inputs(self.mechanism.domain)

    def some(self, count: int) -> Floats:
        """Return so many rows of its domain."""
        return repeated(self.values, count)

    def many(self, count: int) -> Floats:
        """Return so many rows of its domain, or fewer where each is very long."""
        return self.some(min(count, max(32, _CELLS // (4 * self.mechanism.domain.width))))

    @cached_property
    def laws(self) -> list[Floats]:
        """The exact law of every message for every row of `values`.

        Raises:
            NotChecked: where there is none, or too long a one.
        """
        self.need("laws")
        if self.mechanism.zero().size > _MOST_CELLS:
            raise NotChecked(f"more than {_MOST_CELLS:,} symbols are not enumerated")
        return self.mechanism.laws(self.values)

    @cached_property
    def parts(self) -> Parts:
        """What each symbol adds to the estimate.

        Raises:
            NotChecked: where reports are not counted symbol by symbol.
        """
        cells = (len(self.laws), *{law.shape[1] for law in self.laws})
        if self.mechanism.zero().shape != cells:
            raise NotChecked("its accumulator is not one count per message index and symbol")
        return contributions(self.mechanism)

    @cached_property
    def affine(self) -> bool:
        """Whether an estimate is the mean of its reports, each decoded by itself."""
        for clients in (1, 2, 7, 30):
            payload = reports(self.mechanism, self.some(clients), seed=6)
            meant = self.parts.decoded(payload).mean(axis=0)
            # Large parts of both signs may cancel.
            room = 1e-9 * float(np.abs(self.parts.added).max() + np.abs(self.parts.constant).max())
            estimate = self.mechanism.decode(folded(self.mechanism, payload), SERVER)
            if not np.allclose(estimate, meant, rtol=0.0, atol=room):
                return False
        return True

    @cached_property
    def sampled(self) -> Sampled:
        """The errors of many releases of a few clients each."""
        mechanism, domain = self.mechanism, self.mechanism.domain
        rows = inputs(domain, seed=8)
        values = rows[np.arange(-_CLIENTS, 0) % len(rows)]
        releases = max(100, min(_RELEASES, _CELLS // (_CLIENTS * domain.dimension)))
        payload = reports(mechanism, np.tile(values, (releases, 1)))
        meant = domain.embed(values).mean(axis=0)
        if self._each_by_itself():
            # The same estimates by looking up what each symbol adds, without a loop.
            decoded = self.parts.decoded(payload).reshape(releases, _CLIENTS, -1)
            estimates = decoded.mean(axis=1)
        else:
            estimates = np.empty((releases, len(meant)))
            for release, part in enumerate(np.split(payload, releases)):
                estimates[release] = mechanism.decode(folded(mechanism, part), SERVER.at(release))
        error = estimates - meant
        square = (error**2).sum(axis=1)
        if error.shape[1] > MANY:
            error = error @ _directions(error.shape[1])
        scale, spread = math.sqrt(releases), (square - square.mean()) ** 2
        alike = np.ptp(square) <= 1e-9 * square.mean()
        return Sampled(
            values,
            releases,
            error.mean(axis=0),
            error.std(axis=0) / scale,
            float(square.mean()),
            float(square.std()) / scale,
            0.0 if alike else float(spread.sum() ** 2 / (spread**2).sum()),
        )

    def _each_by_itself(self) -> bool:
        try:
            return self.affine
        except NotChecked:
            return False


def _directions(dimension: int) -> Floats:
    """Return up to 32 random directions of length 1, as columns."""
    count = max(4, min(32, _CELLS // (4 * dimension)))
    signs = np.random.default_rng(5).integers(0, 2, (dimension, count))
    return np.asarray((2.0 * signs - 1.0) / math.sqrt(dimension))
