"""What algorithms came to that were made of sketched means, scheme by scheme."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
MEASURES = ("loss", "error", "distance")
"""By which schemes are compared: the task's own loss, the squared error of its means, and for power
iteration how far the last vector is from the first principal component."""
SCHEMA = pa.schema(
    [
        ("task", _TEXT),
        ("split", _TEXT),
        ("clients", _WHOLE),
        ("kept", _WHOLE),
        ("scheme", _TEXT),
        ("iteration", _WHOLE),
        ("runs", _WHOLE),
        ("correlation", _REAL),
        *((name, _REAL) for each in MEASURES for name in (each, f"{each}_spread")),
    ]
)
"""Of a table: one row per setting, scheme and iteration, means over runs and the standard deviation
of a single one."""
SCHEMES = {
    ("rand-k", False): "Rand-k",
    ("rand-k", True): "Rand-k-Spatial",
    ("rand-proj", False): "Rand-Proj",
    ("rand-proj", True): "Rand-Proj-Spatial",
    ("wangni", False): "Wangni",
    ("induced", False): "Induced",
}
"""Names by the mechanism's kind, and whether all sketches are decoded together."""
OURS = "Rand-Proj-Spatial"
# Two are taken as different from so many standard errors of their difference on.
_APART = 2.0
_EVERY = 5
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


class Setting(NamedTuple):
    """What schemes are compared at."""

    task: str
    split: str
    clients: int
    kept: int

    def __str__(self) -> str:
        return f"{self.task}, {self.split}, n = {self.clients}, k = {self.kept}"


def setting_of(document: Mapping[str, Any]) -> tuple[Setting, str]:
    """Return the setting and the scheme of a scenario's document.

    Raises:
        KeyError: it is no scenario of these.
    """
    task, mechanism = document["task"], document["mechanism"]
    population = document["population"]
    data = population["data"]
    kind = mechanism["kind"]
    together = kind.startswith("rand-") and task["similarity"] != "one"
    name = SCHEMES[kind, together]
    if together:
        name += "" if task["similarity"] == "avg" else f"({task['similarity']})"
    alike = data.get("partition", {}).get("kind", "iid") == "iid" and not data.get("by_target")
    setting = Setting(
        task["kind"], "iid" if alike else "not iid", population["clients"], mechanism["kept"]
    )
    return setting, name


def rows(
    document: Mapping[str, Any], errors: pa.Table, distances: list[float]
) -> list[dict[str, Any]]:
    """Return the rows of one run: the first iteration, every fifth and the last.

    Args:
        document: of its scenario.
        errors: its stream of errors.
        distances: from the first principal component at the end, by repetition, where known.
    """
    setting, scheme = setting_of(document)
    release = errors["release"].to_numpy()
    last = int(release.max()) + 1
    found = []
    for iteration in sorted({1, *range(_EVERY, last, _EVERY), last}):
        here = release == iteration - 1
        known = {
            "loss": errors["loss"].to_numpy()[here],
            "error": errors["squared_error"].to_numpy()[here],
            "distance": np.array(distances if iteration == last else []),
        }
        row: dict[str, Any] = {
            **setting._asdict(),
            "scheme": scheme,
            "iteration": iteration,
            "runs": int(here.sum()),
            "correlation": float(errors["correlation"].to_numpy()[here].mean()),
        }
        for name, values in known.items():
            row[name] = float(values.mean()) if len(values) else None
            row[f"{name}_spread"] = float(values.std(ddof=1)) if len(values) > 1 else None
        found.append(row)
    return found


def table(found: Iterable[dict[str, Any]]) -> pa.Table:
    """Return rows as a table."""
    return pa.Table.from_pylist(list(found), SCHEMA)


@dataclass(frozen=True)
class Compared:
    """All schemes at one setting, by one measure, at the end.

    Attributes:
        setting: of all of them.
        iterations: that were played.
        runs: of each scheme, the fewest.
        correlation: R of what clients sent, of our scheme or else the first.
        values: mean and spread by scheme.
    """

    setting: Setting
    iterations: int
    runs: int
    correlation: float
    values: dict[str, tuple[float, float | None]]

    @property
    def best(self) -> str:
        """The scheme with the least mean."""
        return min(self.values, key=lambda name: self.values[name][0])

    @property
    def holds(self) -> str:
        """Whether Rand-Proj-Spatial is best: `yes`, `no`, or `close` if that cannot be told.

        Example:
            >>> values = {"Rand-Proj-Spatial": (1.0, 0.1), "Wangni": (1.01, 0.1)}
            >>> Compared(Setting("k-means", "iid", 2, 1), 5, 10, 0.0, values).holds
            'close'
        """
        if OURS not in self.values:
            return ""
        ours = self.values[OURS]
        rival = min(value for name, value in self.values.items() if name != OURS)
        gap, spread = rival[0] - ours[0], math.hypot(ours[1] or 0.0, rival[1] or 0.0)
        if spread > 0.0 and abs(gap) <= _APART * spread / math.sqrt(self.runs):
            return "close"
        return "yes" if gap > 0.0 else "no"


def compared(found: pa.Table, measure: str) -> list[Compared]:
    """Return the schemes of each setting side by side, in the order of the first of each."""
    last: dict[Setting, list[dict[str, Any]]] = {}
    for row in found.to_pylist():
        setting = Setting(row["task"], row["split"], row["clients"], row["kept"])
        last.setdefault(setting, []).append(row)
    out = []
    for setting, mine in last.items():
        end = max(row["iteration"] for row in mine)
        final = [row for row in mine if row["iteration"] == end and row[measure] is not None]
        if len(final) > 1:
            values = {
                row["scheme"]: (row[measure], row[f"{measure}_spread"])
                for row in sorted(final, key=lambda row: _order(row["scheme"]))
            }
            main = next((row for row in final if row["scheme"] == OURS), final[0])
            runs = min(row["runs"] for row in final)
            out.append(Compared(setting, end, runs, main["correlation"], values))
    return out


def _order(scheme: str) -> int:
    names = list(SCHEMES.values())
    return names.index(scheme) if scheme in names else len(names)


def draw(found: pa.Table, path: Path) -> None:
    """Draw the loss against iterations, a panel for each setting and a line for each scheme."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    every = found.to_pylist()
    settings = list(
        dict.fromkeys(Setting(r["task"], r["split"], r["clients"], r["kept"]) for r in every)
    )
    schemes = sorted({row["scheme"] for row in every}, key=_order)
    columns = min(3, len(settings))
    lines = math.ceil(len(settings) / columns)
    size = (4.0 * columns + 0.5, 3.0 * lines + 0.8)
    figure, grid = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    handles: dict[str, Any] = {}
    for axis, setting in zip(grid.flat, settings, strict=False):
        for number, scheme in enumerate(schemes):
            mine = [r for r in every if r["scheme"] == scheme and _is(r, setting)]
            if not mine:
                continue
            at = np.array([row["iteration"] for row in mine])
            loss = np.array([row["loss"] for row in mine])
            spread = np.array([row["loss_spread"] or 0.0 for row in mine])
            colour = _COLOURS[number % len(_COLOURS)]
            (handles[scheme],) = axis.plot(at, loss, color=colour, lw=1.4, marker="o", ms=3)
            axis.fill_between(at, loss - spread, loss + spread, color=colour, alpha=0.15, lw=0)
        axis.set_title(str(setting), loc="left", fontsize=9)
        axis.set(xlabel="iteration", ylabel="loss")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in list(grid.flat)[len(settings) :]:
        axis.set_axis_off()
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _is(row: Mapping[str, Any], setting: Setting) -> bool:
    return all(row[name] == value for name, value in setting._asdict().items())
