"""What a mechanism's reports are once they are shuffled, and the local loss that meets a target."""

import math
from typing import NamedTuple

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.privacy.accountant import calibrate
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.curves.caps import pure_epsilon
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import GaussianShuffle, MultiMessageShuffle, Shuffle

# The largest loss of one message that a calibration tries: beyond it nothing is protected.
LARGEST = 20.0
# And beyond this one e^loss leaves the range that bounds on shuffles are computed in.
_LARGEST = 36.0
# Where no bound is named: the first knows some randomizers, the second takes any.
BOUNDS = ("pld-variation", "pld-clones")
_NORMAL = ("pld-gaussian",)

Shuffled = Shuffle | MultiMessageShuffle | GaussianShuffle


class Calibrated(NamedTuple):
    """A mechanism that meets a central target behind a shuffler.

    Attributes:
        mechanism: with its `epsilon_local`.
        epsilon: what one shuffle of its reports costs at the target's delta, evaluated again.
        bound: that says so.
    """

    mechanism: Mechanism
    epsilon: float
    bound: str


def unamplified(mechanism: Mechanism) -> str | None:
    """Return why shuffling a mechanism's reports gains nothing here, or None where it does.

    It takes normal noise, or a pure local guarantee, stated message by message, and one logical
    shuffler per message.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> unamplified(make("central-laplace", epsilon=1.0, dimension=1, radius=1.0))
        'the noise is drawn by the aggregator'
    """
    if why := _declared(mechanism):
        return why
    if mechanism.normal:
        return None
    if mechanism.event().delta != 0.0:
        return "its local guarantee has a delta, and only pure ones are amplified"
    if mechanism.routing != "per-index" and mechanism.messages_per_report > 1:
        return "all messages of a report go to the same shuffler"
    losses = mechanism.losses()
    if losses is None:
        return "the loss of its messages is not stated one by one"
    if _LARGEST < max(losses) < math.inf:
        return f"no number of clients hides a message that loses {max(losses):g}"
    return None


def _declared(mechanism: Mechanism) -> str | None:
    """Return what its class says against it, which needs no guarantee to be chosen."""
    if mechanism.where == "aggregator":
        return "the noise is drawn by the aggregator"
    if mechanism.guarantee != "pure" and not mechanism.normal:
        return f"its local guarantee is {mechanism.guarantee}, and only pure ones are amplified"
    return None


def shuffled_event(mechanism: Mechanism, n: int) -> Shuffled:
    """Return what the shuffled reports of n clients are, for an amplified mechanism.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> shuffled_event(make("laplace", epsilon_local=1.0, dimension=1, radius=1.0), 100).n
        100
    """
    if mechanism.normal:
        return GaussianShuffle(mechanism.noise_multiplier(), n, mechanism.need_dimension())
    losses = mechanism.losses() or ()
    if len(losses) == 1:
        return Shuffle(losses[0], n, mechanism.randomizer(), mechanism.alphabet())
    return MultiMessageShuffle(losses, n, mechanism.randomizer())


def with_loss(mechanism: Mechanism, epsilon_local: float) -> Mechanism:
    """Return the mechanism with another local guarantee, in place of its own or of its target."""
    share = {"epsilon_local": epsilon_local, "target": None}
    return type(mechanism).model_validate({**mechanism.model_dump(), **share})


def _with_delta(mechanism: Mechanism, most: float) -> Mechanism:
    """Return the mechanism with a delta of one report that is no more than this."""
    given = getattr(mechanism, mechanism.delta_field or "", None)
    share = {"epsilon_local": mechanism.epsilon_local or 1.0, "target": None}
    own = {mechanism.delta_field: most if given is None else min(given, most)}
    return type(mechanism).model_validate({**mechanism.model_dump(), **share, **own})


def spent(event: Shuffled, delta: float, bound: str) -> float:
    """Return epsilon of one shuffle by one bound, no more than without the shuffle.

    It is the pure loss where the bound is silent or not proved for the event.
    """
    try:
        value = find_run(bound).epsilon([(event, 1)], delta).epsilon
    except (NotApplicable, Unsupported):
        value = math.inf
    return min(value, pure_epsilon(event))


def calibrated_for(
    mechanism: Mechanism, clients: int, epsilon: float, delta: float, bound: str | None = None
) -> Calibrated:
    """Return the mechanism with the largest local guarantee whose one shuffle meets a target.

    Accounting is numerical, and what is returned was itself evaluated within the target. At the
    least it has epsilon_local = epsilon, which needs no shuffler.

    Args:
        mechanism: amplified, see `unamplified`; its own guarantee is replaced. Of normal noise the
            delta of a report alone is at most the target's.
        clients: whose reports are shuffled together.
        epsilon: > 0, of the target.
        delta: in (0, 1), of the target.
        bound: name of a whole-run bound; None: the first of `BOUNDS` that applies.

    Raises:
        NotApplicable: says why shuffling gains nothing for this mechanism.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> response = make("2rr", epsilon_local=1.0)
        >>> found = calibrated_for(response, 1000, 0.5, 1e-5)
        >>> round(found.mechanism.epsilon_local, 3), found.epsilon <= 0.5
        (2.514, True)
    """
    why, pure = _declared(mechanism), "pure"
    names: tuple[str, ...] = BOUNDS
    if mechanism.normal and not why:
        pure, names = _NORMAL[0], _NORMAL
        mechanism = _with_delta(mechanism, delta)
    least = mechanism if why else with_loss(mechanism, epsilon * (1.0 - 1e-12))
    if why := why or unamplified(least):
        raise NotApplicable(f"shuffling gains nothing for '{mechanism.kind}': {why}")
    best = Calibrated(least, spent(shuffled_event(least, clients), delta, pure), pure)
    largest = largest_loss(mechanism)

    def event(epsilon_local: float) -> Shuffled:
        return shuffled_event(with_loss(mechanism, epsilon_local), clients)

    for name in names if bound is None else (bound,):
        try:
            loss = calibrate(epsilon, delta, event, 1, name, largest)
        except (NotApplicable, Unsupported):
            continue
        if loss > (best.mechanism.epsilon_local or 0.0):
            best = Calibrated(with_loss(mechanism, loss), spent(event(loss), delta, name), name)
        break
    return best


def largest_loss(mechanism: Mechanism) -> float:
    """Return a local guarantee beyond which no message protects anything, to search up to."""
    largest = LARGEST * max(1, with_loss(mechanism, LARGEST).messages_per_report)
    while math.isinf(with_loss(mechanism, largest).event().epsilon):
        # Draws of 53 bits cannot express the noise of some message.
        largest *= 0.8
    return largest
