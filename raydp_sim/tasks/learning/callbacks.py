"""A function of the user's own that looks at a model whenever it is evaluated."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from raydp_sim.datasets.labelled import Examples
from raydp_sim.errors import RunError
from raydp_sim.kernels.types import Floats32
from raydp_sim.models.base import Network
from raydp_sim.registry import at_path

Evaluate = Callable[[Network, Floats32, Examples], Mapping[str, float]]


def _callable(path: str) -> str:
    if ":" not in path or not callable(at_path(path)):
        raise ValueError("it must name a function as package.module:function")
    return path


Callback = Annotated[str, AfterValidator(_callable)]
"""The import path of an `Evaluate`."""


def called(
    path: str | None,
    network: Network,
    theta: Floats32,
    samples: Examples,
    taken: Collection[str] = (),
) -> dict[str, float]:
    """Return what a callback finds, as columns.

    Args:
        path: of the callback; None: there is none.
        network: the model.
        theta: its parameters.
        samples: that it is looked at with.
        taken: names that other columns have.

    Raises:
        RunError: it fails, or returns something else than numbers by names of their own.
    """
    if path is None:
        return {}
    function: Any = at_path(path)
    try:
        found = {
            str(name): float(value) for name, value in function(network, theta, samples).items()
        }
    except Exception as error:  # the user's own function may fail in any way
        why = str(error) or type(error).__name__
        raise RunError(f"task.callback {path} failed: {why}", resumable=False) from error
    if twice := sorted(set(found) & set(taken)):
        raise RunError(f"task.callback {path} returned {twice}; choose names of its own", False)
    if not all(math.isfinite(value) for value in found.values()):
        raise RunError(f"task.callback {path} returned {found}; give finite numbers", False)
    return found
