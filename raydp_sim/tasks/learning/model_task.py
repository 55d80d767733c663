"""What all tasks that train models share."""

from abc import abstractmethod
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from raydp_sim.datasets.labelled import Labelled
from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.models import MODELS
from raydp_sim.models.base import TILE, Classifier, Floats32, Network
from raydp_sim.models.linear import Linear
from raydp_sim.random import Stream
from raydp_sim.registry import piece
from raydp_sim.tasks.base import Arrays, Estimate, Setting, Task, Work
from raydp_sim.tasks.learning import local, training
from raydp_sim.tasks.learning.samples import held_labels


class Passes(NamedTuple):
    """What a client computes for one round.

    Attributes:
        gradients: how many.
        samples: that each of them is the mean over.
    """

    gradients: int
    samples: int


class ModelTask(Task):
    """A task whose answer is a model: which one, when it is tested, and what is left of it.

    The state's and the public `theta` is the model that all have in common, `rounds` counts.

    Fields:
        model: what is trained.
        evaluate_every: rounds from one test to the next; the last one is always tested.
    """

    adaptive = True
    open_ended = False
    sums_cut = False
    model: Annotated[Classifier, *piece(MODELS)] = Linear()
    evaluate_every: Annotated[int, Field(ge=1)] = 1

    def network(self, setting: Setting) -> Network:
        """Return the model for the data at hand."""
        return training.network_of(self.model, setting.shape, setting.labels)

    def first(self, setting: Setting) -> Floats32:
        """Return the parameters that everyone starts from."""
        return self.network(setting).init(Stream(setting.seed).at("model"))

    def due(self, rounds: int) -> bool:
        """Say whether models are tested after so many rounds."""
        return rounds % self.evaluate_every == 0 or rounds == self.rounds

    def evaluated(
        self, setting: Setting, public: Arrays, callback: str | None = None
    ) -> dict[str, pa.RecordBatch]:
        """Return how the common model does on held-out samples, as stream `learning`."""
        return {"learning": training.learning_row(self.network(setting), setting, public, callback)}

    @abstractmethod
    def passes(self, setting: Setting) -> Passes:
        """Return what a client computes for one round."""

    # Of the protocol.

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return the number of parameters."""
        return training.network_of(self.model, shape, labels).size

    def work(self, setting: Setting) -> tuple[Work, ...]:
        """Return gradients of some clients, and their randomizing."""
        gradients, samples = self.passes(setting)
        clients = max(1, TILE // samples)
        made = partial(_gradients, self.network(setting), self.first(setting), clients, setting)
        found = Work(partial(made, samples), clients / gradients)
        if setting.mechanism.inner_steps:
            return (found,)
        values = np.zeros((TILE, setting.mechanism.domain.width))
        noise = Stream(0).clients(np.arange(TILE))
        randomizer = Randomizer(setting.mechanism, self.sums_cut)
        return found, Work(partial(randomizer, values, noise), TILE / self.values)

    @property
    def values(self) -> int:
        """How many values a client reports in a round."""
        return 1

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse data without labels."""
        if not isinstance(data, Labelled):
            raise InputError(f"population.data: task '{self.kind}' trains on labelled samples")

    def estimate(self, setting: Setting, public: Arrays) -> Estimate | None:
        """Return nothing: the answer is a model, and how good it is is in stream `learning`."""
        return None

    def files(self, setting: Setting, state: Arrays) -> dict[str, Arrays]:
        """Return the model as named tensors."""
        theta = state["theta"].astype(np.float32)
        return {"model/last": dict(self.network(setting).named(theta))}

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return how many samples of each class the clients hold, and how many clients they are."""
        return held_labels(data, setting.labels)

    def closing(self, setting: Setting, public: Arrays) -> dict[str, pa.RecordBatch]:
        """Test the last model, if that was not done."""
        return {} if self.due(int(public["rounds"])) else self.evaluated(setting, public)


def _gradients(
    network: Network, theta: Floats32, clients: int, setting: Setting, samples: int
) -> None:
    """Compute gradients as clients do, of samples that are nobody's."""
    shape = (clients, samples)
    own = local.Own(
        np.full((*shape, *setting.shape[1:]), 0.5, np.float32),
        np.zeros(shape, np.int64),
        np.full(shape, 1.0 / samples, np.float32),
    )
    local.slope(network, theta, own)
