"""A task on labelled data that needs no model: which part of clients' labels is even."""

from typing import ClassVar

import numpy as np

from raydp_sim.tasks.base import Answer
from raydp_sim.tasks.mean import Mean, total_of


def even(data):
    """Each client's share of even labels, as a vector of one number."""
    places = np.broadcast_to(np.arange(data.index.shape[1]), data.index.shape)
    labels = data.take(places).labels
    return (labels % 2 == 0).mean(axis=1, keepdims=True)


class LabelShare(Mean):
    """The mean over clients of their share of even labels."""

    kind: ClassVar[str] = "label-share"

    def width(self, shape, labels):
        return 1

    def client(self, setting, ask, data, memory, slots, randomizer, stream):
        return Answer(even(data), memory=memory)

    def truth(self, setting, data):
        return total_of(setting.mechanism, even(data))
