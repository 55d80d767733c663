"""The oracle: exact laws of shuffled histograms for small channels, over all neighbours.

A channel is an array `(inputs, outputs)` whose rows are distributions. The law of the histogram of
k messages is an array with one axis of length `top + 1` per output symbol, `top >= k`. Neighbouring
datasets replace one input; every function below goes over all datasets and both directions.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[Array, Array]


# Channels


def randomized_response(epsilon: float, symbols: int = 2) -> Array:
    """Tell the truth with probability e^eps/(e^eps + B - 1), each lie with 1/(e^eps + B - 1)."""
    rest = 1.0 / (math.exp(epsilon) + symbols - 1)
    return np.full((symbols, symbols), rest) + np.eye(symbols) * (math.exp(epsilon) - 1) * rest


def hadamard_response(epsilon: float, size: int = 4) -> Array:
    """Answer in the +1 set of one's Hadamard row e^eps times as often; rows 1, ..., size - 1."""
    matrix = np.array([[1.0]])
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    weights = np.where(matrix[1:] > 0, math.exp(epsilon), 1.0)
    return weights / weights.sum(axis=1, keepdims=True)


def random_channel(seed: int, epsilon: float, inputs: int = 3, outputs: int = 3) -> Array:
    """Draw a channel and pull its rows to their mean until it is exactly epsilon-LDP."""
    raw = np.random.default_rng(seed).dirichlet(np.full(outputs, 0.5), size=inputs) + 1e-9
    raw /= raw.sum(axis=1, keepdims=True)
    centre = raw.mean(axis=0)
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if loss(centre + middle * (raw - centre)) <= epsilon:
            low = middle
        else:
            high = middle
    return centre + low * (raw - centre)


def loss(channel: Array) -> float:
    """Return the channel's exact local epsilon."""
    return float(np.max(np.log(channel.max(axis=0) / channel.min(axis=0))))


# Laws of histograms


def _times(law: Array, row: Array) -> Array:
    """Add one message: the convolution of a histogram's law with one row."""
    out = np.zeros_like(law)
    for axis, probability in enumerate(row):
        moved = np.roll(law, 1, axis=axis)
        moved[(slice(None),) * axis + (0,)] = 0.0
        out += probability * moved
    return out


def nothing(symbols: int, top: int) -> Array:
    """Return the law of the empty histogram."""
    law = np.zeros((top + 1,) * symbols)
    law[(0,) * symbols] = 1.0
    return law


def histogram_law(channel: Array, inputs: Iterable[int], top: int) -> Array:
    """Return the law of the histogram of one message per input."""
    law = nothing(channel.shape[1], top)
    for symbol in inputs:
        law = _times(law, channel[symbol])
    return law


def subset_sums(channel: Array, inputs: Iterable[int], top: int) -> list[Array]:
    """Return, per size s <= top, the sum of histogram laws over all s-subsets of the inputs."""
    sums = [nothing(channel.shape[1], top)]
    sums += [np.zeros_like(sums[0]) for _ in range(top)]
    for symbol in inputs:
        for size in range(top, 0, -1):
            sums[size] = sums[size] + _times(sums[size - 1], channel[symbol])
    return sums


# Neighbouring pairs


def _others(channel: Array, n: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations_with_replacement(range(len(channel)), n - 1)


def shuffle_pairs(channel: Array, n: int) -> Iterator[Pair]:
    """Yield the laws of n shuffled messages for every ordered pair of neighbours."""
    # Of (n + 1)^symbols cells only histograms of n messages have any mass.
    counted = np.indices((n + 1,) * channel.shape[1]).sum(axis=0) == n
    for others in _others(channel, n):
        base = histogram_law(channel, others, n)
        laws = [_times(base, row) for row in channel]
        assert not any(law[~counted].any() for law in laws)
        yield from itertools.permutations([law[counted] for law in laws], 2)


def subsampled_pairs(channel: Array, n: int, k: int) -> Iterator[Pair]:
    """Yield the laws of a shuffle of k of n clients, uniform and secret."""
    for others in _others(channel, n):
        sums = subset_sums(channel, others, k)
        laws = [(sums[k] + _times(sums[k - 1], row)) / math.comb(n, k) for row in channel]
        yield from itertools.permutations(laws, 2)


def self_sampled_pairs(channel: Array, n: int, rate: float) -> Iterator[Pair]:
    """Yield the laws when each client joins by its own coin; the histogram shows the count."""
    for others in _others(channel, n):
        sums = subset_sums(channel, others, n)
        weights = [rate**k * (1 - rate) ** (n - k) for k in range(n + 1)]
        laws = []
        for row in channel:
            parts = [weights[0] * sums[0]]
            parts += [weights[k] * (sums[k] + _times(sums[k - 1], row)) for k in range(1, n + 1)]
            laws.append(sum(parts))
        yield from itertools.permutations(laws, 2)


def two_stage_pairs(channel: Array, m: int, r: int, k: int, s: int) -> Iterator[Pair]:
    """Yield the laws when k of m clients each send s of their r points; one point is replaced."""
    rows = range(len(channel))
    top = k * s
    whole = list(itertools.combinations_with_replacement(rows, r))
    client = {w: subset_sums(channel, w, top)[s] / math.comb(r, s) for w in whole}
    for rest in itertools.combinations_with_replacement(rows, r - 1):
        mine = [client[tuple(sorted((*rest, x)))] for x in rows]
        for others in itertools.combinations_with_replacement(whole, m - 1):
            sums = [nothing(channel.shape[1], top)]
            sums += [np.zeros_like(sums[0]) for _ in range(k)]
            for other in others:
                for size in range(k, 0, -1):
                    sums[size] = sums[size] + convolve(sums[size - 1], client[other])
            laws = [(sums[k] + convolve(sums[k - 1], law)) / math.comb(m, k) for law in mine]
            yield from itertools.permutations(laws, 2)


def convolve(one: Array, two: Array) -> Array:
    """Return the law of the sum of two independent histograms that fit into their array."""
    out = np.zeros_like(one)
    for index in zip(*np.nonzero(two), strict=True):
        target = tuple(slice(i, None) for i in index)
        source = tuple(slice(None, size - i) for i, size in zip(index, one.shape, strict=True))
        out[target] += two[index] * one[source]
    return out


# Divergences


def renyi(pair: Pair, alpha: float) -> float:
    """Return the Renyi divergence of order alpha > 1, in logs: direct powers overflow."""
    p, q = (law.ravel() for law in pair)
    seen = p > 0
    powers = alpha * np.log(p[seen]) + (1 - alpha) * np.log(q[seen])
    top = powers.max()
    return float(top + np.log(np.exp(powers - top).sum())) / (alpha - 1)


def hockey_stick(pair: Pair, epsilon: float) -> float:
    """Return the least delta at this epsilon."""
    return float(np.maximum(pair[0] - math.exp(epsilon) * pair[1], 0.0).sum())


def worst(pairs: Iterable[Pair], measure: Callable[[Pair, float], float], at: float) -> float:
    """Return the largest divergence over the pairs."""
    return max(measure(pair, at) for pair in pairs)


def ternary(channel: Array, k: int, j: int) -> float:
    """Return the largest E_{D''} |(M(D) - M(D')) / M(D'')|^j over triples that differ in one input.

    The triple may repeat an input: the definition does not ask for three different ones.
    """
    largest = 0.0
    for others in _others(channel, k):
        base = histogram_law(channel, others, k)
        laws = [_times(base, row).ravel() for row in channel]
        for p, q, r in itertools.product(laws, repeat=3):
            seen = r > 0
            ratio = np.abs(p[seen] - q[seen]) / r[seen]
            largest = max(largest, float((r[seen] * ratio**j).sum()))
    return largest
