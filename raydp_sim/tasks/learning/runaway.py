"""Training that runs away: stopped with a message that names the round and the likely cause."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import RunError
from raydp_sim.tasks.learning.seen import Seen

# A loss or a parameter beyond this is no model any more.
_MOST = 1e6
# Models that are right no more often than this many guesses, at a loss of so many guesses, have
# gone astray: large parameters alone are not enough, for they may be right.
_GUESSES, _LOST = 1.5, 50.0


def refuse_gradients(
    losses: NDArray[Any], norms: NDArray[Any], rounds: int, remedy: str = "task.step_size"
) -> None:
    """Stop a run in which a client's loss or gradient is not a number, or beyond all measure.

    Args:
        losses: of clients or samples.
        norms: of their gradients.
        rounds: before this one.
        remedy: the step size to lower.

    Raises:
        RunError: names the round and what to change.
    """
    # What is no number is the largest, and below nothing.
    if norms.max(initial=0.0) < math.inf and losses.max(initial=0.0) < _MOST:
        return
    worst = float(np.max(losses, initial=0.0))
    what = f"a loss is {worst:.3g}" if not worst < _MOST else "a gradient is not finite"
    raise RunError(
        f"training ran away: in round {rounds + 1} {what}; lower {remedy}, or clip gradients "
        "more (mechanism.radius)",
        resumable=False,
    )


def refuse_own(theta: NDArray[Any], rounds: int, remedy: str) -> None:
    """Stop a run in which a client's own model, or its update, has run away.

    Args:
        theta: its parameters.
        rounds: before this one.
        remedy: the step size to lower.

    Raises:
        RunError: names the round and what to change.
    """
    largest = float(np.abs(theta).max(initial=0.0))
    if largest < _MOST:
        return
    raise RunError(
        f"training ran away: in round {rounds + 1} a parameter of a client's model is "
        f"{largest:.3g}; lower {remedy}",
        resumable=False,
    )


def refuse_parameters(
    theta: NDArray[Any], rounds: int, rate: float, remedy: str = "task.step_size"
) -> None:
    """Stop a run whose common model has run away.

    Args:
        theta: its parameters.
        rounds: after which they are.
        rate: the step size.
        remedy: the step size to lower, by name.

    Raises:
        RunError: names the round and what to change.
    """
    largest = float(np.abs(theta).max(initial=0.0))
    if largest < _MOST:
        return
    raise RunError(
        f"training ran away: after round {rounds} a parameter is {largest:.3g}; the step size "
        f"{rate:g} is too large for this noise: lower {remedy} or mechanism.radius, or allow a "
        "larger epsilon",
        resumable=False,
    )


def refuse_astray(seen: Seen, classes: int, rounds: int, remedy: str) -> None:
    """Stop a run that does not converge: its models are no better than guessing, and far worse.

    Args:
        seen: of the clients of a round, before its first step.
        classes: that samples are labelled with.
        rounds: so far, this one included.
        remedy: the step size to lower.

    Raises:
        RunError: names the round and what to change.

    Example:
        >>> refuse_astray(Seen(losses=9, loss=9 << 16, samples=9, hits=1), 10, 3, "task.step_size")
    """
    guess = math.log(classes)
    if seen.mean_loss < _LOST * guess or seen.accuracy > _GUESSES / classes:
        return
    raise RunError(
        f"training does not converge: in round {rounds} the mean loss of those who took part is "
        f"{seen.mean_loss:.3g}, where guessing has {guess:.3g}, and {seen.accuracy:.1%} of their "
        f"samples are right; the steps are too large for the noise: lower {remedy} or "
        "mechanism.radius, ask more clients, or allow a larger epsilon",
        resumable=False,
    )
