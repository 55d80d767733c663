"""Softmax regression: the gradient of each client's loss, with one order for every sum."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels.plain.rows import gathered
from raydp_sim.kernels.types import Counts, Floats32, Softmax

LANES = 16
"""Sums that an inner product is made of."""
_CACHED = 1 << 16  # products at a time, which stay in cache
_LEAST = np.float32(-64.0)
# Cephes' expf: 2^whole times a polynomial of what is left. Adding the number with a last place of 1
# and taking it away again rounds to a whole number.
_ROUND, _PER_E = np.float32(12582912.0), np.float32(1.44269504088896341)
_LN2 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_TERMS = tuple(
    np.float32(term)
    for term in (
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    )
)


def softmax(
    pool: NDArray[Any],
    numbers: Counts,
    scale: float,
    labels: Counts,
    weights: Floats32,
    theta: Floats32,
    out: Floats32,
) -> Softmax:
    """Write the gradient of each client's weighted sum of cross-entropies.

    Inner products are sixteen sums of every sixteenth product, of which halves are added up; sums
    over samples and classes go one after the other. Shares below e^-64 are 0.

    Args:
        pool: features of all samples, single floats or bytes.
        numbers: of the samples of each client, (clients, samples).
        scale: of bytes.
        labels: of these samples.
        weights: of these samples.
        theta: weights (classes, features) and biases, flat; one vector for all, or one per client.
        out: where the gradients are written, (clients, d).
    """
    samples, features = numbers.shape[1], int(np.prod(pool.shape[1:]))
    classes, wide = out.shape[1] // (features + 1), -(-features // LANES) * LANES
    refuse_labels(labels, classes)
    made = Softmax(
        np.empty(numbers.shape, np.float32),
        np.empty(numbers.shape, np.float32),
        np.empty(numbers.shape, np.bool_),
    )
    step = max(1, _CACHED // max(1, classes * max(samples * LANES, wide)))
    for first in range(0, len(numbers), step):
        rows = slice(first, first + step)
        own = theta[None] if theta.ndim == 1 else theta[rows]
        x = _padded(gathered(pool, numbers[rows], scale).reshape(-1, samples, features), wide)
        weight = own[:, : classes * features].reshape(len(own), classes, features)
        with np.errstate(over="ignore", invalid="ignore"):
            logits = _products(x, _padded(weight, wide)) + own[:, None, classes * features :]
        slopes, *seen = _slopes(logits, labels[rows], weights[rows])
        for column, part in zip(made, seen, strict=True):
            column[rows] = part
        found, bias = (np.zeros((len(x), classes, more), np.float32) for more in (wide, 1))
        products = np.empty_like(found)
        for each in range(samples):
            np.multiply(slopes[:, each, :, None], x[:, each, None, :], out=products)
            found += products
            bias += slopes[:, each, :, None]
        out[rows, : classes * features] = found[:, :, :features].reshape(len(x), -1)
        out[rows, classes * features :] = bias[:, :, 0]
    return made


def refuse_labels(labels: Counts, classes: int) -> None:
    """Refuse labels that are no classes; NumPy would take -1 for the last one.

    Raises:
        ValueError: names the first such label.
    """
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        wrong = labels[(labels < 0) | (labels >= classes)][0]
        raise ValueError(f"a sample has label {wrong}; there are {classes} classes, from 0 on")


def exponential(x: Floats32) -> Floats32:
    """Return e^x for x <= 0, and 0 below -64; what is no number stays so.

    Example:
        >>> found = exponential(np.array([0.0, -1.0, -65.0, -np.inf], np.float32))
        >>> found.astype(float).round(4).tolist()
        [1.0, 0.3679, 0.0, 0.0]
    """
    low = np.where(x > _LEAST, x, _LEAST)
    whole = (low * _PER_E + _ROUND) - _ROUND
    rest = (low - whole * _LN2[0]) - whole * _LN2[1]
    y = np.full_like(rest, _TERMS[0])
    for term in _TERMS[1:]:
        y = y * rest + term
    y = (y * (rest * rest) + rest) + np.float32(1.0)
    y *= ((whole.astype(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    y = np.where(x > _LEAST, y, np.float32(0.0))
    return np.asarray(np.where(np.isnan(x), x, y))


def _padded(x: Floats32, wide: int) -> Floats32:
    """Return rows with zeros behind them."""
    if x.shape[-1] == wide:
        return np.ascontiguousarray(x)
    out = np.zeros((*x.shape[:-1], wide), np.float32)
    out[..., : x.shape[-1]] = x
    return out


def _products(x: Floats32, weight: Floats32) -> Floats32:
    """Return inner products of samples with classes, (clients, samples, classes)."""
    clients, samples, wide = x.shape
    # Sums of all samples side by side: NumPy is slow along sixteen numbers.
    sums = np.zeros((clients, weight.shape[1], samples * LANES), np.float32)
    products = np.empty_like(sums)
    parts = np.ascontiguousarray(x.reshape(clients, samples, -1, LANES).swapaxes(1, 2))
    for place in range(wide // LANES):
        own = np.tile(weight[:, :, place * LANES : (place + 1) * LANES], samples)
        np.multiply(parts[:, place].reshape(clients, 1, -1), own, out=products)
        sums += products
    halves = sums.reshape(clients, -1, samples, LANES)
    while (half := halves.shape[-1] // 2) > 0:
        halves = halves[..., :half] + halves[..., half:]
    return halves[..., 0].swapaxes(1, 2)


def _slopes(logits: Floats32, labels: Counts, weights: Floats32) -> tuple[Floats32, ...]:
    """Return slopes of the weighted losses, and what `Softmax` has."""
    classes, place = range(1, logits.shape[2]), labels[:, :, None]
    with np.errstate(over="ignore", invalid="ignore"):
        most = logits[..., 0]
        for each in classes:
            most = np.where(logits[..., each] > most, logits[..., each], most)
        shifted = logits - most[..., None]
        below = np.take_along_axis(shifted, place, 2)[..., 0]
        first = (logits == most[..., None]).argmax(axis=2)
        right = (below == 0.0) & (first == labels)
        slopes = exponential(shifted)
        total = slopes[..., 0].copy()
        for each in classes:
            total += slopes[..., each]
        slopes /= total[..., None]
        own = np.take_along_axis(slopes, place, 2) - np.float32(1.0)
        np.put_along_axis(slopes, place, own, 2)
        slopes *= weights[..., None]
    return slopes, total, below, right
