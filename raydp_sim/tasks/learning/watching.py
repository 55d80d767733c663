"""Choosing by a validation split: the best model so far, and when to stop.

The split is taken to be public, so that looking at it costs nothing. When a run ends then follows
from what was released; the ledger charges all of the plan from the first release on.
"""

import numpy as np

from raydp_sim.errors import bad_field
from raydp_sim.kernels.types import Floats32
from raydp_sim.models.base import Network
from raydp_sim.tasks.base import Arrays, Setting
from raydp_sim.tasks.learning.evaluation import score

_STATE = ("best", "best_accuracy", "best_round", "waited")


def can_watch(setting: Setting) -> bool:
    """Say whether there is a validation split."""
    return setting.held_out is not None and setting.held_out.validation() is not None


def refuse_blind(setting: Setting, patience: int | None) -> None:
    """Refuse to stop early where there is nothing to look at.

    Raises:
        InputError: names the field.
    """
    if patience is not None and not can_watch(setting):
        remedy = "there is no validation split to look at; give population.data.validation"
        raise bad_field("task.patience", patience, remedy)


def nothing_seen(setting: Setting, theta: Floats32) -> Arrays:
    """Return what is remembered before the first look; nothing without a validation split."""
    if not can_watch(setting):
        return {}
    first = (theta, np.asarray(-1.0), np.zeros((), np.int64), np.zeros((), np.int64))
    return dict(zip(_STATE, first, strict=True))


def kept(state: Arrays) -> Arrays:
    """Return what a state remembers of looks."""
    return {name: state[name] for name in _STATE if name in state}


def looked(
    network: Network, setting: Setting, theta: Floats32, rounds: int, before: Arrays
) -> tuple[Arrays, Arrays]:
    """Look at the validation split: what is remembered from now on, and what is made public.

    Args:
        network: the model.
        setting: of the run.
        theta: the parameters.
        rounds: after which they are.
        before: what is remembered.
    """
    samples = None if setting.held_out is None else setting.held_out.validation()
    if samples is None:
        return {}, {}
    found = score(network, theta, samples)
    seen = {
        "validation_accuracy": np.asarray(found.accuracy),
        "validation_loss": np.asarray(found.loss),
    }
    if found.accuracy > float(before["best_accuracy"]):
        zero = np.zeros((), np.int64)
        best = (theta, np.asarray(found.accuracy), np.asarray(rounds), zero)
        return dict(zip(_STATE, best, strict=True)), seen
    return {**before, "waited": before["waited"] + 1}, seen


def enough(state: Arrays, patience: int | None) -> bool:
    """Say whether nothing has become better for so many looks."""
    return patience is not None and "waited" in state and int(state["waited"]) >= patience
