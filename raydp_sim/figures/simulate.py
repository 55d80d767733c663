"""A mechanism's error as it comes out on drawn inputs, beside what its formula says of them."""

from dataclasses import dataclass

import numpy as np

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Domain, Floats, Mechanism
from raydp_sim.mechanisms.l2 import L2Vector
from raydp_sim.mechanisms.parts.rotation import make_rotation
from raydp_sim.random import Stream

_SEED = 20240


@dataclass(frozen=True)
class Measured:
    """What repeated estimates of a mean were off by.

    Attributes:
        mean: of the squared errors.
        spread: standard error of that mean.
        expected: mean of the exact errors on the same inputs, as the mechanism states them.
    """

    mean: float
    spread: float
    expected: float

    @property
    def deviation(self) -> float:
        """How many standard errors lie between the two."""
        return abs(self.mean - self.expected) / self.spread


def drawn(domain: Domain, n: int, stream: Stream) -> Floats:
    """Return inputs of n clients: uniform in a cube or on a sphere, fair coins, or categories.

    Example:
        >>> (drawn(Domain("l2", 2.0, 3), 1, Stream(1)) ** 2).sum().round(9)
        np.float64(4.0)
    """
    generator, shape = stream.generator(), (n, domain.width)
    if domain.norm == "category":
        return generator.integers(0, domain.dimension, shape).astype(np.float64)
    if domain.norm == "binary":
        return generator.integers(0, 2, shape).astype(np.float64)
    if domain.norm == "linf" or domain.dimension == 1:
        return generator.uniform(-domain.radius, domain.radius, shape)
    power = {"l1": 1.0, "l2": 2.0}.get(domain.norm, domain.power)
    normal = generator.standard_normal(shape)
    size = (np.abs(normal) ** power).sum(axis=1, keepdims=True) ** (1.0 / power)
    return np.asarray(domain.radius * normal / size)


def simulate(mechanism: Mechanism, n: int, repetitions: int) -> Measured:
    """Estimate the mean of n fresh clients again and again, from their messages alone.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> measured = simulate(make("2rr", epsilon_local=1.0), 100, 50)
        >>> round(measured.expected, 6), measured.deviation < 4
        (0.009207, True)
    """
    errors, expected = np.empty(repetitions), 0.0
    index = np.arange(mechanism.messages_per_report)
    for r in range(repetitions):
        place = Stream(_SEED).at("figure", r)
        values = drawn(mechanism.domain, n, place.at("inputs"))
        payload = mechanism.randomize(values, place.at("reports").clients(np.arange(n))).payload
        counts = mechanism.zero()
        for message in index:
            counts = mechanism.fold(counts, np.full(n, message), payload[:, message])
        estimate = mechanism.decode(counts, place.at("decode"))
        truth = mechanism.domain.embed(values).mean(axis=0)
        errors[r] = ((estimate - truth) ** 2).sum()
        expected += float(mechanism.mse(values).sum()) / n**2 / repetitions
    return Measured(float(errors.mean()), float(errors.std(ddof=1)) / repetitions**0.5, expected)


def clipping(mechanism: Mechanism, n: int, repetitions: int, equal: bool) -> float:
    """Return the mean squared distance that clipping alone moves the mean of n rotated vectors.

    Args:
        mechanism: that rotates and clips.
        n: clients.
        repetitions: drawn means.
        equal: whether all clients hold one vector, or each its own; uniform on the sphere.

    Raises:
        InputError: for a mechanism that does not clip rotated coordinates.
    """
    if not isinstance(mechanism, L2Vector):
        raise InputError(f"'{mechanism.kind}' does not clip rotated coordinates; take 'l2'")
    rotation = make_rotation(mechanism.rotation, mechanism.need_dimension(), 0)
    bound, total = mechanism.rotated_bound, 0.0
    for r in range(repetitions):
        place = Stream(_SEED).at("clipping", r)
        rotated = rotation.rotate(drawn(mechanism.domain, 1 if equal else n, place))
        # A rotation keeps lengths, so there is no need to turn back.
        lost = (rotated - np.clip(rotated, -bound, bound)).mean(axis=0)
        total += float((lost**2).sum()) / repetitions
    return total
