"""Tasks that break one promise each, and two good ones that use most of what the protocol has."""

from typing import ClassVar

import numpy as np
import pyarrow as pa

from raydp_sim.metrics.streams import released, simulation_only
from raydp_sim.privacy import events as ev
from raydp_sim.tasks.base import Answer, Ask, Planned, Task
from raydp_sim.tasks.mean import Mean
from tests.actors import remembering
from tests.tasks import examples

LOCAL = {
    "task": {"rounds": 3},
    "trust": "local",
    "mechanism": {"kind": "laplace", "radius": 3.0, "epsilon_local": 1.0},
}
COIN = {
    "task": {"rounds": 2},
    "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
}


class Honest(Mean):
    """Keeps every promise; those below change one thing each."""

    kind: ClassVar[str] = "honest"
    examples = (LOCAL,)


class Pair(examples.Pair):
    """Two readers."""

    examples = (LOCAL,)


class Arms(examples.Arms):
    """Slots, and a stream that is released."""

    examples = ({**COIN, "task": {"rounds": 2, "slots": (4, 8, 12)}},)


class Keeping(remembering.Remembering):
    """Clients with state."""

    examples = (LOCAL,)


class NoMethods(Task):
    kind: ClassVar[str] = "no-methods"
    adaptive = False

    def init(self, setting):
        return {}

    def truth(self, setting, data):
        return np.zeros(1, np.int64)


class SometimesAdaptive(Honest):
    adaptive = "sometimes"


class ListState(Honest):
    def init(self, setting):
        return [0.0]


class BareState(Honest):
    """Makes a number public that is no array."""

    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        after, public = super().step(setting, ask, reader, state, accumulator, formed, stream)
        return after, {**public, "n": formed.reports}


class Crashing(Honest):
    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        return state["nowhere"], {}


class Lossy(Honest):
    """Is read back otherwise than it was written."""

    scale: float = 1.0

    def model_post_init(self, context):
        object.__setattr__(self, "scale", self.scale / 2)


class Outside(Honest):
    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(data * 10.0)


class LateOutside(Honest):
    """Only its second ask is answered from outside the domain."""

    adaptive = True

    def ask(self, setting, state):
        return Ask(setting.mechanism, {"factor": 1.0 + 9.0 * state["releases"]})

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(data * ask.broadcast["factor"])


class Centred(Honest):
    """Takes the mean of whoever shares the call from its values."""

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(0.5 * (data - data.mean(axis=0)))


class MeanTruth(Honest):
    def truth(self, setting, data):
        found = super().truth(setting, data)
        return found // max(1, len(data))


class FloatSums(Honest):
    """Adds floats, so that the order counts."""

    def zero(self, setting, ask, reader):
        return np.zeros(setting.shape[-1])

    def fold(self, setting, ask, reader, accumulator, batch):
        for row in batch.payload:
            accumulator = accumulator + row
        return accumulator

    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        after = {**state, "releases": state["releases"] + 1}
        return after, {"estimate": accumulator, "running": accumulator}


class Erasing(Pair):
    """Its first reader leaves nothing to the second."""

    def fold(self, setting, ask, reader, accumulator, batch):
        after = super().fold(setting, ask, reader, accumulator, batch)
        if reader == 0:
            batch.payload[:] = 0
        return after


class Peeking(Honest):
    """Its reader looks at what clients hold, by the back door."""

    held: ClassVar[list[float]] = []

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        self.held[:] = [float(np.asarray(data).sum())]
        return Answer(np.array(data))

    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        after, public = super().step(setting, ask, reader, state, accumulator, formed, stream)
        return after, {**public, "total": np.array(self.held)}


class Understating(Honest):
    """Asks with twice the loss that it plans."""

    adaptive = True

    def plan(self, setting):
        return (Planned(Ask(self._half(setting)), self.rounds),)

    def _half(self, setting):
        loss = setting.mechanism.need_epsilon() / 2
        return setting.mechanism.model_copy(update={"epsilon_local": loss})


class TwiceAsOften(Honest):
    """Plans one release and makes three."""

    def plan(self, setting):
        return (Planned(Ask(setting.mechanism), 1),)


class OtherCohort(Honest):
    adaptive = True

    def ask(self, setting, state):
        return Ask(setting.mechanism, cohort=20)


class ClaimsSampling(Honest):
    """Calls every batch a uniform sample, whoever was in it."""

    examples = (COIN,)

    def width(self, shape, labels):
        return 1

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer((np.asarray(data)[:, :1] > 0).astype(float))

    def event(self, setting, ask, formed):
        return ev.SubsampledShuffle(ask.mechanism.losses()[0], formed.clients, formed.reports)


class Unmarked(Honest):
    def rows(self, setting, ask, public, truth):
        return {"errors": pa.record_batch({"n": pa.array([truth.reports])})}


class ReleasesTheTruth(Honest):
    def rows(self, setting, ask, public, truth):
        return {"sums": released({"sum": truth.cohort})}


class Undecided(Honest):
    """Draws from nowhere."""

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(0.5 * np.array(data), seen=np.random.default_rng().integers(1 << 60, size=1))

    def rows(self, setting, ask, public, truth):
        return {"errors": simulation_only({"drawn": truth.seen})}


class CountsCalls(Honest):
    """Counts how often its clients are called, which depends on how many share a call."""

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(0.5 * np.array(data), seen=np.ones(1, np.int64))

    def rows(self, setting, ask, public, truth):
        return {"errors": simulation_only({"calls": truth.seen})}


class Forgetful(Honest):
    """Keeps a count beside its state, which no checkpoint knows of."""

    steps: ClassVar[dict[str, int]] = {}

    def init(self, setting):
        self.steps["made"] = 0
        return super().init(setting)

    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        after, public = super().step(setting, ask, reader, state, accumulator, formed, stream)
        self.steps["made"] += 1
        return after, {**public, "made": np.array(self.steps["made"])}

    def rows(self, setting, ask, public, truth):
        return {"made": released({"made": public[0]["made"]})}
