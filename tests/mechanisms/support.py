"""What the tests of mechanisms share: the cases, inputs inside a domain, and an exact oracle."""

from typing import Any

import numpy as np
import pytest

from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Domain, Mechanism
from raydp_sim.random import Stream

# Chance of a false alarm of one statistical test; the seeds are fixed, so it was paid once.
ALPHA = 1e-8
SERVER = Stream(11).at("decode")


def cases() -> list[Any]:
    """Every registered mechanism with each of its examples."""
    return [
        pytest.param(cls.model_validate(parameters), id=f"{kind}-{number}")
        for kind, cls in MECHANISMS.kinds.items()
        for number, parameters in enumerate(cls.examples)
    ]


def has_laws(mechanism: Mechanism) -> bool:
    return type(mechanism).laws is not Mechanism.laws


def inputs(domain: Domain, seed: int = 3) -> np.ndarray:
    """Corners, zeros, dyadic points and points inside: about 16 rows."""
    d, r = domain.dimension, domain.radius
    random = np.random.default_rng(seed)
    if domain.norm == "binary":
        rows = [np.zeros(d), np.ones(d), np.arange(d) % 2, *random.integers(0, 2, (4, d))]
        return np.array(rows, dtype=float)
    if domain.norm == "category":
        # Every category of every question; no two rows of consecutive numbers agree anywhere.
        return (
            np.arange(float(domain.choices))[:, None] + np.arange(domain.width)
        ) % domain.choices
    if domain.norm == "linf":
        dyadic = [np.full(d, r * (2.0 * 2.0**-k - 1.0)) for k in range(1, 5)]
        corner = r * (1.0 - 2.0 * (np.arange(d) % 2))
        inside = random.uniform(-r, r, (5, d))
        return np.array([np.zeros(d), np.full(d, r), np.full(d, -r), corner, *dyadic, *inside])
    axes = np.concatenate([np.eye(d)[: min(d, 3)], -np.eye(d)[: min(d, 3)]])
    directions = np.concatenate(
        [axes, np.ones((1, d)), -np.ones((1, d)), random.normal(size=(4, d))]
    )
    power = {"l1": 1.0, "l2": 2.0, "lp": domain.power}[domain.norm]
    size = (np.abs(directions) ** power).sum(axis=1, keepdims=True) ** (1 / power)
    surface = r * directions / size
    return np.concatenate([np.zeros((1, d)), surface, 0.3 * surface[-2:]])


def reports(mechanism: Mechanism, values: np.ndarray, seed: int = 5, first: int = 0) -> np.ndarray:
    ids = np.arange(first, first + len(values))
    return mechanism.randomize(values, Stream(seed).at("randomize", 0).clients(ids)).payload


def folded(mechanism: Mechanism, payload: np.ndarray) -> np.ndarray:
    """Fold whole reports, message by message."""
    index = np.tile(np.arange(payload.shape[1]), len(payload))
    return mechanism.fold(mechanism.zero(), index, payload.reshape(-1, *payload.shape[2:]))


def contributions(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """The decoder as an affine map: its constant, and what one symbol at one index adds to it."""
    zero = mechanism.zero()
    constant = mechanism.decode(zero, SERVER)
    added = np.empty((*zero.shape, len(constant)))
    for place in np.ndindex(zero.shape):
        counts = zero.copy()
        counts[place] = 1
        added[place] = mechanism.decode(counts, SERVER) - constant
    return constant, added


def exact_moments(mechanism: Mechanism, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and summed variance of a client's decoded report, by enumerating every symbol."""
    constant, added = contributions(mechanism)
    mean, variance = np.tile(constant, (len(values), 1)), np.zeros(len(values))
    for law, part in zip(mechanism.laws(values), added, strict=True):
        expected = law @ part
        mean += expected
        variance += law @ (part**2).sum(axis=1) - (expected**2).sum(axis=1)
    return mean, variance


def losses(laws: list[np.ndarray]) -> np.ndarray:
    """Per pair of inputs the exact log-likelihood ratio of the worst report."""
    total = np.zeros((len(laws[0]), len(laws[0])))
    for law in laws:
        reached = law[:, law.max(axis=0) > 0.0]
        total += (np.log(reached)[:, None] - np.log(reached)[None]).max(axis=2)
    return total
