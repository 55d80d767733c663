"""What training runs came to, one row per run, and the same of those that differ in seed only."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.metrics.panels import BLUE, GREEN, ORANGE, PINK

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
SCHEMA = pa.schema(
    [
        ("setting", _TEXT),
        ("mechanism", _TEXT),
        ("seed", _WHOLE),
        ("rounds", _WHOLE),
        ("withheld", _WHOLE),
        ("reports", _WHOLE),
        ("bits", _WHOLE),
        ("epsilon_local", _REAL),
        ("planned", _REAL),
        ("epsilon", _REAL),
        ("delta", _REAL),
        ("accuracy", _REAL),
        ("alone", _REAL),
    ]
)
"""Of a table of runs. `setting` is the name of the run's directory without its seed; `accuracy` is
that of the common model, or of personal models on their clients' own samples; `alone` that of
models that each client trained alone; all on test samples, or on those for validation (`row`)."""
SCORES = {
    "test": ("personal_accuracy", "alone_accuracy", "test_accuracy"),
    "validation": (
        "personal_validation_accuracy",
        "alone_validation_accuracy",
        "validation_accuracy",
    ),
}
"""Samples that accuracies may be on: of personal models, of those alone, of the common one."""
_ALIKE = 1.01  # lengths of reports that nobody would choose by
_COLOURS = (BLUE, ORANGE, GREEN, PINK, "0.3")
_MARKS, _SHAPES = "os^D", ("circles", "squares", "triangles", "diamonds")


@dataclass(frozen=True)
class Outcome:
    """What runs of one setting came to.

    Attributes:
        setting, mechanism: of all of them.
        rounds: that were planned.
        withheld: of these, on average.
        bits: of a report.
        epsilon_local: of a report, the largest; None if it has none.
        planned: epsilon of all rounds, for a client in every release.
        epsilon: of the client charged most, the largest.
        accuracy: mean over the runs; None if there is none.
        spread: standard deviation of a single one; None if there is but one.
        alone: mean accuracy of models trained by each client alone.
        runs: how many there are.
    """

    setting: str
    mechanism: str
    rounds: int
    withheld: float
    bits: int
    epsilon_local: float | None
    planned: float
    epsilon: float
    accuracy: float | None
    spread: float | None
    alone: float | None
    runs: int


def row(
    setting: str, document: dict[str, Any], summary: dict[str, Any], of: str = "test"
) -> dict[str, Any]:
    """Return what is kept of one run.

    Args:
        setting: its name.
        document: of the scenario.
        summary: of the run.
        of: the samples that accuracies are on; see `SCORES`.
    """
    privacy, metrics = summary["privacy"], summary["metrics"]
    personal, alone, common = SCORES[of]
    # Of a run with personal models the common one is only what they share.
    shared = not any(name.startswith("personal_") for name in metrics)
    sent = summary["communication"]
    return {
        "setting": setting,
        "mechanism": document["mechanism"]["kind"],
        "seed": summary["seed"],
        "rounds": summary["rounds"],
        "withheld": int(metrics.get("withheld", 0)),
        "reports": sent["reports"],
        "bits": sent["bits_per_report"],
        "epsilon_local": privacy.get("epsilon_local"),
        "planned": privacy.get("planned"),
        "epsilon": privacy["epsilon"],
        "delta": privacy["delta"],
        "accuracy": metrics.get(common if shared else personal),
        "alone": metrics.get(alone),
    }


def table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Return runs as a table."""
    return pa.Table.from_pylist(list(rows), SCHEMA)


def outcomes(runs: pa.Table) -> list[Outcome]:
    """Return the runs of each setting together, in the order of the first of each.

    Example:
        >>> one = {name: 1 for name in SCHEMA.names} | {"setting": "a", "mechanism": "rinf"}
        >>> found = outcomes(table([one | {"accuracy": 0.5}, one | {"accuracy": 0.7}]))
        >>> [(each.runs, round(each.accuracy, 3), round(each.spread, 3)) for each in found]
        [(2, 0.6, 0.141)]
    """
    grouped: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for each in runs.to_pylist():
        key = (each["setting"], each["mechanism"], each["rounds"], each["bits"])
        grouped.setdefault(key, []).append(each)
    return [_together(rows, *key) for key, rows in grouped.items()]


def _together(
    rows: list[dict[str, Any]], setting: str, mechanism: str, rounds: int, bits: int
) -> Outcome:
    def known(name: str) -> list[float]:
        return [float(each[name]) for each in rows if each[name] is not None]

    accuracy = known("accuracy")
    return Outcome(
        setting,
        mechanism,
        rounds,
        float(np.mean(known("withheld"))),
        bits,
        max(known("epsilon_local"), default=None),
        max(known("planned"), default=float("inf")),
        max(known("epsilon")),
        float(np.mean(accuracy)) if accuracy else None,
        float(np.std(accuracy, ddof=1)) if len(accuracy) > 1 else None,
        float(np.mean(known("alone"))) if known("alone") else None,
        len(rows),
    )


def draw(found: list[Outcome], path: Path) -> None:
    """Draw accuracy against the bits of a report, or by setting where reports are about as long."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(8.5, 5.2), layout="constrained")
    shown = [each for each in found if each.accuracy is not None]
    lengths = [each.bits for each in shown]
    if max(lengths) > _ALIKE * min(lengths):
        _against_bits(axis, shown)
    else:
        _by_setting(axis, shown)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _against_bits(axis: Any, shown: list[Outcome]) -> None:
    """Draw one colour per epsilon, a line through what no shorter report beats, names once.

    Mechanisms with reports of one length have marks of their own. Runs of fewer rounds than others
    have at their epsilon are hollow, and no part of the line.
    """
    marks = _marks(shown)
    for number, level in enumerate(sorted({_level(each.epsilon) for each in shown})):
        here = [each for each in shown if _level(each.epsilon) == level]
        colour, most = _COLOURS[number % len(_COLOURS)], max(each.rounds for each in here)
        for each in here:
            inside = colour if each.rounds == most else "white"
            shape = _MARKS[marks[each.mechanism, each.bits]]
            _dots(axis, [each.bits], [each], colour, None, shape, inside)
        axis.plot([], [], "o", color=colour, label=f"epsilon {level:g}, {most:,} rounds")
        best = frontier([each for each in here if each.rounds == most])
        x, y = [each.bits for each in best], [each.accuracy for each in best]
        axis.step(x, y, where="post", color=colour, lw=0.8, alpha=0.5)
    if len({(_level(each.epsilon), each.rounds) for each in shown}) > number + 1:
        axis.plot([], [], "o", mfc="white", color="0.3", label="fewer rounds")
    longest = max(each.bits for each in shown)
    for (name, size), mark in marks.items():
        same = [e for e in shown if (e.mechanism, e.bits) == (name, size)]
        shared = sum(bits == size for _, bits in marks) > 1
        text = f"{name} ({_SHAPES[mark]})" if shared else name
        known = [(e.accuracy or 0.0, e.spread or 0.0) for e in same]
        place: dict[str, Any] = {"textcoords": "offset points", "size": 8}
        if size == longest:  # there is no room to the right of it, and others may lie below
            high = max(accuracy + spread for accuracy, spread in known)
            axis.annotate(text, (size, high), (6, 5), ha="right", va="bottom", **place)
        else:
            low = min(accuracy - spread for accuracy, spread in known)
            axis.annotate(text, (size, low), (4, -5), ha="left", va="top", **place)
    axis.set(xscale="log", xlabel="bits of a report", ylabel="accuracy")
    axis.xaxis.set_major_formatter(lambda bits, _: f"{bits:,.0f}")
    axis.margins(x=0.08, y=0.1)
    axis.legend(frameon=False, loc="lower right")


def _marks(shown: list[Outcome]) -> dict[tuple[str, int], int]:
    """Return the number of the mark of every mechanism and length."""
    found: dict[tuple[str, int], int] = {}
    for each in shown:
        alike = sum(bits == each.bits for _, bits in found)
        found.setdefault((each.mechanism, each.bits), min(alike, len(_MARKS) - 1))
    return found


def frontier(runs: list[Outcome]) -> list[Outcome]:
    """Return those that are more accurate than all whose reports are as short, shortest first.

    Example:
        >>> one = {name: 1 for name in SCHEMA.names} | {"mechanism": "rinf"}
        >>> made = [one | {"setting": str(b), "bits": b, "accuracy": a}
        ...         for b, a in [(15, 0.8), (15, 0.9), (64, 0.7), (99, 0.95)]]
        >>> [(each.bits, each.accuracy) for each in frontier(outcomes(table(made[1:])))]
        [(15, 0.9), (99, 0.95)]
    """
    best: list[Outcome] = []
    for each in sorted(runs, key=lambda run: (run.bits, -(run.accuracy or 0.0))):
        if not best or (each.accuracy or 0.0) > (best[-1].accuracy or 0.0):
            best.append(each)
    return best


def _by_setting(axis: Any, shown: list[Outcome]) -> None:
    _dots(axis, list(range(len(shown))), shown, BLUE, "as trained")
    alone = [(x, each.alone) for x, each in enumerate(shown) if each.alone is not None]
    if alone:
        axis.plot(*zip(*alone, strict=True), "_", ms=22, color=ORANGE, label="each client alone")
        axis.legend(frameon=False)
    names = [each.setting for each in shown]
    axis.set_xticks(range(len(shown)), names, rotation=30, ha="right")
    axis.set(ylabel="accuracy")


def _dots(
    axis: Any,
    x: list[int],
    shown: list[Outcome],
    colour: str,
    label: str | None,
    mark: str = "o",
    inside: str | None = None,
) -> None:
    accuracy, spread = [each.accuracy for each in shown], [each.spread or 0.0 for each in shown]
    how = {"fmt": mark, "ms": 6, "capsize": 3, "color": colour, "label": label}
    axis.errorbar(x, accuracy, spread, mfc=inside or colour, **how)


def _level(epsilon: float) -> float:
    # Runs at one target end a hair below it.
    return float(f"{epsilon:.2g}") if epsilon < 1.0 else round(epsilon, 1)
