"""What every model promises: shapes, bits that do not depend on company, and true gradients."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.check.finding import NotChecked, check, plural, require
from raydp_sim.datasets.labelled import Chosen
from raydp_sim.kernels.types import Floats32
from raydp_sim.models import MODELS
from raydp_sim.models.base import Classifier, Network
from raydp_sim.models.losses import cross_entropy
from raydp_sim.models.torch_module import TILE
from raydp_sim.random import Stream

CLASSES = 3
# More than a tile, so that rows change their place in it.
_ROWS = TILE + 6
# Room for sums of float32 in another order, as a part of the largest number there is.
_ROUNDING = 1e-5


class ModelSubject:
    """A model for features of one shape, with rows to try it on.

    Example:
        >>> from raydp_sim.models.linear import Linear
        >>> ModelSubject(Linear(), (2, 3)).theta.shape
        (21,)
    """

    def __init__(self, model: Classifier, shape: tuple[int, ...]) -> None:
        self.model, self.shape = model, shape

    @cached_property
    def network(self) -> Network:
        """The model, made for the shape."""
        return self.model.network(self.shape, CLASSES)

    @cached_property
    def theta(self) -> Floats32:
        """Parameters in general position: not where they start, which may be zero."""
        start = self.network.init(Stream(5))
        drawn = np.random.default_rng(6).uniform(-0.1, 0.1, len(start))
        return np.asarray(start + drawn, np.float32)

    def rows(self, clients: int, samples: int = 1) -> tuple[Floats32, NDArray[np.int64]]:
        """Return features in [0, 1) and labels."""
        drawn = np.random.default_rng(7)
        features = drawn.random((clients, samples, *self.shape), np.float32)
        return features, drawn.integers(0, CLASSES, (clients, samples))

    def own(self, clients: int) -> Floats32:
        """Return parameters that differ from client to client."""
        shifts = np.random.default_rng(8).uniform(-0.05, 0.05, (clients, len(self.theta)))
        return np.asarray(self.theta + shifts, np.float32)

    def tried(self, theta: Any, features: Any, labels: Any) -> tuple[Floats32, Floats32]:
        """Return logits, and gradients of the cross entropy."""
        logits, tape = self.network.forward(theta, features)
        return logits, self.network.backward(theta, tape, cross_entropy(logits, labels).slopes)


@check("shapes and types")
def shapes(subject: ModelSubject) -> str:
    """Parameters (d,), logits (clients, samples, classes), gradients (clients, d), all float32."""
    network, start = subject.network, subject.network.init(Stream(5))
    size = sum(part.size for part in network.parts)
    names = [part.name for part in network.parts]
    require(network.size == size, f"`size` is {network.size}, but its parts hold {size} numbers")
    require(len(set(names)) == len(names), f"two parts have the same name, of {names}")
    _like("init", start, (size,))
    require(np.isfinite(start).all(), "`init` returned numbers that are not finite")
    for theta in (subject.theta, subject.own(4)):
        for samples in (1, 2):
            logits, found = subject.tried(theta, *subject.rows(4, samples))
            _like("forward", logits, (4, samples, CLASSES))
            _like("backward", found, (4, size))
    return f"{plural(size, 'parameter')} in {plural(len(names), 'part')}, 4 clients"


def _like(method: str, array: Any, shape: tuple[int, ...]) -> None:
    require(
        array.shape == shape and array.dtype == np.float32,
        f"`{method}` returned {array.dtype} of shape {array.shape}; it must be float32 of {shape}",
    )


@check("a scenario file can name it")
def scenario_file(subject: ModelSubject) -> str:
    """What is written of it into a run's directory gives the same model again."""
    document = MODELS.dump(subject.model)
    require(MODELS.parse(document) == subject.model, f"{document} reads as another model")
    return f"kind {document['kind']}"


@check("seeds decide the start")
def seeds(subject: ModelSubject) -> str:
    """`init` depends on its stream alone."""
    first, again = (subject.network.init(Stream(5).at("model")) for _ in range(2))
    require(np.array_equal(first, again), "`init` gave two starts from one stream")
    if not first.any():
        return "it starts at zero"
    other = subject.network.init(Stream(6).at("model"))
    require(not np.array_equal(first, other), "two seeds give the same start, which is not zero")
    return "2 seeds"


@check("calls leave nothing behind")
def pure(subject: ModelSubject) -> str:
    """The same call gives the same bits, whatever came between, and changes no argument."""
    theta, (features, labels) = subject.theta.copy(), subject.rows(5, 2)
    given = features.copy()
    logits, tape = subject.network.forward(theta, features)
    kept = logits.copy()
    subject.tried(subject.own(5), features[::-1].copy(), labels)
    found = subject.network.backward(theta, tape, cross_entropy(logits, labels).slopes)
    again = subject.tried(theta, features, labels)
    require(
        np.array_equal(kept, again[0]) and np.array_equal(found, again[1]),
        "the same call gave other bits when another call came between `forward` and `backward`",
    )
    require(
        np.array_equal(theta, subject.theta) and np.array_equal(features, given),
        "a call changed the parameters or the features that it was given",
    )
    return "5 clients, with another call in between"


@check("a row does not depend on its company")
def company(subject: ModelSubject) -> str:
    """Any split and any order of the rows give the same bits."""
    for samples in (1, 3):
        features, labels = subject.rows(_ROWS, samples)
        for theta in (subject.theta, subject.own(_ROWS)):
            whole = subject.tried(theta, features, labels)
            order = np.random.default_rng(9).permutation(_ROWS)
            splits = [np.split(np.arange(_ROWS), cuts) for cuts in ([1], [5, 40], [TILE])]
            for split in (*splits, [order]):
                for rows in split:
                    own = theta if theta.ndim == 1 else theta[rows]
                    part = subject.tried(own, features[rows], labels[rows])
                    same = all(np.array_equal(a[rows], b) for a, b in zip(whole, part, strict=True))
                    require(
                        same,
                        f"a row of {_ROWS} has other bits in a call of {len(rows)}; multiply client"
                        " by client (three-dimensional matmul), or in tiles of a fixed size",
                    )
    return f"{_ROWS} rows in 3 splits and another order, shared and own parameters"


@check("equal parameters give equal gradients")
def alike(subject: ModelSubject) -> str:
    """Parameters of each client that are all the same count as shared ones."""
    features, labels = subject.rows(5, 2)
    shared = subject.tried(subject.theta, features, labels)
    each = subject.tried(np.tile(subject.theta, (5, 1)), features, labels)
    for one, other in zip(shared, each, strict=True):
        _near(one, other, "parameters per client, all the same, differ from shared ones")
    return "5 clients"


@check("samples add up")
def additive(subject: ModelSubject) -> str:
    """A client's gradient is the sum of those of its samples."""
    features, labels = subject.rows(5, 4)
    _, whole = subject.tried(subject.theta, features, labels)
    single = [
        subject.tried(subject.theta, features[:, k : k + 1], labels[:, k : k + 1])[1]
        for k in range(4)
    ]
    _near(whole, np.sum(single, axis=0), "a gradient is not the sum of its samples' gradients")
    return "4 samples of 5 clients"


def _near(one: Any, other: Any, what: str) -> None:
    off = float(np.abs(one - other).max())
    require(off <= _ROUNDING * float(np.abs(one).max()), f"{what} (by {off:.3g})")


@check("one pass gives what the way there and back gives")
def one_pass(subject: ModelSubject) -> str:
    """`slope` weights samples, scales bytes, writes where it is told, whoever else is there."""
    network, labels = subject.network, subject.rows(5, 3)[1]
    weights = np.array([[0.5, 0.25, 0.25]] * 4 + [[1.0, 0.0, 0.0]], np.float32)
    floats, numbers = subject.rows(15)[0][:, 0], np.arange(15).reshape(5, 3)
    for theta in (subject.theta, subject.own(5)):
        for pool in (floats, (255.0 * floats).astype(np.uint8)):
            chosen = Chosen(pool, numbers, labels)
            found = network.slope(theta, chosen, weights)
            logits, tape = network.forward(theta, chosen.features)
            loss = cross_entropy(logits, labels)
            meant = network.backward(theta, tape, loss.slopes * weights[..., None])
            _near(meant, found.gradient, "`slope` returned another gradient than `backward`")
            losses = (loss.values * weights).sum(axis=1)
            _near(losses, found.losses, "`slope` returned other losses than those of the logits")
            right = np.array_equal(logits.argmax(axis=-1) == labels, found.right)
            require(right, "`slope` counts other samples as right than the logits do")
            into = np.full_like(found.gradient, np.nan)
            network.slope(theta, chosen, weights, into)
            written = np.array_equal(into, found.gradient)
            require(written, "`slope` did not write the gradient to `out`")
            for row in range(5):
                own = theta if theta.ndim == 1 else theta[row : row + 1]
                rows = slice(row, row + 1)
                some = Chosen(pool, numbers[rows], labels[rows])
                alone = network.slope(own, some, weights[rows])
                same = all(np.array_equal(a[rows], b) for a, b in zip(found, alone, strict=True))
                require(same, "`slope` gave a client other bits in the company of others")
    return "5 clients with 3 weighted samples each, floats and bytes, and each alone"


@check("gradients are slopes of the loss")
def gradients(subject: ModelSubject) -> str:
    """Finite differences in float64, along random directions of every part.

    The largest of some differences and steps may lie beside a kink (a pooled tie, a unit at zero);
    of six directions of each part four must agree.
    """
    network, (features, labels) = subject.network, subject.rows(3, 2)
    # Wider than what networks say they take; those that compute in the type they are given do.
    theta: Any = subject.own(3).astype(np.float64)
    wide: Any = features.astype(np.float64)
    if network.forward(theta, wide)[0].dtype != np.float64:
        raise NotChecked("`forward` answers float64 with float32, too coarse for differences")
    _, found = subject.tried(theta, wide, labels)
    drawn, first, step = np.random.default_rng(10), 0, 1e-5

    def losses(at: Any) -> Any:
        return cross_entropy(network.forward(at, wide)[0], labels).values.sum(axis=1)

    for part in network.parts:
        own = slice(first, first + part.size)
        first += part.size
        right = 0
        for _ in range(6):
            ahead = np.zeros_like(theta)
            ahead[:, own] = drawn.standard_normal((len(theta), part.size)) / np.sqrt(part.size)
            seen = (losses(theta + step * ahead) - losses(theta - step * ahead)) / (2 * step)
            stated = np.vecdot(found, ahead)
            right += np.allclose(seen, stated, rtol=1e-5, atol=1e-8)
        require(
            right >= 4,
            f"the gradient of {part.name} is not the slope of the loss: {stated[0]:.6g} stated, "
            f"{seen[0]:.6g} by differences",
        )
    return f"6 directions of each of {plural(len(network.parts), 'part')}"


@check("what is no number stays visible")
def not_numbers(subject: ModelSubject) -> str:
    """NaN in one client's features shows in its logits and gradient, and in nobody else's."""
    features, labels = subject.rows(4)
    clean = subject.tried(subject.theta, features, labels)
    spoilt = features.copy()
    spoilt[2].reshape(-1)[subject.shape[-1] // 2] = np.nan
    with np.errstate(all="ignore"):
        tried = subject.tried(subject.theta, spoilt, labels)
        broken = subject.tried(np.full_like(subject.theta, np.nan), features, labels)
    for name, before, after in zip(("logits", "gradient"), clean, tried, strict=True):
        require(np.isnan(after[2]).any(), f"NaN in the features is not seen in the {name}")
        others = [0, 1, 3]
        same = np.array_equal(before[others], after[others])
        require(same, f"NaN in one client's features changed the {name} of another")
    require(np.isnan(broken[0]).all(), "NaN in the parameters is not seen in the logits")
    return "in the features of 1 of 4 clients, and in the parameters"


MODEL_CHECKS = (
    shapes,
    scenario_file,
    seeds,
    pure,
    company,
    alike,
    additive,
    one_pass,
    gradients,
    not_numbers,
)
