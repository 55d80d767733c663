"""Tasks whose clients keep state: a report is damped by how often its sender reported."""

from typing import ClassVar

import numpy as np

from raydp_sim.tasks.base import Answer, Ask
from raydp_sim.tasks.mean import Mean


class Remembering(Mean):
    """Mean of values that shrink with every report; adaptive, and its clients keep count."""

    kind: ClassVar[str] = "remembering"
    adaptive = True

    def ask(self, setting, state):
        return Ask(setting.mechanism, {"shift": state["total"] * 1e-3})

    def memory(self, setting, data, stream):
        # Made from the data: what a client starts with is its own.
        return {"reports": np.zeros(len(data), np.int64), "last": np.array(data[:, :2])}

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        reports = memory["reports"] + 1
        values = np.clip(data / reports[:, None] + ask.broadcast["shift"], -1.0, 1.0)
        return Answer(values, memory={"reports": reports, "last": values[:, :2]})


class Drawing(Mean):
    """A task that draws under the very names that its mechanism uses, and keeps what it drew."""

    kind: ClassVar[str] = "drawing"

    def memory(self, setting, data, stream):
        return {"drawn": np.zeros(len(data))}

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(data, memory={"drawn": stream.uniform("flip")[:, 0]})
