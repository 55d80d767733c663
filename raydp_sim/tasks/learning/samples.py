"""What a client does with its samples: draw some, and compute their gradients."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets.labelled import Labelled, examples
from raydp_sim.errors import InputError
from raydp_sim.kernels.types import Floats32
from raydp_sim.mechanisms.base import Counts
from raydp_sim.models.base import Network
from raydp_sim.models.losses import cross_entropy
from raydp_sim.random import ClientStream
from raydp_sim.tasks.learning.runaway import refuse_gradients
from raydp_sim.tasks.learning.seen import Seen, exact


def drawn(sizes: NDArray[np.int64], count: int, stream: ClientStream) -> NDArray[np.int64]:
    """Draw places of samples for every client: uniform, without replacement, (clients, count).

    Args:
        sizes: samples that each client holds; all alike if more than one is drawn.
        count: samples to draw.
        stream: of the clients' draws.
    """
    if count == 1:
        # With one sample there is nothing to draw; what is drawn elsewhere does not change.
        if sizes.max(initial=0) <= 1:
            return np.zeros((len(sizes), 1), np.int64)
        return np.asarray(stream.uniform("point") * sizes[:, None], np.int64)
    most = int(sizes.max(initial=count))
    keys = stream.uniform("point", most)
    return np.argsort(keys, axis=1, kind="stable")[:, :count]


class Gradients(NamedTuple):
    """Of some samples.

    Attributes:
        values: one gradient per row.
        seen: of the samples, as `Seen`.
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
    numbers = data.index  # where there is one of each client, and nothing to choose
    if data.index.shape[1] > 1:
        numbers = data.index[np.arange(len(chosen))[:, None], chosen].reshape(-1, 1)
    values = np.empty((len(numbers), network.size), np.float32)
    losses, norms = (np.empty(len(numbers), np.float32) for _ in range(2))
    hits = 0
    for first in range(0, len(numbers), network.tile):
        part = slice(first, first + network.tile)
        features, labels = examples(data.pool, data.classes, numbers[part])
        logits, tape = network.forward(theta, features)
        loss = cross_entropy(logits, labels)
        own = network.backward(theta, tape, loss.slopes, out=values[part])
        np.vecdot(own, own, out=norms[part])
        losses[part] = loss.values[:, 0]
        hits += int(np.count_nonzero(logits.argmax(axis=-1) == labels))
    np.sqrt(norms, out=norms)
    refuse_gradients(losses, norms, rounds)
    count = len(numbers)
    seen = Seen(count, exact(losses), count, hits, count, exact(norms)).counts()
    return Gradients(values, seen)


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
