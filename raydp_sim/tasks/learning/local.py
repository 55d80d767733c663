"""Local training: batches of a client's own samples, and gradients of its mean loss."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets.labelled import Chosen, Labelled
from raydp_sim.errors import InputError
from raydp_sim.kernels.types import Floats32
from raydp_sim.mechanisms.base import Counts
from raydp_sim.models.base import Network, Slope
from raydp_sim.random import ClientStream
from raydp_sim.tasks.learning.samples import drawn
from raydp_sim.tasks.learning.seen import Seen, exact


class Own(NamedTuple):
    """Samples of some clients, each with its weight in the client's mean.

    Attributes:
        chosen: the samples, (clients, samples).
        weights: (clients, samples), adding up to 1 for each client; padding has none.
    """

    chosen: Chosen
    weights: Floats32


def all_of(data: Labelled) -> Own:
    """Return everything that the clients hold."""
    return Own(data.chosen(), shares(data))


def shares(data: Labelled) -> Floats32:
    """Return the weight of every sample in its client's mean; padding has none."""
    real = np.arange(data.index.shape[1]) < data.sizes[:, None]
    return (real / np.maximum(1, data.sizes)[:, None]).astype(np.float32)


def batch_of(data: Labelled, size: int, step: int, stream: ClientStream) -> Own:
    """Draw a batch of each client's samples for one step, without replacement."""
    own = ClientStream(stream.stream.at("batch", step), stream.ids)
    chosen = data.chosen(drawn(data.sizes, size, own))
    return Own(chosen, np.full(chosen.labels.shape, 1.0 / size, np.float32))


def refuse_batch(data: Any, size: int | None, ids: Any) -> None:
    """Refuse data that are no labelled samples, and clients with fewer than a batch has.

    Raises:
        InputError: names the client.
    """
    if not isinstance(data, Labelled):
        raise InputError("population.data: a model is trained on labelled samples")
    if size is None:
        return
    few = np.flatnonzero(data.sizes < size)
    if len(few):
        held = int(data.sizes[few[0]])
        raise InputError(f"task.batch is {size}; client {ids[few[0]]} holds {held} samples")
    if size > 1 and len(np.unique(data.sizes)) > 1:
        raise InputError(
            f"task.batch is {size}; clients hold unequal numbers of samples, of which batches are "
            "not drawn: leave task.batch out, so that all samples are used"
        )


def together(samples: int, at_once: int = Network.at_once) -> int:
    """Return how many clients with so many samples each go through a model in one call."""
    return max(1, at_once // max(1, samples))


def tiles(data: Labelled, batch: int | None, at_once: int = Network.at_once) -> Iterator[slice]:
    """Yield blocks of clients whose samples fit the memory of one call."""
    size = together(data.index.shape[1] if batch is None else batch, at_once)
    for first in range(0, len(data), size):
        yield slice(first, min(first + size, len(data)))


class LocalStep(NamedTuple):
    """A step of a block of clients.

    Attributes:
        rows: the clients.
        step: its number in the round.
        own: the samples that it is taken on.
    """

    rows: slice
    step: int
    own: Own


def steps(
    data: Labelled,
    batch: int | None,
    count: int,
    stream: ClientStream,
    at_once: int = Network.at_once,
) -> Iterator[LocalStep]:
    """Yield the local steps of a round, block by block of clients.

    Args:
        data: what the clients hold.
        batch: samples of a client in one step, drawn anew for each; None: all of them.
        count: steps of each client.
        stream: of the clients' draws.
        at_once: samples in a block.
    """
    if batch is None:
        weights = shares(data)
        for rows in tiles(data, None, at_once):
            whole = Own(data[rows].chosen(), weights[rows])
            yield from (LocalStep(rows, step, whole) for step in range(count))
        return
    for rows in tiles(data, batch, at_once):
        held, mine = data[rows], stream.take(rows)
        for step in range(count):
            yield LocalStep(rows, step, batch_of(held, batch, step, mine))


def slope(network: Network, theta: Floats32, own: Own, out: Floats32 | None = None) -> Slope:
    """Return loss and gradient of each client's mean loss; the latter in `out` if that is given."""
    return network.slope(theta, own.chosen, own.weights, out)


def hits(found: Slope, own: Own) -> tuple[int, int]:
    """Return how many samples there are, and how many of them are classified rightly."""
    real = own.weights > 0.0
    return int(np.count_nonzero(real)), int(np.count_nonzero(found.right & real))


def first_seen(found: Slope, own: Own) -> Counts:
    """Return what is seen of a round's first step: losses, and how many samples are right."""
    losses = len(found.losses), exact(found.losses)
    return Seen(*losses, *hits(found, own)).counts()


def norms_seen(norms: NDArray[Any]) -> Counts:
    """Return what is seen of gradients that have these norms."""
    return Seen(gradients=len(norms), norm=exact(norms)).counts()


def lengths(vectors: Floats32) -> Floats32:
    """Return the l2 norm of every row."""
    return np.asarray(np.sqrt(np.vecdot(vectors, vectors)))
