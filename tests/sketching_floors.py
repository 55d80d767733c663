"""The floors of `raydp-sim bench sketching`: the same sizes in one process, and nothing else.

A case is `what-kind-kept-dimension`, as in `decode-rand-proj-20-1024`. Encoders transform or sort
all vectors at once and take k numbers of each; decoders sum them. Of Rand-Proj the transform is two
products with H of the square root of the size, which BLAS does; its decoder is given the equations
of all clients and only solves them and transforms back. Nothing is imported from raydp_sim, no
seed is expanded, no message is laid out.
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from tests import floors  # as a script it has only its own folder; sets threads

Round = floors.Round


def encode(kind: str, kept: int, dimension: int, clients: int) -> Round:
    """K numbers of every vector."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((clients, dimension))
    if kind == "rand-proj":
        turn = transform(dimension)

        def play() -> np.ndarray:
            signs = 1.0 - 2.0 * rng.integers(0, 2, x.shape)
            rows = rng.integers(0, dimension, (clients, kept))
            return np.take_along_axis(turn(x * signs), rows, axis=1)
    elif kind == "rand-k":

        def play() -> np.ndarray:
            return np.take_along_axis(x, rng.integers(0, dimension, (clients, kept)), axis=1)
    elif kind == "wangni":

        def play() -> np.ndarray:
            size = np.abs(x)
            ends = np.cumsum(size * (kept / size.sum(axis=1, keepdims=True)), axis=1)
            start = rng.random((clients, 1)) + np.arange(kept)
            where = [np.searchsorted(*pair) for pair in zip(ends, start, strict=True)]
            return np.take_along_axis(x, np.minimum(where, dimension - 1), axis=1)
    else:

        def play() -> np.ndarray:
            best = np.argpartition(-np.abs(x), kept // 2, axis=1)[:, : kept // 2]
            rest = rng.integers(0, dimension, (clients, kept // 2))
            return np.take_along_axis(x, np.concatenate([best, rest], axis=1), axis=1)

    return play


def decode(kind: str, kept: int, dimension: int, clients: int) -> Round:
    """The mean of what was sent."""
    rng = np.random.default_rng(2)
    sent = rng.standard_normal((clients, kept))
    rows = rng.integers(0, dimension, (clients, kept))
    if kind == "rand-proj":
        g = rng.standard_normal((clients * kept, dimension)) / math.sqrt(dimension)
        equations, turn = g @ g.T + np.eye(clients * kept), transform(dimension)
        signs = 1.0 - 2.0 * rng.integers(0, 2, (clients, dimension))

        def play() -> np.ndarray:
            solved = cho_solve(cho_factor(equations), sent.reshape(-1)).reshape(sent.shape)
            back = np.zeros((clients, dimension))
            np.put_along_axis(back, rows, solved, axis=1)
            return (signs * turn(back)).sum(axis=0)
    else:

        def play() -> np.ndarray:
            return np.bincount(rows.reshape(-1), sent.reshape(-1), minlength=dimension)

    return play


def transform(dimension: int) -> Callable[[np.ndarray], np.ndarray]:
    """Walsh and Hadamard's transform of rows, as two products."""
    bits = dimension.bit_length() - 1
    left, right = floors._hadamard(1 << (bits - bits // 2)), floors._hadamard(1 << (bits // 2))

    def turn(x: np.ndarray) -> np.ndarray:
        square = x.reshape(len(x), len(left), len(right))
        return (left @ (square @ right)).reshape(x.shape)

    return turn


class _Cases(dict):
    """Every case there could be, by its name."""

    def __missing__(self, name: str) -> Callable[[int], Round]:
        what, rest = name.split("-", 1)
        kind, kept, dimension = rest.rsplit("-", 2)
        make = {"encode": encode, "decode": decode}[what]
        return lambda clients: make(kind, int(kept), int(dimension), clients)


if __name__ == "__main__":
    floors.serve(_Cases())
