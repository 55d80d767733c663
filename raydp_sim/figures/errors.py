"""Curves of errors and bits: of mechanisms at a calibration, of closed forms, or the least."""

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from raydp_sim.errors import InputError, bad_field
from raydp_sim.figures.accountants import calibrated
from raydp_sim.figures.formulas import FORMULAS
from raydp_sim.figures.key_formulas import KEY_FORMULAS
from raydp_sim.figures.model import Curve, Panel
from raydp_sim.figures.simulate import Measured, clipping, simulate
from raydp_sim.figures.vote_formulas import VOTE_FORMULAS
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.model import describe
from raydp_sim.privacy.bound import Result
from raydp_sim.privacy.errors import NotApplicable, Unsupported

# Parameters of errors that bounds have no use for.
OWN = (
    "epsilon",
    "dimension",
    "coordinates",
    "levels",
    "samples",
    "categories",
    "randomness",
    "likelihood",
    "voters",
    "vote_epsilon",
    "vote_delta",
    "multiple",
    "tally",
    "asked",
    "slack",
    "queries",
    "right",
)
_WHOLE = (
    "clients",
    "dimension",
    "coordinates",
    "levels",
    "samples",
    "categories",
    "voters",
    "tally",
    "asked",
    "queries",
)
_KNOWN = ("epsilon0", "delta", "clients", *OWN)
# Filled into a mechanism's parameters where its document leaves them out.
_FILLED = ("dimension", "clients", "coordinates", "levels", "categories", "randomness")
_WORDS = ("mechanism", "formula", "least")
_FORMULAS = FORMULAS | KEY_FORMULAS | VOTE_FORMULAS


@dataclass(frozen=True)
class Value:
    """A value, what kind of value it is, and its standard error where it was drawn."""

    result: Result
    status: str
    spread: float | None = None


def setting(
    panel: Panel, x: float, names: Sequence[str] = _KNOWN, whole: Sequence[str] = _WHOLE
) -> dict[str, float]:
    """Return the parameters of a panel at x, which must be of these names.

    Raises:
        InputError: names the field of the panel, its value and the remedy.
    """
    known = {name: value for name, value in panel.fixed if value is not None}
    if panel.sweep in known:
        remedy = f"the panel sweeps {panel.sweep}; leave it out of fixed"
        raise bad_field(f"fixed.{panel.sweep}", known[panel.sweep], remedy)
    for name in (*known, panel.sweep):
        if name not in names:
            field = "sweep" if name == panel.sweep else f"fixed.{name}"
            raise bad_field(field, known.get(name, name), f"{panel.quantity} has none; remove it")
    if panel.sweep in whole and not float(x).is_integer():
        raise bad_field("values", x, f"{panel.sweep} must be whole numbers")
    return {**known, panel.sweep: int(x) if panel.sweep in whole else float(x)}


def _names(panel: Panel) -> tuple[str, ...]:
    """Say what a panel may fix; orders of divergences only where a guarantee is what is shown."""
    return (*_KNOWN, "alpha") if panel.quantity == "guarantee" else _KNOWN


def check(curves: Mapping[str, Curve], panel: Panel, name: str, x: float, field: str) -> None:
    """Refuse a curve that is unknown or cannot be computed at x.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    known, curve = setting(panel, x, _names(panel)), find(curves, name, field)
    if sum(getattr(curve, word) is not None for word in _WORDS) != 1:
        raise bad_field(field, name, f"figure.curves.{name} needs one of {', '.join(_WORDS)}")
    if curve.least is not None:
        for other in curve.least:
            if find(curves, other, f"curves.{name}.least").least is not None:
                raise bad_field(field, other, "it is itself the least of others; name those")
            check(curves, panel, other, x, field)
        return
    missing = [each for each in _needs(curve, panel.quantity) if each not in known]
    if missing:
        raise InputError(f"fixed.{missing[0]} is missing; curve {name!r} needs it: add it")
    if curve.formula is not None:
        found = _FORMULAS.get(curve.formula)
        if found is None or found.quantity != panel.quantity:
            choices = [each for each, f in _FORMULAS.items() if f.quantity == panel.quantity]
            near = difflib.get_close_matches(curve.formula, choices, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise bad_field(
                field, name, f"{hint}formulas of {panel.quantity} are {', '.join(choices)}"
            )
        return
    try:
        built = _built(curve, known)
    except InputError as error:
        raise bad_field(field, name, str(error)) from None
    if (curve.value == "entropy") > (panel.quantity == "bits"):
        raise bad_field(field, name, "the entropy of a report is among its bits; take a bits panel")
    if curve.value == "entropy" and type(built).entropy is Mechanism.entropy:
        raise bad_field(field, name, f"'{built.kind}' does not state the entropy of its reports")


def find(curves: Mapping[str, Curve], name: str, field: str) -> Curve:
    """Return the curve of this name.

    Raises:
        InputError: says which there are.
    """
    if name in curves:
        return curves[name]
    near = difflib.get_close_matches(name, curves, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise bad_field(field, name, f"{hint}figure.curves has {', '.join(curves) or 'none'}")


def _needs(curve: Curve, quantity: str) -> tuple[str, ...]:
    if curve.formula is not None:
        return _FORMULAS[curve.formula].needs if curve.formula in _FORMULAS else ()
    if curve.value.startswith("clipping"):
        return ("clients",)
    if curve.model == "local":
        return ("clients", "epsilon0")
    return ("clients", "epsilon", "delta") if quantity == "mse" else ("clients", "epsilon")


def value(curves: Mapping[str, Curve], panel: Panel, name: str, x: float) -> Value:
    """Return a curve's value at x; nan where an accountant is silent, and the note says why."""
    curve, known = curves[name], setting(panel, x, _names(panel))
    if curve.least is not None:
        all_of = {each: value(curves, panel, each, x) for each in curve.least}
        best = min(all_of, key=lambda each: _or_most(all_of[each].result.epsilon))
        return replace(all_of[best], result=Result(all_of[best].result.epsilon, None, best))
    return _value(panel.quantity, curve.model_dump_json(), json.dumps(known, sort_keys=True))


def _or_most(number: float) -> float:
    return math.inf if math.isnan(number) else number


@lru_cache(maxsize=100_000)
def _value(quantity: str, written: str, parameters: str) -> Value:
    curve, known = Curve.model_validate_json(written), json.loads(parameters)
    if curve.formula is not None:
        formula = _FORMULAS[curve.formula]
        return Value(Result(formula.compute(known), None, formula.source), formula.status)
    built = _built(curve, known)
    if quantity == "bits":
        bits = built.entropy if curve.value == "entropy" else float(built.bits)
        return Value(Result(bits), "exact")
    try:
        if curve.model == "shuffle" and not curve.value.startswith("clipping"):
            built = calibrated(
                built,
                curve.accountant,
                known["clients"],
                known["epsilon"],
                known["delta"],
                curve.charge,
            )
    except (NotApplicable, Unsupported) as silence:
        return Value(Result(math.nan, None, str(silence)), "exact")
    return _error(curve, built, known["clients"])


def _error(curve: Curve, built: Mechanism, n: int) -> Value:
    note = f"epsilon_local {built.need_epsilon():.6g}" if built.where == "client" else ""
    if curve.value == "worst":
        return Value(Result(built.worst_mse() / n, None, note), built.worst_mse_is)
    written = built.model_dump_json()
    if curve.value.startswith("clipping"):
        equal = curve.value == "clipping-equal"
        found = _clipped(type(built), written, n, curve.repetitions, equal)
        return Value(Result(found, None, "by clipping alone"), "simulated")
    measured = _measured(type(built), written, n, curve.repetitions)
    note = f"{note}, standard error {measured.spread:.3g}"
    if curve.value == "expectation":
        return Value(Result(measured.expected, None, note), "exact")
    if curve.value == "simulated":
        return Value(Result(measured.mean, None, note), "simulated", measured.spread)
    return Value(Result(measured.deviation, None, note), "simulated")


@lru_cache(maxsize=1000)
def _measured(cls: type[Mechanism], written: str, n: int, repetitions: int) -> Measured:
    return simulate(cls.model_validate_json(written), n, repetitions)


@lru_cache(maxsize=1000)
def _clipped(cls: type[Mechanism], written: str, n: int, repetitions: int, equal: bool) -> float:
    return clipping(cls.model_validate_json(written), n, repetitions, equal)


def _built(curve: Curve, known: Mapping[str, float]) -> Mechanism:
    """Build a curve's mechanism; behind a shuffler with any loss, which is calibrated later.

    Raises:
        InputError: names the field of the mechanism.
    """
    given: dict[str, Any] = dict(curve.mechanism or {})
    try:
        fields = MECHANISMS.find(str(given.get("kind", ""))).model_fields
    except ValueError as error:
        raise InputError(f"kind is {given.get('kind')!r}; {error}") from None
    filled = {name: known[name] for name in _FILLED if name in known}
    if curve.recommended:
        worth = known["clients"] * min(known["epsilon"], known["epsilon"] ** 2)
        d = given.get("dimension", known.get("dimension", 1))
        filled["coordinates"] = max(1, min(d, math.ceil(worth)))
        filled["levels"] = min(50, max(1, math.ceil(math.log2(max(1.0, worth / d)))))
    given = {name: v for name, v in filled.items() if name in fields} | given
    cls = MECHANISMS.find(given.pop("kind"))
    given[cls.epsilon_field] = known.get("epsilon0", 1.0)
    try:
        built = cls.model_validate(given)
        built.bits  # noqa: B018 - what cannot be computed is refused here
        return built
    except ValidationError as error:
        raise InputError(describe(error, fields, prefix=("mechanism",))) from None
