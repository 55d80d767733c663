"""The panels that every run may have: errors, accuracy, regret, epsilon, batches, bytes."""

from raydp_sim.metrics.page.lines import Drawn, Line, Panel, panel
from raydp_sim.metrics.page.seen import Seen

RESULTS, PRIVACY, CLIENTS, SENT = "results", "privacy", "clients", "communication"
_SIMULATED = "Only a simulation knows this: it is a function of raw data."
_KNOWN = (
    Drawn(
        RESULTS,
        "How far off the estimate is",
        (
            Line("errors", "squared_error_population", "one release, against everyone", 1, "below"),
            Line("errors", "squared_error_cohort", "one release, against its cohort", 0),
            Line("errors", "running_squared_error", "mean so far, against everyone", 2),
            Line("errors", "squared_error", "of the sketched means", 0),
            Line("errors", "squared_error_public", "what the public sees, against everyone", 0),
            Line("errors", "error_bound", "what the theorem promises", 4, "dashed"),
        ),
        "squared error",
        log=True,
        note=_SIMULATED,
    ),
    Drawn(
        RESULTS,
        "What the model learned",
        (
            Line("learning", "test_accuracy", "test samples", 0),
            Line("learning", "validation_accuracy", "validation samples", 1),
            Line("training", "training_accuracy", "cohort, before its step (simulation)", 3),
            Line("personal", "personal_accuracy", "personal models, own samples (simulation)", 2),
            Line("personal", "alone_accuracy", "trained alone, own samples (simulation)", 4),
        ),
        "accuracy",
    ),
    Drawn(
        RESULTS,
        "The loss",
        (
            Line("learning", "test_loss", "test samples", 0),
            Line("learning", "validation_loss", "validation samples", 1),
            Line("training", "training_loss", "cohort, before its step (simulation)", 3),
        ),
        "cross-entropy",
    ),
    Drawn(
        RESULTS,
        "Why it is off",
        (
            Line("errors", "noise", "noise", 0),
            Line("errors", "clipping_bias", "clipping", 1),
            Line("errors", "sampling_error", "sampling", 2),
            Line("errors", "participation_bias", "who took part", 3),
        ),
        "distance",
        zero=True,
        note=_SIMULATED,
    ),
    Drawn(
        PRIVACY,
        "What the clients have spent",
        (
            Line("releases", "epsilon_median", "median client", 1, "below"),
            Line("releases", "epsilon", "client charged most", 0),
        ),
        "epsilon so far",
        unit="",
        zero=True,
    ),
    Drawn(
        PRIVACY,
        "By other accountants",
        (
            Line("releases", "epsilon", "best proved bound", 0),
            Line("releases", "epsilon_seed", "the papers' own bound", 2),
            Line("accountants", "epsilon_local_proved", "one client's reports, proved", 3),
            Line("accountants", "epsilon_aggregate_not_proved", "sums; not proved", 4, "dashed"),
            Line("accountants", "epsilon_seed_not_proved", "the paper's; not proved", 5, "dashed"),
        ),
        "epsilon so far",
        unit="",
        log=True,
    ),
    Drawn(
        CLIENTS,
        "Batch sizes",
        (
            Line("releases", "asked", "clients asked", 4, "below"),
            Line("releases", "batch_size", "reports in the batch", 0),
        ),
        "reports",
        unit="",
        zero=True,
    ),
    Drawn(
        CLIENTS,
        "Reports that did not count",
        (
            Line("releases", "missing", "missing", 1),
            Line("releases", "late", "late", 3),
            Line("releases", "dropped", "lost on the way", 5),
            Line("releases", "repeated", "came twice", 2),
            Line("releases", "discarded", "to another ask", 4),
        ),
        "reports",
        unit="",
        zero=True,
    ),
    Drawn(
        CLIENTS,
        "How old reports are",
        (
            Line("releases", "staleness", "mean of the batch", 0),
            Line("releases", "stalest", "oldest", 1),
        ),
        "releases behind",
        unit="",
        zero=True,
    ),
    Drawn(
        SENT,
        "Bytes of the reports",
        (Line("releases", "wire_bytes", "bytes of a release", 0),),
        "sent",
        unit="bytes",
        zero=True,
    ),
    Drawn(
        SENT,
        "Messages",
        (
            Line("releases", "messages", "messages", 0),
            Line("releases", "batch_size", "reports", 2),
        ),
        "in a batch",
        unit="",
        zero=True,
    ),
)
_FLAT = {"Reports that did not count", "How old reports are"}
"""Panels that say nothing where every value is 0."""


def panels(seen: Seen) -> list[Panel]:
    """Return the panels of lines that there are, those of the results first."""
    found = []
    for drawn in _KNOWN:
        if drawn.title == "By other accountants" and not _accounted_twice(seen):
            continue
        made = panel(seen, drawn)
        if made is None:
            continue
        if drawn.title in _FLAT:
            made = _without_nothing(made)
            if not made["series"]:
                continue
        found.append(made)
    return found


def _accounted_twice(seen: Seen) -> bool:
    if "accountants" in seen.schemas:
        return True
    rows = seen.table("releases", ["epsilon_seed"])
    return "epsilon_seed" in rows.column_names and rows["epsilon_seed"].null_count < rows.num_rows


def _without_nothing(made: Panel) -> Panel:
    """Leave out the lines that are 0 everywhere."""
    x, *values = made["data"]
    there = [any(each) for each in values]
    keep = [place for place, is_there in enumerate(there) if is_there]
    return {
        **made,
        "series": [made["series"][place] for place in keep],
        "data": [x, *(values[place] for place in keep)],
        "bands": [made["bands"][place] for place in keep] if made["bands"] else [],
    }
