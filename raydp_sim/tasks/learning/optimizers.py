"""What the server makes of the estimated mean gradient: post-processing, whatever it does."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.registry import Piece, Registry

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
Share = Annotated[float, Field(ge=0, lt=1)]


class Optimizer(Piece):
    """Turns gradients into moves; what it remembers is part of the reader's state."""

    @abstractmethod
    def init(self, dimension: int) -> Arrays:
        """Return what it remembers before the first round."""

    @abstractmethod
    def move(self, gradient: Floats, t: int, memory: Arrays) -> tuple[Floats, Arrays]:
        """Return what is subtracted from the parameters, times the step size, and its memory.

        Args:
            gradient: the estimate.
            t: the effective round, from 1.
            memory: from the round before.
        """


class Sgd(Optimizer):
    """The gradient itself; with momentum, its decaying sum.

    Fields:
        momentum: share of the last move that is added to the next; off by default, since with
            noise that is drawn anew every round it only adds noise of the past.

    Example:
        >>> sgd = Sgd(momentum=0.5)
        >>> move, memory = sgd.move(np.ones(1), 1, sgd.init(1))
        >>> sgd.move(np.ones(1), 2, memory)[0].tolist()
        [1.5]
    """

    kind: ClassVar[str] = "sgd"
    momentum: Share = 0.0

    def init(self, dimension: int) -> Arrays:
        """Return no move, if moves are remembered."""
        return {"move": np.zeros(dimension)} if self.momentum else {}

    def move(self, gradient: Floats, t: int, memory: Arrays) -> tuple[Floats, Arrays]:
        """Return the gradient, plus a share of the last move."""
        if not self.momentum:
            return gradient, memory
        made = gradient + self.momentum * memory["move"]
        return made, {"move": made}


class FedAdam(Optimizer):
    """Adam on the server (Reddi et al. 2021, "Adaptive federated optimization", Algorithm 2).

    With Adam's correction of the first rounds, which start at 0 (Kingma & Ba 2015).

    Fields:
        beta1: share that the mean of the gradients keeps.
        beta2: share that the mean of their squares keeps.
        adaptivity: added to the root of the latter; the paper's tau.
    """

    kind: ClassVar[str] = "fedadam"
    beta1: Share = 0.9
    beta2: Share = 0.99
    adaptivity: Annotated[float, Field(gt=0)] = 1e-3

    def init(self, dimension: int) -> Arrays:
        """Return two moments of nothing."""
        return {"first": np.zeros(dimension), "second": np.zeros(dimension)}

    def move(self, gradient: Floats, t: int, memory: Arrays) -> tuple[Floats, Arrays]:
        """Return the mean gradient over the root of the mean square."""
        first = self.beta1 * memory["first"] + (1.0 - self.beta1) * gradient
        second = self.beta2 * memory["second"] + (1.0 - self.beta2) * gradient**2
        scale = np.sqrt(second / (1.0 - self.beta2**t)) + self.adaptivity
        return first / (1.0 - self.beta1**t) / scale, {"first": first, "second": second}


_PREFIX = "optimizer."


def as_state(memory: Arrays) -> Arrays:
    """Return what an optimizer remembers, named as a part of the reader's state."""
    return {_PREFIX + name: column for name, column in memory.items()}


def of_state(state: Arrays) -> Arrays:
    """Return what the optimizer remembers, out of a reader's state."""
    own = (name for name in state if name.startswith(_PREFIX))
    return {name.removeprefix(_PREFIX): state[name] for name in own}


# The base is only compared with, so it may be abstract.
OPTIMIZERS = Registry("raydp_sim.tasks.learning", Optimizer)  # type: ignore[type-abstract]
