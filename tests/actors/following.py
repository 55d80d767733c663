"""A task whose asks depend on what was released before, and whose answers show which ask it was."""

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
