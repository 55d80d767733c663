"""What all tasks that train models share."""

from abc import abstractmethod
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from raydp_sim.datasets.labelled import Chosen, Examples, Labelled
from raydp_sim.errors import InputError
from raydp_sim.kernels.types import Floats32
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.models import MODELS
from raydp_sim.models.base import Classifier, Network
from raydp_sim.models.linear import Linear
from raydp_sim.random import Stream
from raydp_sim.registry import piece
from raydp_sim.tasks.base import Arrays, Ask, Estimate, Floats, Planned, Setting, Task, Truth, Work
from raydp_sim.tasks.learning import local, runaway, training, watching
from raydp_sim.tasks.learning.callbacks import Callback
from raydp_sim.tasks.learning.evaluation import score
from raydp_sim.tasks.learning.samples import held_labels
from raydp_sim.tasks.learning.seen import Seen

# Of what is timed before a run: samples that a model is tested on, and reports.
_TESTED, _REPORTS = 512, 256


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

    The state's and the public `theta` is the model that all have in common, `rounds` counts those
    in which somebody reported. Whoever trains calls `begun` in `init` and `closed` in `step`.

    Fields:
        model: what is trained.
        evaluate_every: rounds from one evaluation on held-out samples to the next; the last one is
            always evaluated.
        patience: evaluations without a better accuracy on the validation split after which the run
            ends; never by default. All rounds are then charged from the first on.
        callback: import path of a function (network, parameters, test samples) -> numbers by name,
            which become columns of stream `learning`.
    """

    adaptive = True
    sums_cut = False
    # Where the common model's step size is given, for whoever has to lower it.
    step_field: ClassVar[str] = "task.step_size"
    model: Annotated[Classifier, *piece(MODELS)] = Linear()
    evaluate_every: Annotated[int, Field(ge=1)] = 1
    patience: Annotated[int, Field(ge=1)] | None = None
    callback: Callback | None = None

    @property
    def open_ended(self) -> bool:  # type: ignore[override]  # here a field decides
        """Whether what was released may end the run."""
        return self.patience is not None

    def network(self, setting: Setting) -> Network:
        """Return the model for the data at hand."""
        return training.network_of(self.model, setting.shape, setting.labels)

    def first(self, setting: Setting) -> Floats32:
        """Return the parameters that everyone starts from."""
        return self.network(setting).init(Stream(setting.seed).at("model"))

    def due(self, rounds: int) -> bool:
        """Say whether models are tested after so many rounds."""
        return rounds % self.evaluate_every == 0 or rounds == self.rounds

    def evaluated(self, setting: Setting, public: Arrays) -> dict[str, pa.RecordBatch]:
        """Return how the common model does on held-out samples, as stream `learning`."""
        network = self.network(setting)
        return {"learning": training.learning_row(network, setting, public, self.callback)}

    def begun(self, setting: Setting, theta: Floats | Floats32, **more: Any) -> Arrays:
        """Return a state before the first round.

        Args:
            setting: of the run.
            theta: the parameters to start from.
            more: what else the state has.
        """
        counted = {"theta": theta, "rounds": np.zeros((), np.int64)}
        return {**counted, **more, **watching.nothing_seen(setting, theta.astype(np.float32))}

    def closed(
        self, setting: Setting, state: Arrays, theta: Floats | Floats32, rate: float, **more: Any
    ) -> tuple[Arrays, Arrays]:
        """Return the state after a round, and what is made public of it.

        Args:
            setting: of the run.
            state: before the round.
            theta: the parameters after it.
            rate: the step size.
            more: what else the next state has.

        Raises:
            RunError: the model has run away; names the round and what to change.
        """
        rounds, single = int(state["rounds"]) + 1, theta.astype(np.float32)
        runaway.refuse_parameters(theta, rounds, rate, self.step_field)
        seen, looks = watching.kept(state), dict[str, Any]()
        if self.due(rounds):
            seen, looks = watching.looked(self.network(setting), setting, single, rounds, seen)
        counted = {"rounds": np.asarray(rounds)}
        public = {"theta": single, **counted, "step_size": np.asarray(rate), **looks}
        return {"theta": theta, **counted, **more, **seen}, public

    def trained(
        self, setting: Setting, public: Arrays, truth: Truth, **more: float
    ) -> dict[str, pa.RecordBatch]:
        """Return how training went, and how the model does if it is time to look.

        Args:
            setting: of the run.
            public: what the lead reader made public.
            truth: of the release; `seen` begins as `training.Seen` says.
            more: columns of stream `training`.

        Raises:
            RunError: it does not converge.
        """
        rounds = int(public["rounds"])
        assert truth.seen is not None
        runaway.refuse_astray(Seen.of(truth.seen), setting.labels, rounds, self.step_field)
        rows = {"training": training.training_row(rounds, truth, more)}
        return rows | (self.evaluated(setting, public) if self.due(rounds) else {})

    def accounts(self, state: Arrays) -> bool:
        """Work epsilon out where the model is tested: the two are shown together."""
        return self.due(int(state["rounds"]) + 1)

    @abstractmethod
    def passes(self, setting: Setting) -> Passes:
        """Return what a client computes for one round."""

    # Of the protocol.

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return one kind of release; refuse to stop early where there is nothing to look at."""
        watching.refuse_blind(setting, self.patience)
        return super().plan(setting)

    def told(self, state: Arrays) -> Arrays:
        """Return what is broadcast: the model and how many rounds there were."""
        return {"theta": state["theta"].astype(np.float32), "rounds": state["rounds"]}

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Send the model; end the run if nothing becomes better."""
        if watching.enough(state, self.patience):
            return None
        return Ask(setting.mechanism, self.told(state))

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return the number of parameters."""
        return training.network_of(self.model, shape, labels).size

    def tile(self, setting: Setting) -> int:
        """Return how many rows the model is best handed."""
        return self.network(setting).tile

    def work(self, setting: Setting) -> tuple[Work, ...]:
        """Return gradients of some clients, their randomizing, and tests of the model."""
        gradients, samples = self.passes(setting)
        # As many as share a call in a run: what a call takes by itself is a part of it.
        network, theta = self.network(setting), self.first(setting)
        clients = network.tile if samples == 1 else local.together(samples)
        made = partial(_gradients, network, theta, clients, setting, samples)
        found = [Work(made, reports=clients / gradients)]
        held = setting.held_out
        for some in () if held is None else (held.test(), held.validation()):
            if some is not None and len(some.labels):
                few = Examples(some.features[:_TESTED], some.labels[:_TESTED])
                often = self.evaluate_every * len(few.labels) / len(some.labels)
                found.append(Work(partial(score, network, theta, few), rounds=often))
        if not setting.mechanism.inner_steps:
            values = np.zeros((_REPORTS, setting.mechanism.domain.width), np.float32)
            noise = Stream(0).clients(np.arange(_REPORTS))
            randomizer = Randomizer(setting.mechanism, self.sums_cut)
            found.append(Work(partial(randomizer, values, noise), reports=_REPORTS / self.values))
        return tuple(found)

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
        """Return the last model, and the best one by the validation split, as named tensors."""
        network, last = self.network(setting), state["theta"].astype(np.float32)
        kept = {"last": last, **({"best": state["best"]} if "best" in state else {})}
        return {f"model/{name}": dict(network.named(theta)) for name, theta in kept.items()}

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return how many samples of each class the clients hold, and how many clients they are."""
        return held_labels(data, setting.labels)

    def closing(self, setting: Setting, public: Arrays) -> dict[str, pa.RecordBatch]:
        """Evaluate the last model, if that was not done."""
        rounds, theta = int(public["rounds"]), public["theta"].astype(np.float32)
        if self.due(rounds):
            return {}
        # A row has the columns of those before it, so that the validation split is looked at too.
        before = watching.nothing_seen(setting, theta)
        _, looks = watching.looked(self.network(setting), setting, theta, rounds, before)
        return self.evaluated(setting, {**public, **looks})


def _gradients(
    network: Network, theta: Floats32, clients: int, setting: Setting, samples: int
) -> None:
    """Compute gradients as clients do, of samples that are nobody's."""
    shape = (clients, samples)
    grey = np.full((1, *setting.shape[1:]), 0.5, np.float32)
    chosen = Chosen(grey, np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    network.slope(theta, chosen, np.full(shape, 1.0 / samples, np.float32))
