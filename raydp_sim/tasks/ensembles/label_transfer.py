"""Labels for public samples, by the private majority of teachers with samples of their own."""

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.datasets.labelled import Examples, Labelled
from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.darrm import Darrm
from raydp_sim.models import MODELS
from raydp_sim.models.base import Classifier, Network
from raydp_sim.models.linear import Linear
from raydp_sim.random import ClientStream, Stream
from raydp_sim.registry import piece
from raydp_sim.tasks.base import Arrays, Floats, Planned, Setting
from raydp_sim.tasks.ensembles.majority import Majority
from raydp_sim.tasks.ensembles.teachers import Training, cost, trained, votes


class LabelTransfer(Majority):
    """Every voter trains a teacher on its own samples; teachers vote on held-out samples.

    Jiang 2025 (004), section 3.7.2: two classes, a voter's samples are its share of the training
    set, and queries are drawn from the test samples of both. Teachers are trained once, by DP-SGD
    with the accountant of this project, which must stay within mechanism.vote_epsilon; so
    mechanism.votes is `fixed`, and `records: disjoint` if no sample is dealt twice. Neighbours of a
    teacher add or remove one sample. With 'gnmax' teachers are trained without noise.

    Fields:
        classes: the two classes that are told apart; a vote of 1 is for the second.
        model: of a teacher.
        epochs: of a teacher's training.
        batch: samples of a step, on average.
        step_size: of a step.
        clip: l2 norm to which gradients are clipped.
        noise_multiplier: of a step's noise; 0 trains without privacy, for 'gnmax' only.
        draw: seed of the queries, which are public.
    """

    kind: ClassVar[str] = "label-transfer"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 3, "classes": [0, 1], "batch": 8, "noise_multiplier": 2.0},
            "trust": "central",
            "population": {
                "clients": 41,
                "data": {
                    "kind": "synthetic-digits",
                    "n": 2500,
                    "side": 4,
                    "test": 100,
                    "points": 10,
                    "only": [0, 1],
                },
            },
            "mechanism": {
                "kind": "darrm",
                "vote_epsilon": 10.0,
                "vote_delta": 1e-8,
                "epsilon": 20.0,
                "delta": 2e-8,
                "votes": "fixed",
                "records": "disjoint",
            },
        },
    )
    classes: tuple[int, int] = (0, 1)
    model: Annotated[Classifier, *piece(MODELS)] = Linear()
    epochs: Annotated[float, Field(gt=0)] = 5.0
    batch: Annotated[int, Field(ge=1)] = 32
    step_size: Annotated[float, Field(gt=0)] = 0.1
    clip: Annotated[float, Field(gt=0)] = 1.0
    noise_multiplier: Annotated[float, Field(ge=0)] = 12.0
    draw: Annotated[int, Field(ge=0, lt=2**63)] = 0

    @property
    def training(self) -> Training:
        """How teachers are trained."""
        return Training(self.epochs, self.batch, self.step_size, self.clip, self.noise_multiplier)

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return the queries; refuse votes that cost more than the mechanism takes them to."""
        mechanism = setting.mechanism
        if isinstance(mechanism, Darrm):
            if mechanism.votes != "fixed":
                remedy = "teachers are trained once and answer all queries; say fixed"
                raise bad_field("mechanism.votes", mechanism.votes, remedy)
            samples = setting.shape[0]
            spent = cost(self.training, samples, mechanism.vote_delta)
            if spent > mechanism.vote_epsilon:
                remedy = (
                    f"a teacher of {samples} samples costs {spent:.4g} at {mechanism.vote_delta:g}"
                    "; raise it, or task.noise_multiplier"
                )
                raise bad_field("mechanism.vote_epsilon", mechanism.vote_epsilon, remedy)
        return super().plan(setting)

    def questions(self, setting: Setting) -> int:
        """Return how many test samples there are of the two classes."""
        return len(self._pool(setting).labels)

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse what no teacher can be trained on, and more queries than there are samples."""
        if not isinstance(data, Labelled) or setting.held_out is None:
            raise InputError("population.data: teachers are trained on labelled samples")
        if len(np.unique(data.sizes)) > 1:
            raise InputError("population.data: teachers must hold equally many samples")
        found = np.unique(data.classes[data.index])
        if not set(found.tolist()) <= set(self.classes):
            remedy = f"samples are of classes {found.tolist()}; say population.data.only"
            raise bad_field("task.classes", list(self.classes), remedy)
        if self.rounds > self.questions(setting):
            remedy = f"there are {self.questions(setting)} test samples of these classes"
            raise bad_field("task.rounds", self.rounds, remedy)

    def memory(self, setting: Setting, data: Any, stream: ClientStream) -> Arrays:
        """Train the teachers, and keep their votes on the queries."""
        network, queries = self._network(setting), self._queries(setting)
        out = np.empty((len(data), self.rounds), np.uint8)
        for row, voter in enumerate(stream.ids):
            features, labels = data[row : row + 1].take(np.arange(data.sizes[row])[None])
            own = stream.stream.at("teacher", int(voter))
            right = (labels[0] == self.classes[1]).astype(np.int64)
            theta = trained(network, self.training, features[0], right, own)
            out[row] = votes(network, theta, queries.features)
        return {"votes": out}

    def cast(self, data: Any, memory: Arrays, query: int, stream: ClientStream) -> Floats:
        """Return the teachers' votes."""
        return memory["votes"][:, query].astype(np.float64)

    def right(self, setting: Setting, data: Any) -> Floats:
        """Return the classes of the queries."""
        right = (self._queries(setting).labels == self.classes[1]).astype(np.float64)
        return np.broadcast_to(right, (len(data), self.rounds))

    def _network(self, setting: Setting) -> Network:
        return self.model.network(setting.shape[1:], 2)

    def _pool(self, setting: Setting) -> Examples:
        """Return the test samples of the two classes."""
        assert setting.held_out is not None
        whole = setting.held_out.test()
        own = np.isin(whole.labels, self.classes)
        return Examples(whole.features[own], whole.labels[own])

    def _queries(self, setting: Setting) -> Examples:
        """Draw the queries; they are public, and the same in all repetitions."""
        pool = self._pool(setting)
        draw = Stream(self.draw).at("queries").generator()
        taken = draw.permutation(len(pool.labels))[: self.rounds]
        return Examples(pool.features[taken], pool.labels[taken])
