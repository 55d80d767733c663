"""From a panel to its table: every curve at every value, by pure functions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from raydp_sim.errors import InputError, bad_field
from raydp_sim.figures import curves, errors, frequencies, regret, risk, sketched
from raydp_sim.figures.errors import Value
from raydp_sim.figures.model import Curve, Figure, FigureFile, Panel
from raydp_sim.privacy.bound import RdpBound, Result
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Release, SelfSampledShuffle, Shuffle, SubsampledShuffle

_SCHEMA = [
    ("curve", pa.string()),
    ("status", pa.string()),
    ("value", pa.float64()),
    ("spread", pa.float64()),
    ("order", pa.int64()),
    ("note", pa.string()),
]

# Who computes what figure.curves describes; all else are bounds.
_Check = Callable[[Mapping[str, Curve], Panel, str, float, str], None]
_Value = Callable[[Mapping[str, Curve], Panel, str, float], Value]
_OWN: dict[str, tuple[_Check, _Value]] = {
    "mse": (errors.check, errors.value),
    "bits": (errors.check, errors.value),
    "regret": (regret.check, regret.value),
    "l1": (frequencies.check, frequencies.value),
    "likelihood": (errors.check, errors.value),
    "information": (errors.check, errors.value),
    "sketched": (sketched.check, sketched.value),
    "gamma": (errors.check, errors.value),
    "error": (errors.check, errors.value),
    "accuracy": (errors.check, errors.value),
    "guarantee": (errors.check, errors.value),
    "risk": (risk.check, risk.value),
}
# Beyond these, formulas overflow or arrays fill the memory; nothing in the literature is near.
_MOST = {"epsilon0": 100, "clients": 10**10, "rounds": 10**7, "alpha": 10**7}


@dataclass(frozen=True)
class Point:
    """Everything that a bound has to know at one place of the x axis."""

    event: Release
    rounds: int = 1
    delta: float = 0.0
    alpha: float = 0.0


def point(panel: Panel, x: float) -> Point:
    """Return the event and parameters at x.

    Raises:
        InputError: names the field of the panel, its value and the remedy.
    """
    known = {name: value for name, value in panel.fixed if value is not None}
    if panel.sweep in known:
        remedy = f"the panel sweeps {panel.sweep}; leave it out of fixed"
        raise bad_field(f"fixed.{panel.sweep}", known[panel.sweep], remedy)
    if panel.sweep in ("clients", "rounds") and not float(x).is_integer():
        raise bad_field("values", x, f"{panel.sweep} must be whole numbers")
    known[panel.sweep] = int(x) if panel.sweep in ("clients", "rounds") else float(x)
    for name in _needed(panel):
        if name not in known:
            raise InputError(f"fixed.{name} is missing; add it, or sweep it")
    others = ("alpha",) if panel.quantity == "epsilon" else ("rounds", "delta")
    for name in (*others, *errors.OWN, *sketched.OWN, "actions"):
        if name in known:
            field = "sweep" if name == panel.sweep else f"fixed.{name}"
            given = name if name == panel.sweep else known[name]
            raise bad_field(field, given, f"{panel.quantity} has none; remove it")
    for name, most in _MOST.items():
        if known.get(name, 0) > most:
            field = "values" if name == panel.sweep else f"fixed.{name}"
            raise bad_field(field, known[name], f"{name} must be at most {most:g}")
    return Point(
        _event(known),
        int(known.get("rounds", 1)),
        float(known.get("delta", 0.0)),
        float(known.get("alpha", 0.0)),
    )


def _needed(panel: Panel) -> tuple[str, ...]:
    own = ("alpha",) if panel.quantity == "rdp" else ("rounds", "delta")
    return ("epsilon0", "clients", *own)


def _event(known: dict[str, float]) -> Release:
    epsilon0, clients = float(known["epsilon0"]), int(known["clients"])
    ways = [name for name in ("sampled", "rate", "joining") if name in known]
    if len(ways) > 1:
        raise bad_field(f"fixed.{ways[1]}", known[ways[1]], f"fixed.{ways[0]} is given; keep one")
    if not ways:
        return Shuffle(epsilon0, clients)
    if "joining" in known:
        return SelfSampledShuffle(epsilon0, clients, float(known["joining"]))
    sampled = int(known.get("sampled", round(known.get("rate", 1.0) * clients)))
    if not 1 <= sampled <= clients:
        field = f"fixed.{ways[0]}"
        raise bad_field(field, known[ways[0]], f"it must select from 1 to {clients} clients")
    return SubsampledShuffle(epsilon0, clients, sampled)


def check(file: FigureFile) -> None:
    """Refuse what could not be computed, before anything is.

    Raises:
        InputError: names the field.
    """
    for name, panel in file.figure.panels.items():
        try:
            for x in panel.values:
                for curve in panel.curves:
                    check_curve(file.figure, panel, curve, x)
        except InputError as error:
            raise InputError(f"figure.panels.{name}.{error}") from None
    for label in file.figure.labels:
        if label in file.figure.curves:
            continue
        known = {curve for panel in file.figure.panels.values() for curve in panel.curves}
        if label not in known:
            remedy = f"no panel has such a curve; choose among {', '.join(sorted(known))}"
            raise InputError(f"figure.labels.{label}: {remedy}")


def check_curve(figure: Figure, panel: Panel, curve: str, x: float, field: str = "curves") -> None:
    """Refuse a curve that is unknown or does not apply to the panel at x."""
    if panel.quantity in _OWN:
        _OWN[panel.quantity][0](figure.curves, panel, curve, x, field)
        return
    here = point(panel, x)
    try:
        bound = curves.find(panel.quantity, curve, here.event, here.rounds)
    except ValueError as error:
        raise bad_field(field, curve, str(error)) from None
    if isinstance(bound, RdpBound) and not curves.order_fits(bound, here.alpha):
        place = "values" if panel.sweep == "alpha" else "fixed.alpha"
        orders = "real orders > 1" if bound.real_orders else "whole orders >= 2"
        raise bad_field(place, here.alpha, f"{curve} takes {orders}")


@lru_cache(maxsize=100_000)
def evaluate(quantity: str, curve: str, here: Point) -> Result:
    """Return a curve's value at a point, raw; nan where the bound is silent, and the note says why.

    Example:
        >>> here = Point(SubsampledShuffle(2.0, 10**6, 1000), 10**5, 1e-8)
        >>> round(evaluate("epsilon", "rdp-subsampled", here).epsilon, 4)
        1.0402
    """
    bound = curves.find(quantity, curve, here.event)
    try:
        if isinstance(bound, RdpBound):
            return Result(bound.rdp(here.event, here.alpha))
        return bound.epsilon([(here.event, here.rounds)], here.delta)
    except NotApplicable as silence:
        return Result(math.nan, None, str(silence))


def value(figure: Figure, panel: Panel, curve: str, x: float) -> Result:
    """Return a curve's value at x: of a bound, or of an error, number of bits or regret."""
    return _computed(figure, panel, curve, x).result


def _computed(figure: Figure, panel: Panel, curve: str, x: float) -> Value:
    if panel.quantity in _OWN:
        return _OWN[panel.quantity][1](figure.curves, panel, curve, x)
    here = point(panel, x)
    status = curves.find(panel.quantity, curve, here.event).status
    return Value(evaluate(panel.quantity, curve, here), status)


def table(figure: Figure, panel: Panel, each: Callable[[], None] = lambda: None) -> pa.Table:
    """Return the panel's data, one row per value and curve.

    Args:
        figure: of the panel, for its curves.
        panel: what to compute.
        each: called after every row.
    """
    rows = []
    for x in panel.values:
        for curve in panel.curves:
            computed = _computed(figure, panel, curve, x)
            found = computed.result
            rows.append(
                {
                    panel.sweep: x,
                    "curve": curve,
                    "status": computed.status,
                    "value": None if math.isnan(found.epsilon) else found.epsilon,
                    "spread": computed.spread,
                    "order": found.alpha,
                    "note": found.note,
                }
            )
            each()
    return pa.Table.from_pylist(rows, schema=pa.schema([(panel.sweep, pa.float64()), *_SCHEMA]))
