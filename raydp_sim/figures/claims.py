"""What a text claims about its figure, computed and judged."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raydp_sim.errors import InputError, bad_field
from raydp_sim.figures.compute import check_curve, value
from raydp_sim.figures.model import Claim, Figure, FigureFile, Panel

_TWO = ("ratio", "largest-ratio", "crossover", "crossing")
_ROUNDS = ("reached", "crossover")
_EVERYWHERE = ("largest-ratio", "exponent", "crossing")
_SEVERAL = ("exponent", "crossing")


@dataclass(frozen=True)
class Verdict:
    """A claim with our number beside it.

    Attributes:
        claim: what the text says.
        printed: its number, with its unit and sense: "8x", "< 1".
        computed: ours; None where a bound is silent.
        here: ours in words: with the unit, and where it was found.
        holds: whether ours agrees.
        why: why it differs, or what to know where it does not.
    """

    claim: str
    printed: str
    computed: float | None
    here: str
    holds: bool
    why: str


def check(file: FigureFile) -> None:
    """Refuse claims that could not be computed.

    Raises:
        InputError: names the field.
    """
    for index, claim in enumerate(file.claims):
        try:
            _check(claim, file.figure)
        except InputError as error:
            # The panels' own values have been checked before, so it is the claim's place.
            message = str(error).replace("values is", "at is", 1)
            raise InputError(f"claims.{index}.{message}") from None


def _check(claim: Claim, figure: Figure) -> None:
    if claim.panel is not None and claim.panel not in figure.panels:
        raise bad_field("panel", claim.panel, f"choose one of {', '.join(figure.panels)}")
    if claim.panel is None and claim.compute != "largest-ratio":
        raise InputError(f"panel is missing; choose one of {', '.join(figure.panels)}")
    if (claim.over is None) == (claim.compute in _TWO):
        verb = "needs a" if claim.over is None else "takes no"
        raise bad_field("over", claim.over, f"{claim.compute} {verb} second curve")
    if (claim.at is None) != (claim.compute in _EVERYWHERE):
        verb = "needs a" if claim.at is None else "takes no"
        raise bad_field("at", claim.at, f"{claim.compute} {verb} place on the x axis")
    if not _panels(claim, figure):
        raise bad_field("of", claim.of, f"no panel has both it and {claim.over}; name a panel")
    for panel in _panels(claim, figure).values():
        if claim.compute in _ROUNDS and panel.sweep != "rounds":
            raise bad_field("compute", claim.compute, "it needs a panel that sweeps rounds")
        if claim.compute in _SEVERAL and len(set(panel.values)) < 2:
            raise bad_field("compute", claim.compute, "it needs a panel with two values or more")
        x = panel.values[0] if claim.at is None else claim.at
        for field, curve in (("of", claim.of), ("over", claim.over)):
            if curve is not None:
                check_curve(figure, panel, curve, x, field)


def judge(claim: Claim, figure: Figure) -> Verdict:
    """Compute what a claim is about and compare it with what is printed."""
    if claim.compute == "largest-ratio":
        panels = _panels(claim, figure)
        pairs = [
            (_Place(figure, panel).ratio(claim, x), x, name)
            for name, panel in panels.items()
            for x in panel.values
        ]
        computed, x, name = max(pairs, key=lambda pair: _or_least(pair[0]))
        where = f" in {name}" if len(panels) > 1 else ""
        where += f" at {panels[name].sweep} = {x:,g}"
    else:
        (panel,), x = _panels(claim, figure).values(), claim.at or 0.0
        computed, at = _FIND[claim.compute](claim, _Place(figure, panel), x)
        where = f" at {panel.sweep} = {at:,.0f}" if at is not None else ""
    silent = not math.isfinite(computed)
    here = "no value" if silent else f"{computed:.4g}{claim.unit}{where}"
    sign = {"about": "", "below": "< ", "above": "> "}[claim.sense]
    printed = f"{sign}{claim.printed:g}{claim.unit}"
    holds = not silent and _holds(claim, computed)
    return Verdict(claim.claim, printed, None if silent else computed, here, holds, claim.why)


def _holds(claim: Claim, computed: float) -> bool:
    if claim.sense == "about":
        return abs(computed / claim.printed - 1.0) <= claim.tolerance
    return computed < claim.printed if claim.sense == "below" else computed > claim.printed


def _panels(claim: Claim, figure: Figure) -> dict[str, Panel]:
    if claim.panel is not None:
        return {claim.panel: figure.panels[claim.panel]}
    wanted = {claim.of, claim.over}
    return {name: p for name, p in figure.panels.items() if wanted <= set(p.curves)}


@dataclass(frozen=True)
class _Place:
    """A panel of a figure, at which curves have values."""

    figure: Figure
    panel: Panel

    def value(self, curve: str | None, x: float) -> float:
        assert curve is not None  # `check` has seen to it
        return value(self.figure, self.panel, curve, x).epsilon

    def ratio(self, claim: Claim, x: float) -> float:
        below = self.value(claim.over, x)
        return self.value(claim.of, x) / below if below else math.inf


def _or_least(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _at_value(claim: Claim, place: _Place, x: float) -> tuple[float, float | None]:
    return place.value(claim.of, x), None


def _at_ratio(claim: Claim, place: _Place, x: float) -> tuple[float, float | None]:
    return place.ratio(claim, x), None


def _exponent(claim: Claim, place: _Place, x: float) -> tuple[float, float | None]:
    """Return the slope of the curve by least squares, both axes in logarithms."""
    values = [place.value(claim.of, at) for at in place.panel.values]
    if not all(value > 0.0 for value in values):
        return math.nan, None
    return float(np.polyfit(np.log(place.panel.values), np.log(values), 1)[0]), None


def _crossing(claim: Claim, place: _Place, x: float) -> tuple[float, float | None]:
    """Return where the ratio passes 1, on a straight line between values in logarithms."""
    at = sorted(set(place.panel.values))
    ratios = np.array([place.ratio(claim, each) for each in at])
    if not (np.isfinite(ratios).all() and (ratios > 0.0).all()):
        return math.nan, None
    logs = np.log(ratios)
    turns = np.flatnonzero((logs[:-1] >= 0.0) != (logs[1:] >= 0.0))
    if len(turns) != 1:
        return math.nan, None  # never, or not for good
    (i,) = turns
    share = logs[i] / (logs[i] - logs[i + 1])
    return float(at[i] * (at[i + 1] / at[i]) ** share), None


def _reached(claim: Claim, place: _Place, x: float) -> tuple[float, float | None]:
    """Return the largest value within what is printed, and its round: values rise with rounds."""
    last = _first(lambda rounds: place.value(claim.of, rounds) > claim.printed, int(x) + 1) - 1
    return (place.value(claim.of, last), last) if last else (math.nan, None)


def _crossover(claim: Claim, place: _Place, x: float) -> tuple[float, float | None]:
    """Return the first round at which `of` is below `over`, if it stays so."""
    first = _first(lambda rounds: place.ratio(claim, rounds) < 1.0, int(x) + 1)
    return float(first) if first <= int(x) else math.nan, None


def _first(true_from: Callable[[int], bool], end: int) -> int:
    """Return the first of 1, ..., end - 1 from which on it is true; end if it never is."""
    low, high = 0, end
    while high - low > 1:
        middle = (low + high) // 2
        if true_from(middle):
            high = middle
        else:
            low = middle
    return high


_FIND: dict[str, Callable[[Claim, _Place, float], tuple[float, float | None]]] = {
    "value": _at_value,
    "ratio": _at_ratio,
    "exponent": _exponent,
    "crossing": _crossing,
    "reached": _reached,
    "crossover": _crossover,
}
