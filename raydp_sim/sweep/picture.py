"""The picture of a sweep: error against epsilon, one line per value of what else was swept."""

import math
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from raydp_sim.sweep.grid import shown
from raydp_sim.sweep.outcomes import Outcome

# Okabe and Ito's colours, which the colour-blind can tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_WIDE = 20.0  # numbers that differ by more than this factor are drawn on a log scale


def draw(outcomes: Sequence[Outcome], measure: str | None, best: Outcome | None) -> bytes:
    """Return the picture as a PNG.

    Against epsilon where it varies, else against the first swept field. What varies along a line
    is one field; there is a line for every combination of the others.

    Args:
        outcomes: the points, in the order of the grid.
        measure: which error it is.
        best: the point to mark.
    """
    # Matplotlib is slow to import and only needed at the end.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    able = [one for one in outcomes if one.error is not None]
    along = _along(able)
    across = _across(able, along)
    places = [across(one) for one in able]
    figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
    lines: dict[str, list[tuple[float, Outcome]]] = {}
    for place, one in zip(places, able, strict=True):
        rest = {field: value for field, value in one.point.values.items() if field != along}
        name = ", ".join(f"{field} {shown(value)}" for field, value in rest.items())
        lines.setdefault(name, []).append((place, one))
    for number, (name, members) in enumerate(lines.items()):
        joined = "-" if across.names is None else ""  # names have no order to join them in
        _line(axis, sorted(members, key=lambda member: member[0]), name, number, joined)
    if best is not None and best.error is not None and len(able) > 1:
        axis.plot(
            across(best),
            best.error,
            "o",
            ms=15,
            mfc="none",
            mec="0.2",
            mew=1.4,
            label="least error",
        )
    axis.set_xlabel(across.label)
    if across.names is not None:
        tilted = max(map(len, across.names), default=0) * len(across.names) > 60
        axis.set_xticks(range(len(across.names)), across.names, rotation=25 if tilted else 0)
        axis.margins(x=0.1)
    elif _wide(places):
        axis.set_xscale("log")
    axis.set_ylabel((measure or "error").replace("_", " "))
    if able and all((one.error or 0.0) > 0.0 for one in able):
        axis.set_yscale("log")
    bars = any(one.standard_error is not None for one in able)
    title = f"{len(able)} of {len(outcomes)} points" if len(able) < len(outcomes) else ""
    note = "bars: one standard error to each side" if bars else "one repetition, no bars"
    axis.set_title("; ".join(filter(None, (title, note))), loc="left", fontsize=9, color="0.35")
    axis.grid(alpha=0.25, which="major")
    axis.spines[["top", "right"]].set_visible(False)
    if axis.get_legend_handles_labels()[0]:
        # Beside the axes, where it hides no point.
        figure.legend(frameon=False, fontsize=9, loc="outside right upper")
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    plt.close(figure)
    return buffer.getvalue()


class _Epsilon:
    """Places on an axis of epsilon."""

    label = "epsilon of the client charged most"
    names: list[str] | None = None

    def __call__(self, one: Outcome) -> float:
        return one.epsilon


class _Field:
    """Places on an axis of a swept field: numbers as they are, other values side by side."""

    def __init__(self, field: str, outcomes: Sequence[Outcome]) -> None:
        self.field = self.label = field
        values = [one.point.values[field] for one in outcomes]
        number = all(isinstance(value, int | float) for value in values)
        number = number and not any(isinstance(value, bool) for value in values)
        self.names = None if number else list(dict.fromkeys(map(shown, values)))

    def __call__(self, one: Outcome) -> float:
        value = one.point.values[self.field]
        return float(value) if self.names is None else float(self.names.index(shown(value)))


def _across(outcomes: Sequence[Outcome], along: str) -> _Epsilon | _Field:
    epsilons = [one.epsilon for one in outcomes]
    if all(map(math.isfinite, epsilons)) and _varies(epsilons):
        return _Epsilon()
    return _Field(along, outcomes)


def _along(outcomes: Sequence[Outcome]) -> str:
    """Return the first field whose change alone changes epsilon; if there is none, the first."""
    fields = list(outcomes[0].point.values) if outcomes else [""]
    for field in fields:
        groups: dict[str, list[float]] = {}
        for one in outcomes:
            rest = {name: value for name, value in one.point.values.items() if name != field}
            groups.setdefault(shown(rest), []).append(one.epsilon)
        if any(_varies(group) for group in groups.values()):
            return field
    return fields[0]


def _varies(values: Sequence[float]) -> bool:
    return any(not math.isclose(value, values[0], rel_tol=1e-9) for value in values)


def _wide(places: Sequence[float]) -> bool:
    return bool(places) and min(places) > 0.0 and max(places) / min(places) > _WIDE


def _line(
    axis: Any, members: list[tuple[float, Outcome]], name: str, number: int, joined: str
) -> None:
    style = {
        "color": _COLOURS[number % len(_COLOURS)],
        "marker": _MARKERS[number // len(_COLOURS) % len(_MARKERS)],
        "label": name or None,
    }
    errors = [one.error for _, one in members]
    spread = [one.standard_error or 0.0 for _, one in members]
    # On a log axis a bar may not reach 0.
    low = [min(half, 0.9 * (error or 0.0)) for half, error in zip(spread, errors, strict=True)]
    where = [place for place, _ in members]
    axis.errorbar(where, errors, yerr=[low, spread], ls=joined, lw=1.5, ms=5, capsize=3, **style)
