"""Trying a task on what clients hold, before a run."""

from functools import partial
from typing import Any

import numpy as np

from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.random import Stream
from raydp_sim.tasks.base import Setting, Task


def check_values(task: Task, setting: Setting, data: Any, ids: Any, stream: Stream) -> bool:
    """Check what clients hold before a run; say whether it is what they report, unchanged.

    Raises:
        InputError: names the client and the coordinate of the first value refused.
    """
    task.refuse(setting, data, ids)
    ask = task.plan(setting)[0].ask
    if task.adaptive or ask.slots is not None or len(ids) == 0:
        return False
    held, own = data[:1], stream.at("task", 0).clients(ids[:1])
    if isinstance(held, np.ndarray):
        held.flags.writeable = False  # as clients get them
    memory = task.memory(setting, held, stream.at("memory").clients(ids[:1]))
    randomizer = Randomizer(ask.mechanism)
    noise = stream.at("randomize", 0).clients(ids[:1])
    randomizer.begin(noise, partial(task.settle, setting, ask))
    answer = task.client(setting, ask, held, memory, None, randomizer, own)
    if answer.values is not held:
        return False
    ask.mechanism.admit(data, ids)
    return True
