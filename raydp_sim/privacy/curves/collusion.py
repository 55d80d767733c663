"""Shuffles in which some clients share what they know with the observer."""

import math
from dataclasses import replace

from raydp_sim.privacy.curves.mixed import honest_clients
from raydp_sim.privacy.errors import Unsupported
from raydp_sim.privacy.events import (
    GaussianShuffle,
    Release,
    SelfSampledShuffle,
    Shuffle,
    SubsampledGaussianShuffle,
    SubsampledShuffle,
)

# Share of delta that may go to a sample with too few or too many honest clients.
_SHARE = 0.01


def among_honest(
    event: Release, honest_fraction: float, times: int, delta: float
) -> tuple[Release, float]:
    """Return an event of honest clients only that costs at least as much, and the delta left.

    Colluding clients tell whether they took part and what they sent. What remains is the same
    event of the honest ones, whose number is floor(honest_fraction n), the victim included.

    * `Shuffle`, `GaussianShuffle`: as many messages as honest clients.
    * `SelfSampledShuffle`: their own coins, no matter what the others do.
    * `SubsampledShuffle`, `SubsampledGaussianShuffle`: given that j of the k sampled are honest, a
      uniform sample of j of the H honest ones. j is hypergeometric whatever the data are and lies
      within k H/N -+ t k in all T rounds but with probability 2 T e^(-2 k t^2) (Hoeffding 1963,
      Theorems 2 and 4), which is taken from delta. Within, the bounds rise with the rate and fall
      with the messages, so the fewest messages at the largest rate are charged.

    Args:
        event: one of those above.
        honest_fraction: in [0, 1].
        times: rounds of it.
        delta: of the run.

    Example:
        >>> among_honest(Shuffle(1.0, 1000), 0.5, 10, 1e-6)[0].n
        500
    """
    if isinstance(event, Shuffle | GaussianShuffle):
        return replace(event, n=honest_clients(event.n, honest_fraction)), delta
    if isinstance(event, SelfSampledShuffle):
        return replace(event, clients=honest_clients(event.clients, honest_fraction)), delta
    if not isinstance(event, SubsampledShuffle | SubsampledGaussianShuffle):
        raise Unsupported(f"colluding clients are not worked out for {type(event).__name__}")
    n, k = honest_clients(event.clients, honest_fraction), event.sampled
    if n == event.clients:
        return event, delta
    mean = k * n / event.clients
    spread = math.sqrt(0.5 * k * (math.log(2.0 * times) - math.log(_SHARE) - math.log(delta)))
    spread += 1e-12 * (1.0 + mean + spread)  # rounding widens the range
    # The victim is one of the sampled where it matters at all.
    fewest = max(1, math.ceil(mean - spread), n + k - event.clients)
    largest = min(n, k, math.floor(mean + spread))
    # The rate is fewest/clients: clients are rounded down.
    clients = max(fewest, fewest * n // max(largest, 1))
    return replace(event, clients=clients, sampled=fewest), (1.0 - _SHARE) * delta
