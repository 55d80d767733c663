"""What an event costs at most, whatever a bound says: one message's own loss, and pure DP."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from raydp_sim.privacy import events as ev
from raydp_sim.privacy.bound import RdpBound, rdp_bounds
from raydp_sim.privacy.curves.local import local_rdp
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.curves.sampling import subsample
from raydp_sim.privacy.errors import NotApplicable


def _delta_free(
    event: ev.LocalReport | ev.CentralRelease | ev.EnsembleRelease,
) -> tuple[float, ...]:
    return (event.epsilon,) if event.delta == 0.0 else (math.inf,)


def _cldp(event: ev.CldpRound) -> tuple[float, ...]:
    # 001 Lemma 7: with several points per client, sampling clients does not lower epsilon.
    one = event.sampled_points == 1
    rate = event.rate if one else event.sampled_points / event.points
    return (subsample(event.epsilon0, 0.0, rate)[0],)


# The pure losses whose sum caps the event; a loss of inf is none.
_PURE: dict[type, Callable[[Any], tuple[float, ...]]] = {
    ev.Shuffle: lambda e: (e.epsilon0,),
    ev.SubsampledShuffle: lambda e: (subsample(e.epsilon0, 0.0, e.rate)[0],),
    # The count is visible: when all have joined, no coin hides anybody.
    ev.SelfSampledShuffle: lambda e: (e.epsilon0,),
    ev.MultiMessageShuffle: lambda e: e.losses,
    ev.SubsampledMultiMessage: lambda e: (subsample(math.fsum(e.losses), 0.0, e.rate)[0],),
    ev.GaussianShuffle: lambda e: (math.inf,),
    ev.SubsampledGaussianShuffle: lambda e: (math.inf,),
    ev.CldpRound: _cldp,
    ev.GaussianRelease: lambda e: (math.inf,),
    ev.GaussianReport: lambda e: (math.inf,),
    ev.SubsampledGaussian: lambda e: (math.inf,),
    ev.SubsampledGaussianRelease: lambda e: (math.inf,),
    ev.SelfSampledGaussianRelease: lambda e: (math.inf,),
    ev.LaplaceRelease: lambda e: (e.epsilon,),
    # Adding a record costs less than removing it.
    ev.SubsampledLaplace: lambda e: (subsample(e.epsilon, 0.0, e.rate)[0],),
    ev.EpochRelease: lambda e: (math.inf if e.private else 0.0,),
    ev.SecretEpochRelease: lambda e: (math.inf if e.private else 0.0,),
    ev.LocalReport: _delta_free,
    ev.CentralRelease: _delta_free,
    ev.EnsembleRelease: _delta_free,
}


def neighbours(event: ev.Release) -> str:
    """Return which datasets the event's bounds compare: replace-one, add-remove, or either.

    Example:
        >>> neighbours(ev.SubsampledGaussian(1.0, 0.1))
        'add-remove'
    """
    return _NEIGHBOURS.get(type(event), "replace-one")


# Noise without sampling is meant for whichever neighbours its sensitivity is.
_NEIGHBOURS = {
    ev.SubsampledGaussian: "add-remove",
    ev.SubsampledLaplace: "add-remove",
    ev.GaussianRelease: "either",
    ev.LaplaceRelease: "either",
}


def refuse_mixed(kinds: set[str]) -> None:
    """Refuse to add guarantees that compare different datasets."""
    if {"replace-one", "add-remove"} <= kinds:
        raise NotApplicable("replace-one and add-remove guarantees cannot be added up")


def pure_epsilon(event: ev.Release) -> float:
    """Return the pure epsilon of one event: without its shuffling, with its secret sampling.

    It is inf if there is none.

    Example:
        >>> round(pure_epsilon(ev.SubsampledShuffle(2.0, 10**6, 1000)), 9)
        0.006368733
    """
    return math.fsum(_PURE[type(event)](event))


def cap_rdp(event: ev.Release, alpha: float) -> float:
    """Return the divergence of any mechanism with the event's pure loss: a cap, real alpha > 1.

    Among epsilon-DP mechanisms randomized response has the largest divergence of every order.

    Example:
        >>> round(cap_rdp(ev.Shuffle(1.0, 1), 2), 9)
        0.735325664
    """
    losses = _PURE[type(event)](event)
    return math.fsum(local_rdp(e, alpha) if e < math.inf else math.inf for e in losses)


def capped(bound: RdpBound, event: ev.Release, alpha: float) -> float:
    """Return the bound's divergence, but no more than the cap, which also stands in for silence.

    Example:
        >>> from raydp_sim.privacy.bounds.upper1 import Upper1
        >>> capped(Upper1(), ev.Shuffle(0.0, 10), 2)
        0.0
    """
    cap = cap_rdp(event, alpha)
    try:
        return min(cap, bound.rdp(event, alpha))
    except NotApplicable:
        return cap


def _until_lost(bound: RdpBound, event: ev.Release, orders: Array, caps: Array) -> Array:
    """Return the bound's divergences up to a stretch of orders where it gains under a tenth."""
    found = caps.copy()
    first = int(np.searchsorted(orders, bound.worth_from(event)))
    last = int(np.searchsorted(orders, bound.worth_up_to(event), side="right"))
    for start in range(first, last, 32):
        part = slice(start, min(start + 32, last))
        found[part] = bound.rdp_vector(event, orders[part])
        if np.all(found[part] > 0.9 * caps[part]):
            break
    return found


# Logarithm of a moment up to which what a bound by name leaves to others is next to nothing.
_SHARP = 5.0


def best_vector(event: ev.Release, orders: Array) -> Array:
    """Return the least proved divergence at each ascending whole order, caps included.

    Example:
        >>> best_vector(ev.GaussianRelease(1.0), np.array([2.0, 4.0])).tolist()
        [1.0, 2.0]
    """
    caps = np.array([cap_rdp(event, alpha) for alpha in orders])
    best = caps
    # Bounds that know the randomizer first: where they are sharp no other says less.
    asked = np.full(len(orders), True)
    for bound in sorted(rdp_bounds(), key=lambda bound: not bound.by_name):
        if bound.status != "proved" or type(event) not in bound.events or not bound.worth(event):
            continue
        found = caps.copy()
        found[asked] = _until_lost(bound, event, orders[asked], caps[asked])
        best = np.minimum(best, found)
        if bound.by_name:
            asked = (orders - 1.0) * best > _SHARP
    if not np.all(np.isfinite(best)) and not isinstance(event, ev.EnsembleRelease):
        # Of an ensemble's (epsilon, delta) none is finite; `general-composition` adds them.
        raise NotApplicable(f"no divergence is known for {event}")
    return best
