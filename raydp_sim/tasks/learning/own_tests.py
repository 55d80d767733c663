"""Models on their clients' own samples: those to test with, and those to choose by."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raydp_sim.datasets.labelled import Labelled
from raydp_sim.kernels.types import Floats32
from raydp_sim.mechanisms.base import Counts
from raydp_sim.metrics.streams import simulation_only
from raydp_sim.models.base import Network
from raydp_sim.tasks.learning import local

_SHARE, _SUMS = 2.0**30, 3


def places(data: Labelled) -> int:
    """Return how many numbers `own_accuracy` has."""
    return _SUMS * len(_kept(data))


def _kept(data: Labelled) -> list[Labelled | None]:
    # What is counted of runs without the latter has stayed as long as in their checkpoints.
    return [data.test] if data.validation is None else [data.test, data.validation]


def own_accuracy(network: Network, theta: Floats32, data: Labelled) -> Counts:
    """Return how models do on the clients' own samples, in exact sums (`spread`).

    First of samples to test with, where nobody is counted if there are none, then of those to
    choose by, if there are any.

    Args:
        network: the model.
        theta: parameters, one vector for all or one per client.
        data: what the clients hold, such samples included.
    """
    return np.concatenate([_sums(network, theta, own) for own in _kept(data)])


def _sums(network: Network, theta: Floats32, data: Labelled | None) -> Counts:
    total = np.zeros(_SUMS, np.int64)
    if data is None:
        return total
    for rows in local.tiles(data, None):
        held = data[rows]
        own = local.all_of(held)
        parameters = theta if theta.ndim == 1 else theta[rows]
        logits, _ = network.forward(parameters, own.chosen.features)
        hits = ((logits.argmax(axis=-1) == own.chosen.labels) & (own.weights > 0.0)).sum(axis=1)
        share = hits[held.sizes > 0] / held.sizes[held.sizes > 0]
        for place, power in enumerate((share, share * share)):
            total[1 + place] += int(np.rint(power * _SHARE).astype(np.int64).sum())
        total[0] += len(share)
    return total


class Spread(NamedTuple):
    """Of an accuracy over clients; not a number where nobody was tested."""

    mean: float
    deviation: float


def personal_row(rounds: int, sums: dict[str, Counts]) -> dict[str, pa.RecordBatch]:
    """Return stream `personal`: accuracies on clients' own samples, with their spreads.

    It has a row where there was somebody to be asked.

    Args:
        rounds: so far.
        sums: of `own_accuracy`, by the name of the models.
    """
    columns, clients = dict[str, float](), 0
    for name, each in sums.items():
        # Those to choose by need not be there.
        for what, own in zip((name, f"{name}_validation"), each.reshape(-1, _SUMS), strict=False):
            if own[0]:
                found, clients = spread(own), max(clients, int(own[0]))
                columns |= {f"{what}_accuracy": found.mean, f"{what}_accuracy_sd": found.deviation}
    if not columns:
        return {}
    return {"personal": simulation_only({"round": rounds, "clients": clients, **columns})}


def spread(sums: Counts) -> Spread:
    """Return mean and standard deviation over clients from sums over one kind of samples.

    Example:
        >>> spread(np.array([2, 2**30, 2**30], np.int64))
        Spread(mean=0.5, deviation=0.5)
    """
    count = int(sums[0])
    if count == 0:
        return Spread(float("nan"), float("nan"))
    mean, square = (int(each) / _SHARE / count for each in sums[1:])
    return Spread(mean, max(0.0, square - mean * mean) ** 0.5)


def personal_files(network: Network, memory: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return clients' own models as named tensors with one row per client, by file."""
    return {"model/personal": network.named(memory["theta"])}
