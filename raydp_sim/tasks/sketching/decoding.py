"""What a reader makes of all sketches of a release together."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import Floats, Mechanism
from raydp_sim.mechanisms.sketching import projection, spatial
from raydp_sim.mechanisms.sketching.joint import Joint, check_seeds
from raydp_sim.mechanisms.sketching.normaliser import Normaliser, normaliser
from raydp_sim.mechanisms.sketching.similarity import Similarity, slope
from raydp_sim.random import Stream


class Decoded(NamedTuple):
    """An estimate of a mean.

    Attributes:
        mean: the estimate.
        slope: s of T(m) = 1 + s (m - 1) that it was decoded with.
        normaliser: beta, and its standard error.
    """

    mean: Floats
    slope: float
    normaliser: Normaliser


def check_mechanism(mechanism: Mechanism) -> None:
    """Refuse reports of several messages: which belong together is not kept.

    Raises:
        InputError: says what to do.
    """
    if mechanism.messages_per_report > 1:
        raise bad_field(
            "mechanism.kind",
            mechanism.kind,
            f"its reports are {mechanism.messages_per_report} messages; take a sketch, or another "
            "mechanism that sends one",
        )


def no_messages(mechanism: Mechanism) -> list[NDArray[Any]]:
    """Return an accumulator of messages themselves, with none in it yet."""
    nobody = np.zeros((0, mechanism.domain.width))
    sent = mechanism.messages(nobody, Stream(0).clients(np.arange(0))).payload
    return [sent.reshape(0, *sent.shape[2:])]


def joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return all messages of a release in an order of their own, whichever way they came."""
    rows = np.concatenate(parts)
    return rows[np.lexsort(rows.reshape(len(rows), -1).T[::-1])]


def decoded(
    mechanism: Mechanism,
    rows: NDArray[Any],
    similarity: Similarity,
    correlation: float | None,
    stream: Stream,
) -> Decoded:
    """Return the estimate from the messages that arrived: their number is what n is.

    Args:
        mechanism: that made them. Those of k rows that a seed draws are decoded together: of
            coordinates (Rand-k-Spatial) or of a transform (Rand-Proj-Spatial). Others decode
            report by report, whatever the similarity.
        rows: messages, from `joined`.
        similarity: how alike clients are taken to be.
        correlation: R, for `opt`.
        stream: of the reader's own draws, where the mechanism has any.
    """
    clients = len(rows)
    if not isinstance(mechanism, Joint):
        none = np.zeros(clients, np.int64)
        counts = mechanism.fold(mechanism.zero(), none, rows)
        return Decoded(mechanism.decode(counts, stream), 0.0, Normaliser(1.0, 0.0))
    dimension = mechanism.domain.dimension
    alike = slope(similarity, clients, correlation)
    if clients == 0:
        return Decoded(np.zeros(dimension), alike, Normaliser(0.0, 0.0))
    own, sent = mechanism.opened(rows)
    check_seeds(own)
    share = sent.shape[1]
    if mechanism.basis == "coordinates":
        beta = Normaliser(spatial.normaliser(clients, share, dimension, alike), 0.0)
        where = projection.distinct_rows(own, share, dimension)
        return Decoded(spatial.decoded(where, sent, dimension, alike), alike, beta)
    length = projection.padded(dimension)
    beta = normaliser(clients, share, length, alike)
    signs, picked = projection.sketches(own, share, length)
    mean = projection.decoded(signs, picked, sent, alike, beta.value)
    return Decoded(mean[:dimension], alike, beta)
