"""The picture of `raydp-sim account shuffle --plot`: epsilon by every bound, over one parameter."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from raydp_sim.cli.accounting import Run, ranked
from raydp_sim.errors import bad_field
from raydp_sim.privacy.accountant import Account, account

# Okabe and Ito's colours, which the colour-blind can tell apart, and a few between them.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#8C6D31")
_POINTS = 15
_MOST = 8
# Shown by another line already, or so far off that they only compress the axis.
_LEFT_OUT = ("pure", "rdp-best", "rdp-wbk-naive", "rdp-wbk")
_LABELS = {"n": "clients n", "T": "rounds T", "epsilon0": "local loss ε₀ of one message"}


def draw(
    run: Run,
    epsilon0: float,
    over: str,
    found: Account,
    path: Path,
    say: Callable[[str], None],
) -> None:
    """Draw epsilon of the run against n, T or epsilon0 into a PNG file.

    Args:
        run: as asked for.
        epsilon0: as asked for.
        over: what varies, around (n, epsilon0) or up to (T) what was asked for.
        found: every bound at that point; those that answered are drawn.
        path: of the picture.
        say: called with the point that is being computed.
    """
    names = [line.name for line in ranked(list(found.lines)) if line.name not in _LEFT_OUT]
    names = names[: _MOST - 2] + [n for n in names[_MOST - 2 :] if found[n].status != "proved"][:2]
    values = _values(run, epsilon0, over)
    lines: dict[str, list[float]] = {name: [] for name in names}
    for count, value in enumerate(values):
        say(f"{count + 1} of {len(values)}")
        table = _at(run, epsilon0, over, value, names)
        for name in names:
            answer = table[name].capped
            lines[name].append(np.nan if answer is None else max(answer, 1e-12))
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"font.size": 10.5}):
        figure, axis = plt.subplots(figsize=(9.6, 5.2), layout="constrained")
        _curves(axis, values, lines, found)
        axis.set_yscale("log")
        if over != "epsilon0":
            axis.set_xscale("log")
        axis.margins(x=0.012)
        axis.set_xlabel(_LABELS[over])
        axis.set_ylabel(f"ε at δ = {run.delta:g}")
        axis.set_title(_title(run, epsilon0, over), loc="left", fontsize=11.5)
        axis.grid(alpha=0.22, which="major")
        axis.spines[["top", "right"]].set_visible(False)
        _mark(axis, run, epsilon0, over)
        _label(axis, values, lines)
        try:
            figure.savefig(path, dpi=140)
        except OSError as error:
            raise bad_field("--plot", str(path), f"it cannot be written: {error}") from None
        finally:
            plt.close(figure)


def _values(run: Run, epsilon0: float, over: str) -> list[float]:
    """Return the points at which epsilon is computed, ascending."""
    if over == "epsilon0":
        return [float(v) for v in np.linspace(0.1 * epsilon0, 2.0 * epsilon0, _POINTS)]
    if over == "T":
        low, high = 1.0, float(max(run.rounds, 100))
    else:
        low, high = max(run.sampled or 2, run.clients / 100.0), run.clients * 10.0
    return [float(v) for v in np.unique(np.geomspace(low, max(high, 2 * low), _POINTS).round())]


def _at(run: Run, epsilon0: float, over: str, value: float, names: list[str]) -> Account:
    if over == "epsilon0":
        epsilon0 = value
    elif over == "T":
        run = replace(run, rounds=int(value))
    else:
        run = replace(run, clients=int(value))
    event, delta = run.charged(epsilon0)
    return account([(event, run.rounds)], delta, names)


def _curves(axis: Any, values: list[float], lines: dict[str, list[float]], found: Account) -> None:
    for (name, line), colour in zip(lines.items(), _COLOURS, strict=False):
        status = found[name].status
        style: dict[str, Any] = {"lw": 2.6 if name == found.best else 1.6}
        if status != "proved":
            style = {"lw": 1.3, "dashes": (5, 3) if status == "lower" else (1.5, 2)}
        axis.plot(values, line, color=colour, label=f"{name} ({status})", **style)


def _mark(axis: Any, run: Run, epsilon0: float, over: str) -> None:
    asked = {"n": run.clients, "T": run.rounds, "epsilon0": epsilon0}[over]
    axis.axvline(asked, color="#999999", lw=0.8, ls=":", zorder=0)


def _label(axis: Any, values: list[float], lines: dict[str, list[float]]) -> None:
    """Write each name at its curve's right end, a line's height from the next."""
    ends = {name: line[-1] for name, line in lines.items() if np.isfinite(line[-1])}
    low, high = (np.log10(v) for v in axis.get_ylim())
    gap = 0.047 * (high - low)
    places = sorted(ends, key=lambda name: ends[name])
    heights = [np.log10(ends[name]) for name in places]
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    over = max(0.0, heights[-1] - high) if heights else 0.0
    for i in range(len(heights) - 1, -1, -1):
        limit = heights[i + 1] - gap if i + 1 < len(heights) else heights[i] - over
        heights[i] = min(heights[i], limit)
    colours = {line.get_label().split(" (")[0]: line.get_color() for line in axis.get_lines()}
    for name, height in zip(places, heights, strict=True):
        dashed = [line for line in axis.get_lines() if line.get_label().startswith(f"{name} (")]
        status = dashed[0].get_label().split("(")[1].rstrip(")")
        text = name if status == "proved" else f"{name} ({status})"
        axis.annotate(
            text,
            xy=(values[-1], ends[name]),
            xytext=(1.015, (height - low) / (high - low)),
            textcoords=axis.transAxes,
            color=colours[name],
            va="center",
            fontsize=9.5,
            annotation_clip=False,
        )
    axis.set_ylim(10**low, 10**high)


def _title(run: Run, epsilon0: float, over: str) -> str:
    parts = []
    if over != "epsilon0":
        parts.append(f"ε₀ = {epsilon0:g}")
    if over != "n":
        parts.append(f"n = {run.clients:,}")
    if run.sampled is not None:
        parts.append(f"{run.sampled:,} sampled")
    if run.probability is not None:
        parts.append(f"joining with probability {run.probability:g}")
    if over != "T":
        parts.append(f"T = {run.rounds:,}")
    if run.mechanism is not None:
        parts.append(run.mechanism + (f" over {run.alphabet}" if run.alphabet else ""))
    if run.honest < 1.0:
        parts.append(f"{run.honest:g} of them honest")
    return "Shuffled messages: " + ", ".join(parts)
