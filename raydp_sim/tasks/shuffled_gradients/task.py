"""Gradient steps along private records, one each, in an order that the shuffler draws."""

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.datasets.public_private import PublicRecords
from raydp_sim.errors import RunError, bad_field
from raydp_sim.mechanisms.base import Counts, Mechanism, Positive
from raydp_sim.mechanisms.central_epochs import CentralEpochs
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.metrics.streams import released, simulation_only
from raydp_sim.privacy.events import Release
from raydp_sim.random import ClientStream, Stream
from raydp_sim.stream.batches import Reports
from raydp_sim.tasks.base import (
    Answer,
    Arrays,
    Ask,
    Batch,
    Estimate,
    Floats,
    Formed,
    Planned,
    Setting,
    Task,
    Truth,
)
from raydp_sim.tasks.mean import exact_mean, total_of
from raydp_sim.tasks.shuffled_gradients import accounting, checks, regularisers
from raydp_sim.tasks.shuffled_gradients.epoch import steps
from raydp_sim.tasks.shuffled_gradients.losses import LossName, check_records
from raydp_sim.tasks.shuffled_gradients.objective import Problem
from raydp_sim.tasks.shuffled_gradients.plan import Algorithm, Epoch, epochs, private_epochs
from raydp_sim.tasks.shuffled_gradients.reference import accountants
from raydp_sim.tasks.shuffled_gradients.regularisers import RegulariserName
from raydp_sim.tasks.shuffled_gradients.trials import OrderName


class ShuffledGradients(Task):
    """Minimise a mean loss over private records, with the help of public ones (004, chapter 4).

    Clients send their record to a trusted learner once. Every release is an epoch: the shuffler
    draws the order of the private records, the learner takes one noisy step along each record of
    the epoch, and the proximal map of the regulariser follows once. Only the last iterate is
    released unless said otherwise.

    Fields:
        rounds: K, epochs.
        algorithm: `plain`, ShuffleG without privacy; `private`, DP-ShuffleG; `priv-pub`, private
            epochs first; `pub-priv`, public ones first; `interleaved`, both in every epoch;
            `public-only`.
        order: of private records: `ig` as they come, `so` shuffled once, `rr` anew in every epoch.
        loss: `mean` |x - q|^2/2; `ridge` (<x, a> - y)^2; `logistic`, y in {0, 1}. A target is the
            last number of a record.
        regulariser: `ball` of a radius, `l2` weight/2 |x|^2, or `l1` weight |x|_1.
        weight: its radius or factor.
        step_size: eta; at most 2/L* for amplification by iteration.
        share: of what is private: of epochs, or of an epoch's steps.
        released: `last`, the final iterate alone; `epochs`, the iterate after each, which the
            accountants here cover too. Iterates inside of epochs are never released.
        public_noise: whether public steps of `interleaved` have noise too. They must: its guarantee
            rests on it.
        start: where it begins: `zero`, or `small`, 0.01 N(0, I).
    """

    kind: ClassVar[str] = "shuffled-gradients"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {
                "rounds": 3,
                "algorithm": "pub-priv",
                "loss": "ridge",
                "regulariser": "l2",
                "weight": 0.1,
                "step_size": 0.01,
                "released": "epochs",
            },
            "trust": "central",
            "population": {
                "clients": 41,
                "data": {"kind": "shifted-standin", "like": "crime", "records": 41},
            },
            "mechanism": {
                "kind": "central-epochs",
                "radius": 6.0,
                "gradient_clip": 2.0,
                "accountant": "secret-order",
                "target": {"epsilon": 4.0, "delta": 1e-6},
            },
        },
        {
            "task": {
                "rounds": 3,
                "algorithm": "interleaved",
                "order": "ig",
                "loss": "mean",
                "regulariser": "ball",
                "weight": 10.0,
                "step_size": 0.05,
            },
            "trust": "central",
            "population": {
                "clients": 41,
                "data": {"kind": "shifted-standin", "records": 41, "dimension": 3},
            },
            "mechanism": {
                "kind": "central-epochs",
                "radius": 5.0,
                "gradient_clip": 2.0,
                "target": {"epsilon": 4.0, "delta": 1e-6},
            },
        },
    )
    adaptive = True
    open_ended = False
    sums_cut = False
    keeps_records = True
    algorithm: Algorithm = "private"
    order: OrderName = "rr"
    loss: LossName
    regulariser: RegulariserName
    weight: Positive
    step_size: Positive
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    released: Literal["last", "epochs"] = "last"
    public_noise: bool = True
    start: Literal["zero", "small"] = "zero"

    # Before the run.

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return the length of a record, its target included."""
        return shape[-1]

    def named(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the features."""
        return given if self.loss == "mean" else given[:-1]

    def epochs(self, records: int) -> tuple[Epoch, ...]:
        """Return the epochs over so many records."""
        try:
            return epochs(self.algorithm, self.rounds, records, self.share)
        except ValueError as error:
            raise type(error)(f"task.{error}") from None

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return the epochs, those alike together; refuse what could not be played."""
        plan = self.epochs(setting.clients)
        noise = checks.check_mechanism(self.algorithm, setting.mechanism, setting.trust.name)
        checks.check_steps(self.loss, self.order, self.step_size, noise, plan)
        checks.check_public(setting.held_out, plan, setting.clients)
        if isinstance(setting.held_out, PublicRecords):
            rows = self._problem(setting.held_out.records[: setting.clients]).features
            step, known = self.step_size, (plan, setting.clients, rows)
            checks.check_public_steps(self.loss, step, noise, *known)
        if self.loss != "mean" and noise.on_out_of_range == "clip":
            remedy = "it would scale a record's target too; refuse, or scale features beforehand"
            raise bad_field("mechanism.on_out_of_range", noise.on_out_of_range, remedy)
        if self.algorithm == "interleaved" and not self.public_noise:
            remedy = "later public steps hide private ones by their noise; leave it out"
            raise bad_field("task.public_noise", self.public_noise, remedy)
        found: list[Planned] = []
        for epoch in plan:
            ask = self._ask(setting, epoch, held=bool(found))
            if found and found[-1].ask.mechanism == ask.mechanism:
                found[-1] = found[-1]._replace(times=found[-1].times + 1)
            else:
                found.append(Planned(ask, 1))
        return tuple(found)

    def calibrated(self, setting: Setting) -> Mechanism | None:
        """Return the mechanism with the least noise that meets its target in these epochs."""
        given = setting.mechanism
        if not isinstance(given, CentralEpochs) or given.target is None:
            return given if isinstance(given, CentralEpochs) else None
        plan, bound = self.epochs(setting.clients), given.bound
        checks.check_mechanism(self.algorithm, given, setting.trust.name)
        checks.check_steps(self.loss, self.order, self.step_size, given, plan)
        sigma = bound  # of no step, where nothing private is used
        if private_epochs(plan):
            sigma = accounting.calibrated(
                given.target.epsilon,
                given.target.delta,
                2.0 * bound if given.conservative else bound,
                plan,
                setting.clients,
                given.accountant == "secret-order",
                once=self.order == "so",
                every_step=given.accountant == "every-step",
            )
        known = {"sigma": sigma * (1.0 + 1e-11), "target": None}
        return CentralEpochs.model_validate({**given.model_dump(), **known})

    def drawn_order(self, release: int) -> int | None:
        """Return the release's own order, or the first one where there is but one."""
        return None if self.order == "ig" else release if self.order == "rr" else 0

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse records outside the ball, and targets that the loss has no use for."""
        setting.mechanism.admit(data, ids)
        self._problem(np.asarray(data))

    # The protocol.

    def init(self, setting: Setting) -> Arrays:
        """Start without records."""
        width = setting.shape[-1] - (self.loss != "mean")
        point = np.zeros(width)
        if self.start == "small":
            point = 0.01 * Stream(setting.seed).at("start").generator().standard_normal(width)
        return {"epoch": np.zeros((), np.int64), "point": point}

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Ask for records first; after that nobody is asked again."""
        epoch = int(state["epoch"])
        if epoch >= self.rounds:
            return None
        held = "records" in state
        return self._ask(setting, self.epochs(setting.clients)[epoch], held)

    def accounts(self, state: Arrays) -> bool:
        """Say that epsilon is worked out where something is released."""
        return self.released == "epochs" or int(state["epoch"]) == self.rounds - 1

    def client(
        self,
        setting: Setting,
        ask: Ask,
        data: Any,
        memory: Arrays,
        slots: NDArray[np.int64] | None,
        randomizer: Randomizer,
        stream: ClientStream,
    ) -> Answer:
        """Send the record."""
        return Answer(data, memory=memory)

    def zero(self, setting: Setting, ask: Ask, reader: int) -> Any:
        """Return no records, and no order."""
        return {"parts": (), "order": None}

    def fold(self, setting: Setting, ask: Ask, reader: int, accumulator: Any, batch: Batch) -> Any:
        """Keep records with who sent them."""
        assert isinstance(batch, Reports)  # the learner is trusted, and there is no other way
        part = (
            batch.senders.listed().client,
            np.array(batch.payload).reshape(len(batch.payload), -1),
        )
        return {**accumulator, "parts": (*accumulator["parts"], part)}

    def ordered(self, accumulator: Any, places: NDArray[np.int64]) -> Any:
        """Keep the order that the shuffler says."""
        return {**accumulator, "order": places}

    def step(
        self,
        setting: Setting,
        ask: Ask,
        reader: int,
        state: Arrays,
        accumulator: Any,
        formed: Formed,
        stream: Stream,
    ) -> tuple[Arrays, Arrays]:
        """Play an epoch, and release its end if that is to be."""
        state = state if "records" in state else {**state, **self._received(accumulator["parts"])}
        private, number = self._problem(state["records"]), int(state["epoch"])
        epoch = self.epochs(len(private.features))[number]
        places = accumulator["order"]
        if self.order == "ig":
            places = np.arange(len(private.features))
        if places is None or len(places) != len(private.features):
            raise RunError("the shuffler gave no order of the records; nothing was released")
        point = self._played(setting, ask, private, epoch, places, state["point"], stream)
        after = {**state, "epoch": np.asarray(number + 1), "point": point}
        sigma = _sigma(ask, epoch)
        public = {
            "epoch": np.array([number + 1, epoch.private, len(places) - epoch.private]),
            "sigma": np.array([sigma]),
            # Of the raw records, for the analyst of a simulation: rows of it are marked so.
            "only_simulated": np.array([private.value(point), float(state["least"])]),
        }
        if self.released == "epochs" or number + 1 == self.rounds:
            public["estimate"] = point
        return after, public

    def event(self, setting: Setting, ask: Ask, formed: Formed) -> Release | None:
        """Return the epoch as what it is; of records without noise nothing is known."""
        if not isinstance(ask.mechanism, CentralEpochs):
            return None
        together = private_epochs(self.epochs(formed.reports)) if self.order == "so" else None
        return ask.mechanism.epoch(formed.reports, together)

    def estimate(self, setting: Setting, public: Arrays) -> Estimate | None:
        """Return the iterate, where it is released; its error depends on the loss."""
        if "estimate" not in public:
            return None
        values = np.asarray(public["estimate"], np.float64)
        return Estimate(values, np.full(len(values), np.nan))

    def files(self, setting: Setting, state: Arrays) -> dict[str, Arrays]:
        """Return what was learned, once it may be seen."""
        if self.released == "last" and int(state["epoch"]) < self.rounds:
            return {}
        return {"model/last": {"point": state["point"]}}

    # For the analyst.

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return the exact sum of the records, and how many there are."""
        return total_of(setting.mechanism, np.asarray(data))

    def estimand(self, setting: Setting, truth: Counts) -> Floats | None:
        """Return the minimiser, where it follows from the mean of the records."""
        if self.loss != "mean" or not int(truth[-1]):
            return None
        mean = exact_mean(setting.mechanism, truth)
        return regularisers.prox(self.regulariser, self.weight, mean, 1.0, 1)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return the objective on private records, what the epoch was, and what it costs."""
        number, private, others = (int(value) for value in public[0]["epoch"])
        value, least = public[0]["only_simulated"]
        found = {
            "errors": simulation_only({"objective": value, "excess_risk": value - least}),
            "epochs": released(
                {
                    "epoch": number,
                    "private_steps": private,
                    "public_steps": others,
                    "sigma": float(public[0]["sigma"][0]),
                    "step_size": self.step_size,
                    "shown": "estimate" in public[0],
                }
            ),
        }
        noise = setting.mechanism
        if number == self.rounds and isinstance(noise, CentralEpochs):
            records = private + others
            plan = self.epochs(records)
            columns = accountants(noise, plan, records, setting.delta, self.order)
            found["epoch-accountants"] = released(columns)
        return found

    # Parts.

    def _ask(self, setting: Setting, epoch: Epoch, held: bool) -> Ask:
        """Ask for all records, or for nothing where they are held; the epoch says what is used."""
        mechanism = setting.mechanism
        if isinstance(mechanism, CentralEpochs):
            share = 0.0 if epoch.private == 0 else 1.0
            if 0 < epoch.private < setting.clients:
                share = self.share
            mechanism = mechanism.model_copy(update={"share": share})
        return Ask(mechanism, minimum=setting.clients, held=held)

    def _problem(self, records: Floats) -> Problem:
        features, targets = (records, None) if self.loss == "mean" else _split(records)
        known = check_records(self.loss, features, targets)
        return Problem(self.loss, self.regulariser, self.weight, *known)

    def _received(self, parts: Any) -> Arrays:
        """Return the records in the order of their clients, and the least value over them."""
        ids = np.concatenate([each for each, _ in parts])
        records = np.concatenate([rows for _, rows in parts])[np.argsort(ids, kind="stable")]
        return {"records": records, "least": np.asarray(self._problem(records).least()[1])}

    def _played(
        self,
        setting: Setting,
        ask: Ask,
        private: Problem,
        epoch: Epoch,
        places: NDArray[np.int64],
        point: Floats,
        stream: Stream,
    ) -> Floats:
        """Return the iterate after an epoch (Algorithm 3)."""
        n, noise = len(private.features), None
        clip = getattr(ask.mechanism, "gradient_clip", None) or np.inf
        if self.algorithm == "public-only":
            clip = np.inf  # nothing private is there to be hidden
        if sigma := _sigma(ask, epoch):
            noise = stream.generator().standard_normal((n, len(point)))
            noise *= sigma
        first = None if noise is None else noise[: epoch.private]
        along = (private.features, private.targets, places[: epoch.private])
        x = steps(self.loss, point, *along, self.step_size, clip, first)
        if epoch.private < n:
            held = setting.held_out
            assert isinstance(held, PublicRecords)  # the plan has seen to it
            public = self._problem(held.records)
            rest = None if noise is None else noise[epoch.private :]
            along = (public.features, public.targets, np.arange(n - epoch.private))
            x = steps(self.loss, x, *along, self.step_size, clip, rest)
        return regularisers.prox(self.regulariser, self.weight, x, self.step_size, n)


def _sigma(ask: Ask, epoch: Epoch) -> float:
    """Return the noise of an epoch's steps; 0 if they have none."""
    noise = ask.mechanism
    return noise.need_sigma() if epoch.noisy and isinstance(noise, CentralEpochs) else 0.0


def _split(records: Floats) -> tuple[Floats, Floats]:
    return np.ascontiguousarray(records[:, :-1]), np.ascontiguousarray(records[:, -1])
