"""What a client does with its samples: draw some, and compute their gradients."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets.labelled import Labelled
from raydp_sim.errors import InputError, RunError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.models.base import TILE, Floats32, Network
from raydp_sim.models.losses import cross_entropy
from raydp_sim.random import ClientStream

UNIT = 2.0**-16
"""In which losses and norms are summed, so that sums are exact integers."""
_MOST = 2.0**26  # where numbers are cut off in sums: with it 2^20 of them cannot overflow
_EXPLODED = 1e6


def drawn(sizes: NDArray[np.int64], count: int, stream: ClientStream) -> NDArray[np.int64]:
    """Draw places of samples for every client: uniform, without replacement, (clients, count).

    Args:
        sizes: samples that each client holds; all alike if more than one is drawn.
        count: samples to draw.
        stream: of the clients' draws.
    """
    if count == 1:
        return np.asarray(stream.uniform("point") * sizes[:, None], np.int64)
    most = int(sizes.max(initial=count))
    keys = stream.uniform("point", most)
    return np.argsort(keys, axis=1, kind="stable")[:, :count]


class Gradients(NamedTuple):
    """Of some samples.

    Attributes:
        values: one gradient per row.
        seen: number of samples, and sums of their losses, hits and gradients' l2 norms.
    """

    values: Floats32
    seen: Counts


def gradients(
    network: Network, theta: Floats32, data: Labelled, chosen: NDArray[np.int64], rounds: int
) -> Gradients:
    """Return the gradient of every chosen sample by itself.

    Args:
        network: the model.
        theta: its parameters.
        data: what the clients hold.
        chosen: places of samples, one row per client.
        rounds: before this one, for the message if numbers run away.

    Raises:
        RunError: a loss or a gradient is not a number, or beyond all measure.
    """
    count = chosen.shape[1]
    together = max(1, TILE // count)
    values = np.empty((chosen.size, network.size), np.float32)
    seen = np.zeros(4, np.int64)
    if not len(chosen):
        return Gradients(np.empty((0, network.size), np.float32), seen)
    for first in range(0, len(chosen), together):
        part = slice(first, first + together)
        features, labels = data[part].take(chosen[part])
        flat, one = features.reshape(-1, 1, *features.shape[2:]), labels.reshape(-1, 1)
        logits, tape = network.forward(theta, flat)
        loss = cross_entropy(logits, one)
        own = network.backward(theta, tape, loss.slopes)
        norms = np.sqrt(np.vecdot(own, own))
        _refuse_runaway(loss.values, norms, rounds)
        hits = int((logits.argmax(axis=-1) == one).sum())
        seen += [len(own), exact(loss.values), hits, exact(norms)]
        values[first * count : (first + together) * count] = own
    return Gradients(values, seen)


def exact(numbers: NDArray[Any]) -> int:
    """Return the sum of numbers in units, each cut off and rounded by itself."""
    kept = np.minimum(numbers.astype(np.float64), _MOST)
    return int(np.rint(kept / UNIT).astype(np.int64).sum())


def _refuse_runaway(losses: Floats32, norms: Floats32, rounds: int) -> None:
    if np.isfinite(norms).all() and (losses < _EXPLODED).all():
        return
    worst = float(np.max(losses, initial=0.0))
    what = f"a loss is {worst:.3g}" if not worst < _EXPLODED else "a gradient is not finite"
    raise RunError(
        f"training ran away: in round {rounds + 1} {what}; lower task.step_size, or clip gradients "
        "more (mechanism.radius)",
        resumable=False,
    )


def held_labels(data: Labelled, classes: int) -> Counts:
    """Return how many samples of each class clients hold, and how many clients they are."""
    real = np.arange(data.index.shape[1]) < data.sizes[:, None]
    found = np.bincount(data.classes[data.index[real]].astype(np.int64), minlength=classes)
    return np.append(found, len(data)).astype(np.int64)


def refuse_unequal(data: Labelled, fewest: int, ids: Any, sampled: int) -> None:
    """Refuse clients that hold more than others, where several samples of each are drawn.

    Raises:
        InputError: names the client.
    """
    more = np.flatnonzero(data.sizes != fewest)
    if len(more):
        held = int(data.sizes[more[0]])
        raise InputError(
            f"task.sampled_points is {sampled}; client {ids[more[0]]} holds {held} samples and "
            f"another {fewest}, and nothing is proved then: draw 1, or deal out equal numbers"
        )
