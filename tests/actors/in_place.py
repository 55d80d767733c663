"""A task that counts up in the arrays that it made public before, as a user's may."""

from typing import ClassVar

from raydp_sim.tasks.mean import Mean


class InPlace(Mean):
    """Publishes arrays of its state and overwrites them in the next release."""

    kind: ClassVar[str] = "in-place"

    def init(self, setting):
        state = super().init(setting)
        return {**state, "running": 0.0 * state["total"], "standard_error": 0.0 * state["total"]}

    def step(self, setting, ask, reader, state, accumulator, formed, stream):
        after, public = super().step(setting, ask, reader, state, accumulator, formed, stream)
        for name in ("running", "standard_error"):
            state[name][...] = public[name]
            after[name] = public[name] = state[name]
        return after, public
