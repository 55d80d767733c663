"""A task whose asks depend on what was released before, and whose answers show which ask it was."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from raydp_sim.tasks.base import Answer, Ask
from raydp_sim.tasks.mean import Mean


class Following(Mean):
    """Clients report their value shrunk by a factor that every release makes public anew."""

    kind: ClassVar[str] = "following"
    adaptive = True

    def ask(self, setting, state):
        return Ask(setting.mechanism, {"factor": np.asarray(1.0 / (1.0 + state["releases"]))})

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(data * np.asarray(ask.broadcast["factor"]), memory=memory)


class Alternating(Following):
    """Every third ask is for a batch of its own size: whoever prepared the usual one was wrong."""

    kind: ClassVar[str] = "alternating"

    def ask(self, setting, state):
        said = super().ask(setting, state)
        return replace(said, cohort=40) if int(state["releases"]) % 3 == 2 else said


class Ending(Following):
    """Ends the run by itself after three releases."""

    kind: ClassVar[str] = "ending"
    open_ended = True

    def ask(self, setting, state):
        return None if int(state["releases"]) == 3 else super().ask(setting, state)
