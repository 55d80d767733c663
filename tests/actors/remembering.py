"""A task whose clients remember, for tests: a report is damped by how often its sender reported."""

from typing import ClassVar

import numpy as np

from raydp_sim.tasks.base import Ask
from raydp_sim.tasks.mean import Mean


class Remembering(Mean):
    """Mean of values that shrink with every report; adaptive, and its clients keep count."""

    kind: ClassVar[str] = "remembering"
    adaptive = True

    def ask(self, state):
        return Ask({"shift": state["total"] * 1e-3})

    def client_init(self, clients):
        return {"reports": np.zeros(clients, np.int64), "last": np.zeros((clients, 2))}

    def client(self, ask, data, client_state, stream):
        reports = client_state["reports"] + 1
        values = np.clip(data / reports[:, None] + ask.broadcast["shift"], -1.0, 1.0)
        return values, {"reports": reports, "last": values[:, :2]}


class Drawing(Mean):
    """A task that draws under the very names that its mechanism uses, and keeps what it drew."""

    kind: ClassVar[str] = "drawing"

    def client_init(self, clients):
        return {"drawn": np.zeros(clients)}

    def client(self, ask, data, client_state, stream):
        return data, {"drawn": stream.uniform("flip")[:, 0]}
