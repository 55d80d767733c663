"""The rows of a release that several analysts read: what each says, and how far off it is."""

from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.mechanisms.parts.distributions import (
    Repair,
    errors,
    heavy_hitters,
    predicted,
    radius,
    repaired,
    scores,
)
from raydp_sim.mechanisms.recoverable import Recoverable
from raydp_sim.metrics.estimates import written
from raydp_sim.metrics.streams import released, simulation_only
from raydp_sim.tasks.base import Arrays, Truth

VIEWS, KEYS, REFINED = "views", "keys", "refined"
SHARES, REOPENED = "shares", "reopened"
_REPAIRS: tuple[Repair, ...] = ("raw", "clip", "simplex")
_MOST_PREDICTED = 1 << 14  # categories up to which errors of repaired estimates are predicted


def shares(truth: Counts, sample: int, categories: int) -> Floats:
    """Return the shares of the categories among some clients' samples of one number.

    Args:
        truth: of `Analysts.truth`.
        sample: number of the sample; the only one where there is one.
        categories: how many there are.
    """
    counts = truth[:-1].reshape(-1, categories)
    return np.asarray(counts[min(sample, len(counts) - 1)] / max(1, int(truth[-1])))


def rows_of(
    mechanism: Leveled,
    names: tuple[str, ...],
    public: list[Arrays],
    truth: Truth,
    repair: Repair,
    heavy: float,
    beta: float,
    rounds: int,
) -> dict[str, pa.RecordBatch]:
    """Return the rows of a release by stream.

    Args:
        mechanism: of all releases.
        names: of the readers.
        public: what each made public.
        truth: of the release.
        repair: what readers make of their estimates.
        heavy: share from which a category is a heavy hitter.
        beta: probability that a list of heavy hitters is wrong.
        rounds: releases that there may be.
    """
    k = mechanism.domain.choices
    release, sample = int(public[0]["release"]), int(public[0]["sample"])
    cohort, whole = (shares(t, sample, k) for t in (truth.cohort, truth.population))
    found: dict[str, pa.RecordBatch] = {}
    table: dict[str, list[Any]] = {}
    far: dict[str, float] = {}
    for name, said in zip(names, public, strict=True):
        level, reports = int(said["level"]), max(1, int(said["reports"]))
        view = mechanism.view(level)
        far[f"squared_error_{name.replace('-', '_')}"] = errors(said["estimate"], whole).l2
        threshold = heavy + radius(view.span, k, reports, beta)
        hitters = heavy_hitters(said["estimate"], threshold)
        if written(release, rounds, k * len(names)):
            found[name] = _estimates(name, said, repair, hitters)
        variance = view.variance(cohort, reports)
        row = {
            "reader": name,
            "level": level + 1,
            "epsilon": mechanism.levels[level],
            "reports": reports,
            **_errors(said["estimate"], cohort, variance),
            "threshold": threshold,
            "hitters": len(hitters),
            **scores(hitters, cohort, heavy)._asdict(),
            "recovered": _recovered(mechanism, level, said, truth),
        }
        for column, value in row.items():
            table.setdefault(column, []).append(value)
    known = pa.array(table.pop("recovered"), pa.bool_())
    columns = {name: pa.array(column) for name, column in table.items()}
    found[VIEWS] = simulation_only({**columns, "recovered": known})
    told = {name: ("share squared", "of what that reader sees, against everyone") for name in far}
    found["errors"] = simulation_only(far, about=told)
    if written(release, rounds, k * len(names)):
        held = {"coordinate": np.arange(k), "population": whole, "cohort": cohort}
        found[SHARES] = simulation_only(held)
    found[KEYS] = _keys(mechanism, names, public)
    if (again := _refined(names, public, truth, k)) is not None:
        found[REFINED] = again
        found[REOPENED] = _reopened(names, public, k)
    return found


def _estimates(name: str, said: Arrays, repair: Repair, hitters: Any) -> pa.RecordBatch:
    """Return what a reader says of every category; an analyst's rows are its own."""
    estimate = said["estimate"]
    heavy = np.zeros(len(estimate), np.bool_)
    heavy[hitters] = True
    columns = {"coordinate": np.arange(len(estimate)), "estimate": estimate}
    columns |= {"standard_error": said["standard_error"], "share": repaired(estimate, repair)}
    return released({**columns, "heavy": heavy}, reader=None if name == "public" else name)


def _errors(estimate: Floats, cohort: Floats, variance: Floats) -> dict[str, float | None]:
    """Return the errors of an estimate, repaired in each way, beside those that were expected."""
    found: dict[str, float | None] = {}
    for how in _REPAIRS:
        l1, l2 = errors(repaired(estimate, how), cohort)
        found |= {f"l1_{how}": l1, f"l2_{how}": l2}
        known = how == "raw" or len(cohort) <= _MOST_PREDICTED
        expected = predicted(cohort, variance, how) if known else (None, None)
        found |= {f"predicted_l1_{how}": expected[0], f"predicted_l2_{how}": expected[1]}
    return found


def _recovered(mechanism: Leveled, level: int, said: Arrays, truth: Truth) -> bool | None:
    """Say whether every record was recovered as it was; None for those who recover none."""
    if not isinstance(mechanism, Recoverable) or level == mechanism.public or truth.seen is None:
        return None
    return int(said["fingerprint"][0]) == int(truth.seen[0])


def _keys(mechanism: Leveled, names: tuple[str, ...], public: list[Arrays]) -> pa.RecordBatch:
    """Return the key ledger of a release: bits of entropy drawn by clients, and bits handed out."""
    reports = int(public[0]["reports"])
    handed = [0 if number == 0 else mechanism.key_bits for number in range(len(names))]
    # Some may be for reports of batches that were withheld, and open nothing.
    promoted = [int(said["handed_further"]) for said in public]
    return released(
        {
            "reader": pa.array(names),
            "reports": [int(said["reports"]) for said in public],
            "drawn": [reports * mechanism.key_entropy] * len(names),
            "delivered": [int(s["reports"]) * bits for s, bits in zip(public, handed, strict=True)],
            "promoted": [count * mechanism.key_bits for count in promoted],
            "missing": [int(np.sum(said.get("refined_missing", 0))) for said in public],
        }
    )


def _refined(
    names: tuple[str, ...], public: list[Arrays], truth: Truth, categories: int
) -> pa.RecordBatch | None:
    """Return what promotions have made of earlier releases, against what everybody held then."""
    table: dict[str, list[Any]] = {}
    for name, said in zip(names, public, strict=True):
        for number in range(len(said.get("refined_of", ()))):
            own = {key[8:]: said[key][number] for key in said if key.startswith("refined_")}
            whole = shares(truth.population, int(own["sample"]), categories)
            before, after = (errors(own[which], whole) for which in ("before", "after"))
            row = {"reader": name, "of": int(own["of"])}
            row |= {which: int(own[which]) for which in ("promoted", "missing")}
            row |= {"l1_before": before.l1, "l2_before": before.l2}
            row |= {"l1_after": after.l1, "l2_after": after.l2}
            for column, value in row.items():
                table.setdefault(column, []).append(value)
    if not table:
        return None
    return simulation_only({key: pa.array(column) for key, column in table.items()})


def _reopened(names: tuple[str, ...], public: list[Arrays], categories: int) -> pa.RecordBatch:
    """Return the estimates of earlier releases before and after a promotion."""
    parts = [(name, said) for name, said in zip(names, public, strict=True) if "refined_of" in said]
    count = [len(said["refined_of"]) * categories for _, said in parts]
    columns = {
        "of": np.concatenate([np.repeat(said["refined_of"], categories) for _, said in parts]),
        "coordinate": np.tile(np.arange(categories), sum(count) // categories),
    }
    for name in ("before", "after"):
        columns[name] = np.concatenate([said[f"refined_{name}"].reshape(-1) for _, said in parts])
    readers = np.repeat([name for name, _ in parts], count)
    # Of several readers, none of whom may see what the others do.
    return simulation_only({"reader": pa.array(readers), **columns})
