"""How fast an epoch of shuffled gradients is, beside what it cannot be faster than."""

from collections.abc import Iterator

import numpy as np

from raydp_sim.bench.timed import Progress, Row, timed
from raydp_sim.random import Stream
from raydp_sim.tasks.shuffled_gradients.accounting import secret_sigma_for, sigma_for
from raydp_sim.tasks.shuffled_gradients.epoch import steps
from raydp_sim.tasks.shuffled_gradients.regularisers import prox

_RECORDS, _WIDTH, _REPEATS = 1000, 784, 5


_CASE = "shuffled gradients"


def epoch_rows(
    records: int = _RECORDS, width: int = _WIDTH, repeats: int = _REPEATS
) -> Iterator[Row]:
    """Measure an epoch of DP-ShuffleG per loss, its noise included.

    The floor draws the noise and adds a row of it and a record to a vector, in one call each: what
    a step costs that neither looks at its gradient nor clips it.
    """
    draw = np.random.default_rng(1)
    features = draw.standard_normal((records, width)) / np.sqrt(width)
    targets = draw.integers(0, 2, records).astype(np.float64)
    order = draw.permutation(records)

    def noise() -> np.ndarray:
        made = Stream(1).generator().standard_normal((records, width))
        made *= 161.0
        return made

    def bare() -> np.ndarray:
        x, drawn = np.zeros(width), noise()
        for place, record in enumerate(order):
            x += drawn[place]
            x -= features[record]
        return x

    floor = timed(bare, repeats)
    for loss in ("mean", "ridge", "logistic"):

        def epoch(loss: str = loss) -> np.ndarray:
            start = np.zeros(width)
            place = (features, targets, order, 1e-4, 10.0, noise())
            x = steps(loss, start, *place)  # type: ignore[arg-type]
            return prox("ball", 10.0, x, 1e-4, records)

        name = f"epoch, {loss}, n={records}, d={width}"
        yield Row(_CASE, name, timed(epoch, repeats), floor, 0.1)


def calibration_rows(repeats: int = _REPEATS) -> Iterator[Row]:
    """Measure how long it takes to find the noise of a secret order; the floor is the closed form.

    That is of another accountant, which needs no search.
    """
    closed = timed(lambda: sigma_for(5.0, 1e-6, 10.0, 50, 501), repeats)
    searched = timed(lambda: secret_sigma_for(5.0, 1e-6, 10.0, 1000, 500, 50), repeats)
    yield Row(_CASE, "noise of a secret order, n=1000", searched, closed, 2.0)


def rows(progress: Progress = lambda line: None) -> Iterator[Row]:
    """Measure all of it."""
    progress("shuffled gradients")
    yield from epoch_rows()
    yield from calibration_rows()
