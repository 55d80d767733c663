"""Every stream of a run and every column of it: type, unit and meaning, by the name of the stream.

A run's Parquet files and what is served live carry these in their Arrow schemas: `version`,
`visibility` and `stream` in the metadata of the schema, `unit` and `meaning` in that of its fields.
A column never changes its type, unit or meaning; that would be a new version of its stream. New
columns may come, and a stream that tasks write has those of the task that is played.
"""

import pyarrow as pa

from raydp_sim.metrics.described import (
    LEDGER,
    RELEASED,
    SIMULATION_ONLY,
    VERSION,
    Column,
    Described,
    real,
    text,
    whole,
)
from raydp_sim.metrics.task_columns import ERRORS, TASKS

KEYS = {
    "repetition": whole("", "of the run, from 0"),
    "release": whole("", "of the repetition, from 0; also of a batch that was withheld"),
}
_TIME = real("virtual s", "when the batch closed")
_OPENED = real("virtual s", "when clients were first asked")
_ASKED = whole("clients", "that were asked")
_DROPPED = whole("reports", "that were lost meanwhile")
_LATE = whole("reports", "and copies that came after the batch they were meant for had closed")
_ROUND = whole("", "of training, from 1")
_COORDINATES = {
    "coordinate": whole("", "place in the estimate, from 0"),
    "name": text("of the coordinate or category"),
}
_CLIPPED = real("share", "of the vectors to be randomized that were clipped")


def _accuracy(whose: str) -> dict[str, Column]:
    return {
        f"{whose}_accuracy": real("share", f"right on clients' own test samples, {whose} models"),
        f"{whose}_accuracy_sd": real("share", "standard deviation of that over clients"),
        f"{whose}_validation_accuracy": real(
            "share", f"right on those to choose by, {whose} models"
        ),
        f"{whose}_validation_accuracy_sd": real("share", "standard deviation of that"),
    }


STREAMS = {
    "releases": Described(
        RELEASED,
        "a release",
        {
            "time": _TIME,
            "opened": _OPENED,
            "participants": whole("clients", "charged for the release"),
            "batch_size": whole("reports", "in the batch"),
            "messages": whole("messages", "in the batch; a report may have several"),
            "asked": _ASKED,
            "missing": whole("reports", "asked for, not in the batch, not under way to another"),
            "dropped": _DROPPED,
            "late": _LATE,
            "repeated": whole("reports", "that came twice before the close"),
            "staleness": real("releases", "a report's ask is behind, mean over the batch"),
            "stalest": whole("releases", "the largest of these"),
            "discarded": whole("reports", "in time, but to an ask of another mechanism"),
            "bits": whole("bits", "of all reports, as encoded"),
            "wire_bytes": whole("bytes", "of all reports, each in whole bytes"),
            "epsilon_local": real("", "of one report alone; null without a local guarantee"),
            "epsilon": real("", "so far, of the client charged most; see `bound`"),
            "delta": real("", "that goes with `epsilon`"),
            "epsilon_median": real("", "so far, of the median client"),
            "epsilon_seed": real("", "so far, by the papers' own accountant; null without one"),
            "bound": text("that proved `epsilon`"),
        },
    ),
    "withheld": Described(
        RELEASED,
        "a batch that was too small to be released",
        {
            "time": _TIME,
            "opened": _OPENED,
            "reports": whole("reports", "that came"),
            "asked": _ASKED,
            "dropped": _DROPPED,
            "late": _LATE,
        },
    ),
    "timing": Described(
        SIMULATION_ONLY,
        "a release or withheld batch, by the wall clock; differs from run to run",
        {
            "wall_s": real("s", "since the metrics actor started"),
            "reports": whole("reports", "released"),
            "duplicates": whole("messages", "that came again after a fault and were dropped"),
        },
    ),
    "clipping": Described(
        SIMULATION_ONLY,
        "a release: what lay outside of the mechanism's domain",
        {
            "clipped": whole("messages", "that the mechanism had to clip, though inside"),
            "outside": whole("values", "that lay outside of the domain"),
            "outside_share": real("share", "of the norms of values outside that was cut, mean"),
        },
    ),
    "estimates": Described(
        RELEASED,
        "a coordinate or category of the answer after a release",
        {
            **_COORDINATES,
            "estimate": real("as the data", "after this release"),
            "standard_error": real("as the data", "of the noise, given who took part, or null"),
        },
    ),
    "truth": Described(
        SIMULATION_ONLY,
        "a coordinate or category: what the answer should be",
        {
            **_COORDINATES,
            "population": real("as the data", "mean over all clients"),
            "participants": real("as the data", "mean over all who took part so far"),
            "error": real("as the data", "of the estimate against the population"),
        },
    ),
    "errors": Described(
        SIMULATION_ONLY,
        "a release: squared errors and their causes",
        {
            "squared_error_cohort": real("data squared", "of the release, against its cohort"),
            "squared_error_population": real("data squared", "of the release, against everyone"),
            "running_squared_error": real("data squared", "of the mean so far, against everyone"),
            "noise": real("as the data", "distance of the estimate from what was kept"),
            "clipping_bias": real("as the data", "distance of what was kept from what was there"),
            "sampling_error": real(
                "as the data", "distance of what was drawn from all that is held"
            ),
            "participation_bias": real("as the data", "distance of those so far from everyone"),
            "error_bound": real("data squared", "that the theorem promises"),
            "failure_probability": real("", "with which the theorem may not hold"),
            **ERRORS,
        },
    ),
    "groups": Described(
        SIMULATION_ONLY,
        "a device class or region, of a release",
        {
            "group": text("its name"),
            "clients": whole("clients", "in it"),
            "reports": whole("reports", "of it in the batch"),
            "squared_error": real("data squared", "of the estimate, against the group's own mean"),
        },
    ),
    "learning": Described(
        RELEASED,
        "an evaluated model; the columns of `task.callback` stand beside these",
        {
            "round": _ROUND,
            "step_size": real("", "of the round"),
            "test_accuracy": real("share", "right on held-out samples"),
            "test_loss": real("nats", "mean over held-out samples"),
            "validation_accuracy": real("share", "right on samples for validation"),
            "validation_loss": real("nats", "mean over samples for validation"),
        },
    ),
    "training": Described(
        SIMULATION_ONLY,
        "a round of training, as its cohort saw it",
        {
            "round": _ROUND,
            "training_loss": real("nats", "mean over the cohort's samples"),
            "training_accuracy": real("share", "right of the cohort's samples"),
            "gradient_norm": real("", "mean length of the clients' gradients before clipping"),
            "update_norm": real("", "mean length of the clients' updates before clipping"),
            "fraction_clipped": _CLIPPED,
            "next_clip": real("", "length to which the next round clips"),
            "psi": real("", "mean over clients, of how little the common model counts"),
            "psi_at_least": real("share", "of local steps with psi at its least value"),
            "participants": whole("clients", "in the round"),
            "label_skew": real("share", "of labels by which those seen so far differ from all"),
        },
    ),
    "personal": Described(
        SIMULATION_ONLY,
        "a round: models on their clients' own samples for test and validation",
        {
            "round": _ROUND,
            "clients": whole("clients", "whose samples were looked at"),
            **_accuracy("personal"),
            **_accuracy("starting"),
            **_accuracy("alone"),
        },
    ),
    "accountants": Described(
        RELEASED,
        "a round with noise inside local steps: epsilon by several accountants",
        {
            "round": _ROUND,
            "epsilon_local_proved": real("", "of one client's reports, proved"),
            "epsilon_aggregate_not_proved": real("", "of the sums, replace-one; not proved"),
            "epsilon_aggregate_add_remove_not_proved": real("", "add-remove; not proved"),
            "epsilon_seed_not_proved": real("", "by the paper's accountant; not proved"),
        },
    ),
    "ledger": Described(
        LEDGER,
        "a charge: an event and the clients it is charged to",
        {
            "repetition": Column(pa.int32(), "", KEYS["repetition"].meaning),
            "time": _TIME,
            "event": text("class of the privacy event, of the report alone"),
            "parameters": text("of the event, as JSON"),
            "shuffled": text("class of the event of the shuffled batch, if there is one"),
            "shuffled_parameters": text("of that event, as JSON"),
            "charged": whole("clients", "that are charged"),
            "encoding": text("of `participants`: range, ids or bitmap"),
            "participants": Column(pa.binary(), "", "ids: first and end, all, or a bit for each"),
        },
    ),
    "participation": Described(
        LEDGER,
        "a client that was charged for a release",
        {"client": Column(pa.uint32(), "", "its number, from 0")},
    ),
    **TASKS,
}


def known(stream: str) -> Described | None:
    """Return what is known of a stream; those of single analysts are alike."""
    return STREAMS.get("analyst" if stream.startswith("analyst-") else stream)


def metadata(stream: str, visibility: str, reader: str | None = None) -> dict[str, str]:
    """Return what the schema of a stream says of it.

    Args:
        stream: its name.
        visibility: who may see it.
        reader: whose it is, if only one reader's.
    """
    found = known(stream)
    version = VERSION if found is None else found.version
    whose = {} if reader is None else {"reader": reader}
    return {"stream": stream, "version": str(version), "visibility": visibility, **whose}


def described(stream: str, schema: pa.Schema) -> pa.Schema:
    """Return a schema with what is known of its stream and columns in the metadata.

    What a task of the user's own says of its columns stays.

    Example:
        >>> plain = pa.schema([("wall_s", pa.float64())], metadata={"visibility": "released"})
        >>> described("timing", plain).field("wall_s").metadata[b"unit"]
        b's'
    """
    found = known(stream)
    said = {**KEYS, **({} if found is None else found.columns)}
    fields = [
        field.with_metadata({"unit": said[field.name].unit, "meaning": said[field.name].meaning})
        if field.name in said
        else field
        for field in schema
    ]
    marks = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    marks = metadata(stream, marks.get("visibility", ""), marks.get("reader"))
    return pa.schema(fields, metadata=marks)


def schema(stream: str) -> pa.Schema:
    """Return the whole schema of a stream that ships, with every column it may have."""
    found = known(stream)
    assert found is not None, f"the stream {stream!r} is not one of ours"
    columns = {**KEYS, **found.columns}
    plain = pa.schema([(name, column.type) for name, column in columns.items()])
    return described(stream, plain.with_metadata({"visibility": found.visibility}))
