"""Inputs inside and outside of a domain, and what clients send for them."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism
from raydp_sim.random import Stream

# Chance of a false alarm of one statistical check; seeds are fixed, so it is paid once.
ALPHA = 1e-8
SERVER = Stream(11).at("decode")
# More categories than that are not tried one by one.
_MOST_CATEGORIES = 128


def inputs(domain: Domain, seed: int = 3) -> Floats:
    """Return about 16 rows of a domain: corners, zeros, dyadic points and points inside.

    Example:
        >>> inputs(Domain("binary", 1.0, 3))[:3].tolist()
        [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]
    """
    d, r = domain.dimension, domain.radius
    random = np.random.default_rng(seed)
    if domain.norm == "binary":
        bits = [np.zeros(d), np.ones(d), np.arange(d) % 2, *random.integers(0, 2, (4, d))]
        return np.array(bits, dtype=float)
    if domain.norm == "category":
        # Every category of every question; no two rows of consecutive numbers agree anywhere.
        tried = np.arange(float(domain.choices))
        if domain.choices > _MOST_CATEGORIES:
            tried = np.rint(np.linspace(0.0, domain.choices - 1.0, _MOST_CATEGORIES))
        return np.asarray((tried[:, None] + np.arange(domain.width)) % domain.choices)
    if domain.norm == "linf":
        dyadic = [np.full(d, r * (2.0 * 2.0**-k - 1.0)) for k in range(1, 5)]
        corner = r * (1.0 - 2.0 * (np.arange(d) % 2))
        inside = random.uniform(-r, r, (5, d))
        return np.array([np.zeros(d), np.full(d, r), np.full(d, -r), corner, *dyadic, *inside])
    axes = np.concatenate([np.eye(min(d, 3), d), -np.eye(min(d, 3), d)])
    directions = np.concatenate(
        [axes, np.ones((1, d)), -np.ones((1, d)), random.normal(size=(4, d))]
    )
    power = {"l1": 1.0, "l2": 2.0, "lp": domain.power}[domain.norm]
    size = (np.abs(directions) ** power).sum(axis=1, keepdims=True) ** (1 / power)
    surface = r * directions / size
    if domain.last is not None:
        surface[:, -1] *= domain.last / r  # in the ball of both norms
    return np.concatenate([np.zeros((1, d)), surface, 0.3 * surface[-2:]])


def outside(domain: Domain) -> Floats:
    """Return rows that a domain does not hold, each by little or by much.

    Example:
        >>> outside(Domain("l2", 1.0, 2)).tolist()
        [[1.001, 0.0], [0.5, -10.0]]
    """
    rows = np.zeros((2, domain.width))
    if domain.norm not in ("binary", "category"):
        rows[1, 0] = 0.5 * domain.radius  # clamped it stays, scaled down it does not
    rows[0, 0], rows[1, -1] = {
        "binary": (0.5, 2.0),
        "category": (0.5, float(domain.choices)),
    }.get(domain.norm, (1.001 * domain.radius, -10.0 * domain.radius))
    return rows


def reports(
    mechanism: Mechanism, values: Floats, seed: int = 5, first: int = 0, release: int = 0
) -> NDArray[Any]:
    """Return what clients first, first + 1, and so on send: `messages` of admitted values."""
    ids = np.arange(first, first + len(values))
    # A copy, for a mechanism that writes into it must not spoil the next check.
    admitted = mechanism.domain.admit(values, ids).copy()
    stream = Stream(seed).at("randomize", release).clients(ids)
    return np.asarray(mechanism.messages(admitted, stream).payload)


def folded(mechanism: Mechanism, payload: NDArray[Any]) -> Counts:
    """Fold whole reports, message by message."""
    index = _indices(len(payload), payload.shape[1]).copy()
    return mechanism.fold(mechanism.zero(), index, payload.reshape(-1, *payload.shape[2:]))


@lru_cache(maxsize=16)
def _indices(clients: int, messages: int) -> NDArray[np.int64]:
    return np.tile(np.arange(messages), clients)


def repeated(rows: Floats, count: int) -> Floats:
    """Return so many rows, from the first on and over again."""
    return np.asarray(rows[np.arange(count) % len(rows)])
