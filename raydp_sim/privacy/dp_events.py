"""Our events as dp_accounting's `DpEvent`, and back, where both libraries have them.

| ours | dp_accounting | neighbours |
| --- | --- | --- |
| GaussianRelease | GaussianDpEvent | those of the sensitivity |
| GaussianReport | GaussianDpEvent | replace one |
| LaplaceRelease | LaplaceDpEvent | those of the sensitivity |
| SubsampledGaussian | PoissonSampledDpEvent of a GaussianDpEvent | add or remove |
| SubsampledGaussianRelease | SampledWithoutReplacementDpEvent of a GaussianDpEvent | replace one |
| SubsampledLaplace | PoissonSampledDpEvent of a LaplaceDpEvent | add or remove |

A DpEvent does not say which neighbours it is meant for, its accountant does; so both ways here take
or return that too, and refuse what does not fit. Shuffles, and releases of which only epsilon and
delta are known, have no DpEvent. The package is optional.
"""

import importlib
from types import ModuleType
from typing import Any, Literal

from raydp_sim.errors import InputError
from raydp_sim.privacy import events as ev
from raydp_sim.privacy.bound import Counted, merge
from raydp_sim.privacy.curves.caps import neighbours, refuse_mixed
from raydp_sim.privacy.errors import Unsupported

Neighbours = Literal["add-remove", "replace-one"]


def _library() -> ModuleType:
    try:
        return importlib.import_module("dp_accounting.dp_event")
    except ImportError:
        raise InputError(
            "dp_accounting is not installed; its events need it: pip install dp-accounting"
        ) from None


def to_dp_event(events: Counted) -> tuple[Any, str]:
    """Return the composition of events as a DpEvent, and the neighbours it is meant for.

    Args:
        events: with their counts; those of replace-one and add-remove are never mixed.

    Raises:
        Unsupported: for an event that dp_accounting does not have.
        InputError: if dp_accounting is not installed.

    Example:
        >>> event, meant = to_dp_event([(ev.SubsampledGaussian(1.0, rate=0.01), 100)])
        >>> event.count, event.event.sampling_probability, meant
        (100, 0.01, 'add-remove')
    """
    dp, merged = _library(), merge(events)
    kinds = {neighbours(event) for event, _ in merged}
    refuse_mixed(kinds)
    made = [dp.SelfComposedDpEvent(_made(dp, event), times) for event, times in merged]
    meant = next((kind for kind in kinds if kind != "either"), "either")
    return made[0] if len(made) == 1 else dp.ComposedDpEvent(made), meant


def _made(dp: ModuleType, event: ev.Release) -> Any:
    match event:
        case ev.GaussianRelease() | ev.GaussianReport():
            return dp.GaussianDpEvent(event.noise_multiplier)
        case ev.SubsampledGaussian():
            noise = dp.GaussianDpEvent(event.noise_multiplier)
            return dp.PoissonSampledDpEvent(event.rate, noise)
        case ev.SubsampledGaussianRelease() if event.points == 1:
            noise = dp.GaussianDpEvent(event.noise_multiplier)
            return dp.SampledWithoutReplacementDpEvent(event.clients, event.sampled, noise)
        case ev.LaplaceRelease() if event.epsilon > 0.0:
            return dp.LaplaceDpEvent(1.0 / event.epsilon)
        case ev.SubsampledLaplace() if event.epsilon > 0.0:
            return dp.PoissonSampledDpEvent(event.rate, dp.LaplaceDpEvent(1.0 / event.epsilon))
    raise Unsupported(f"dp_accounting has no event for {event}")


def from_dp_event(event: Any, meant_for: Neighbours) -> list[tuple[ev.Release, int]]:
    """Return a DpEvent as events with their counts.

    Args:
        event: of dp_accounting.
        meant_for: the neighbours of its accountant, which the event does not name.

    Raises:
        Unsupported: for a DpEvent without a counterpart for these neighbours.

    Example:
        >>> import dp_accounting
        >>> noise = dp_accounting.GaussianDpEvent(2.0)
        >>> from_dp_event(dp_accounting.SelfComposedDpEvent(noise, 3), "replace-one")
        [(GaussianRelease(noise_multiplier=2.0), 3)]
    """
    dp = _library()
    if isinstance(event, dp.NoOpDpEvent):
        return []
    if isinstance(event, dp.SelfComposedDpEvent):
        inner = from_dp_event(event.event, meant_for)
        return [(part, times * event.count) for part, times in inner]
    if isinstance(event, dp.ComposedDpEvent):
        return [pair for part in event.events for pair in from_dp_event(part, meant_for)]
    return [(_read(dp, event, meant_for), 1)]


def _read(dp: ModuleType, event: Any, meant_for: Neighbours) -> ev.Release:
    if isinstance(event, dp.GaussianDpEvent):
        return ev.GaussianRelease(event.noise_multiplier)
    if isinstance(event, dp.LaplaceDpEvent):
        return ev.LaplaceRelease(1.0 / event.noise_multiplier)
    if isinstance(event, dp.PoissonSampledDpEvent) and meant_for == "add-remove":
        inner, rate = event.event, event.sampling_probability
        if isinstance(inner, dp.GaussianDpEvent):
            return ev.SubsampledGaussian(inner.noise_multiplier, rate)
        if isinstance(inner, dp.LaplaceDpEvent):
            return ev.SubsampledLaplace(1.0 / inner.noise_multiplier, rate)
    if isinstance(event, dp.SampledWithoutReplacementDpEvent) and meant_for == "replace-one":
        inner, sizes = event.event, (event.source_dataset_size, event.sample_size)
        if isinstance(inner, dp.GaussianDpEvent):
            return ev.SubsampledGaussianRelease(inner.noise_multiplier, *sizes)
    raise Unsupported(f"no event here is {event} with {meant_for} neighbours")
