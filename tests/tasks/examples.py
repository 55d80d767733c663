"""Small tasks of a user's own, one for each thing that the protocol lets a task do."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from raydp_sim.datasets.base import Dataset
from raydp_sim.mechanisms.shuffled import with_loss
from raydp_sim.metrics.streams import released, simulation_only
from raydp_sim.privacy import events as ev
from raydp_sim.tasks.base import Answer, Ask, Planned
from raydp_sim.tasks.charging import amplifies, usual_event
from raydp_sim.tasks.mean import Mean


class Sized(Mean):
    """Asks for batches of its own sizes, each with a smallest size of its own."""

    kind: ClassVar[str] = "sized"
    adaptive = True
    sizes: tuple[int, ...] = (10, 20, 15)
    least: tuple[int | None, ...] = (None, None, None)

    def _ask(self, setting, release):
        place = release % len(self.sizes)
        return Ask(setting.mechanism, cohort=self.sizes[place], minimum=self.least[place])

    def ask(self, setting, state):
        return self._ask(setting, int(state["releases"]))

    def plan(self, setting):
        return tuple(Planned(self._ask(setting, r), 1) for r in range(self.rounds))


class Impatient(Mean):
    """Ends the run after two releases, as one might whose results look good enough."""

    kind: ClassVar[str] = "impatient"
    adaptive = True

    def ask(self, setting, state):
        return None if int(state["releases"]) == 2 else Ask(setting.mechanism)


class Pretending(Impatient):
    """Says that it never ends a run, and does."""

    kind: ClassVar[str] = "pretending"
    open_ended = False


class StandingSize(Mean):
    """Asks once and for all for batches of one size; it is not adaptive."""

    kind: ClassVar[str] = "standing-size"
    size: int = 50

    def ask(self, setting, state):
        return Ask(setting.mechanism, cohort=self.size)

    def plan(self, setting):
        return (Planned(self.ask(setting, {}), self.rounds),)


class Arms(Mean):
    """Gives every client one of several questions, by slot, and counts the answers of each.

    A client of slot j says whether the j-th of its numbers is positive; with `echo`, whether j is
    odd, so that a test can tell which slot the client was shown.
    """

    kind: ClassVar[str] = "arms"
    adaptive = True
    slots: tuple[int, ...] = (4, 8, 12)
    echo: bool = False

    def width(self, shape, labels):
        return 1

    def _ask(self, setting):
        return Ask(setting.mechanism, slots=self.slots)

    def plan(self, setting):
        return (Planned(self._ask(setting), self.rounds),)

    def init(self, setting):
        return {"answers": np.zeros((len(self.slots), 2), np.int64)}

    def ask(self, setting, state):
        return self._ask(setting)

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        chosen = slots % 2 == 1 if self.echo else data[np.arange(len(data)), slots] > 0.0
        return Answer(np.asarray(chosen, float)[:, None], memory=memory)

    def zero(self, setting, ask, reader):
        return np.zeros((len(self.slots), 2), np.int64)

    def fold(self, setting, ask, reader, accumulator, batch):
        after = accumulator.copy()
        np.add.at(after, (batch.slot, batch.payload.astype(np.int64)), 1)
        return after

    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        after = {"answers": state["answers"] + accumulator}
        return after, {"answers": accumulator, "served": np.array(formed.slots)}

    def truth(self, setting, data):
        return np.append((data > 0.0).sum(axis=0), len(data)).astype(np.int64)

    def rows(self, setting, ask, public, truth):
        made = public[0]
        no, yes = made["answers"].T
        slots = np.arange(len(self.slots))
        arms = {"slot": slots, "no": no, "yes": yes, "served": made["served"]}
        return {
            "arms": released(arms),
            "errors": simulation_only({"positive": float(truth.cohort[:-1].sum())}),
        }


class Ending(Mean):
    """Ends the run by itself after a few releases."""

    kind: ClassVar[str] = "ending"
    adaptive = True
    stop: int = 3

    def ask(self, setting, state):
        return Ask(setting.mechanism) if int(state["releases"]) < self.stop else None


class Pair(Mean):
    """Has a second reader that counts messages and keeps a state of its own."""

    kind: ClassVar[str] = "pair"

    def readers(self, setting):
        return ("aggregator", "counter")

    def init(self, setting):
        return {**super().init(setting), "messages": np.zeros((), np.int64)}

    def zero(self, setting, ask, reader):
        return super().zero(setting, ask, reader) if reader == 0 else 0

    def fold(self, setting, ask, reader, accumulator, batch):
        if reader == 0:
            return super().fold(setting, ask, reader, accumulator, batch)
        return accumulator + len(batch.payload)

    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        if reader == 0:
            return super().step(setting, ask, reader, state, accumulator, formed, stream)
        after = {**state, "messages": np.asarray(state["messages"] + accumulator)}
        drawn = stream.generator().integers(1 << 30)
        return after, {"messages": after["messages"], "drawn": np.asarray(drawn)}

    def rows(self, setting, ask, public, truth):
        counted = {name: column[()] for name, column in public[1].items()}
        return {**super().rows(setting, ask, public[:1], truth), "counted": released(counted)}


class Several(Mean):
    """Client i sends its vector once, twice or three times, as i modulo 3 says, or never.

    Each is an item of its data; `charged` says whether the task charges it so.
    """

    kind: ClassVar[str] = "several"
    charged: Literal["item", "client"] = "item"
    never: bool = False

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        times = stream.ids % 3 + (0 if self.never else 1)
        owner = np.repeat(np.arange(len(data)), times)
        return Answer(data[owner], owner, memory, np.array([len(owner)]))

    def event(self, setting, ask, formed):
        mechanism = ask.mechanism
        if self.charged == "client":
            return usual_event(mechanism, formed)
        if not amplifies(mechanism, formed.trust):
            known = mechanism.event()
            return ev.LocalReport(known.epsilon, known.delta, unit="item")
        return ev.MultiMessageShuffle(mechanism.losses(), max(1, formed.hiding), unit="item")


class Switching(Mean):
    """Its even asks have half the guarantee of its odd ones; what is late may be of either."""

    kind: ClassVar[str] = "switching"
    adaptive = True
    period: Annotated[int, Field(ge=1)] = 2
    planned: bool = True  # whether its plan says so

    def mechanism_of(self, setting, release):
        loss = setting.mechanism.need_epsilon()
        return with_loss(setting.mechanism, loss if release // self.period % 2 else loss / 2)

    def plan(self, setting):
        if not self.planned:
            return (Planned(Ask(self.mechanism_of(setting, 0)), self.rounds),)
        rounds = range(self.rounds)
        return tuple(Planned(Ask(self.mechanism_of(setting, each)), 1) for each in rounds)

    def ask(self, setting, state):
        release = int(state["releases"])
        shift = np.asarray(0.01 * release)
        return Ask(self.mechanism_of(setting, release), {"shift": shift})

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(np.clip(data + ask.broadcast["shift"], -1.0, 1.0), memory=memory)

    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        after, public = super().step(setting, ask, reader, state, accumulator, formed, stream)
        return after, {**public, "weight": np.asarray(formed.weight)}

    def rows(self, setting, ask, public, truth):
        weight = released({"weight": float(public[0]["weight"])})
        return {**super().rows(setting, ask, public, truth), "weights": weight}


class Joint(Mean):
    """A decoder that needs all messages together: the median of what was sent."""

    kind: ClassVar[str] = "joint"

    def zero(self, setting, ask, reader):
        return []

    def fold(self, setting, ask, reader, accumulator, batch):
        return [*accumulator, np.array(batch.payload)]

    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        messages = np.sort(np.concatenate(accumulator), axis=0)
        after, public = {**state, "releases": state["releases"] + 1}, messages[len(messages) // 2]
        return after, {"estimate": public, "running": public, "messages": messages}


class Outside(Mean):
    """Sends ten times what clients hold, whatever the domain; once, or anew in every release."""

    kind: ClassVar[str] = "outside"
    factor: float = 10.0

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(data * self.factor, memory=memory)


class Overwriting(Mean):
    """Changes the clients' data in place, after they were checked, and returns them as they are."""

    kind: ClassVar[str] = "overwriting"

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        if len(data) > 1:  # one client is tried before the run
            data *= 10.0
        return Answer(data, memory=memory)


class Misshapen(Mean):
    """Returns an answer that does not fit its clients."""

    kind: ClassVar[str] = "misshapen"
    adaptive = True
    form: str = "short"

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        given = np.array(data)
        if self.form == "short":
            return Answer(given[:1])
        if self.form == "narrow":
            return Answer(given[:, :2])
        owner = np.arange(len(data))[::-1] if self.form == "backwards" else np.arange(len(data)) + 1
        return Answer(given, owner)


class Images(Dataset):
    """Small pictures of bytes, their own type and shape."""

    kind: ClassVar[str] = "images"

    def shape(self):
        return (4, 4)

    def hold(self, ids, stream):
        drawn = stream.clients(ids).uniform("pixel", 16)
        return (256 * drawn).astype(np.uint8).reshape(len(ids), 4, 4)


class Brightness(Mean):
    """The mean brightness of pictures: one number of each."""

    kind: ClassVar[str] = "brightness"

    def width(self, shape, labels):
        return 1

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(data.reshape(len(data), 16).mean(axis=1, keepdims=True) / 255.0)

    def truth(self, setting, data):
        return np.array([data.sum(dtype=np.int64), len(data)])

    def rows(self, setting, ask, public, truth):
        total, clients = truth.cohort
        return {"errors": simulation_only({"truth": float(total / (16 * 255 * clients))})}
