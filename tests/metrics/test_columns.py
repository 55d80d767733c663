"""Every stream that ships says what its columns are, and is what it says."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from raydp_sim.check.tasks.subject import documents
from raydp_sim.metrics import charged, columns, parts, streams
from raydp_sim.privacy.events import LocalReport
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.store import Charge
from raydp_sim.run import run
from raydp_sim.scenario import parse
from raydp_sim.tasks import TASKS
from tests.conftest import scenario


def test_every_column_has_a_meaning_and_streams_a_mark() -> None:
    for name, stream in columns.STREAMS.items():
        schema = columns.schema(name)
        assert streams.visibility(schema) == stream.visibility
        assert schema.metadata[b"version"] == b"1" and schema.metadata[b"stream"] == name.encode()
        for field in schema:
            assert field.metadata[b"meaning"] and b"unit" in field.metadata, (name, field.name)


def test_the_ledger_on_disk_is_the_stream_described() -> None:
    assert columns.schema("ledger").equals(store.SCHEMA, check_metadata=False)


def check(folder: Path) -> set[str]:
    """Compare every file of a run with what is said of its stream."""
    for stream in parts.names(folder / "metrics"):
        known = columns.schema(stream)
        for part in parts.listed(folder / "metrics", stream):
            schema = pq.read_schema(part.path)
            assert schema.metadata[b"version"] == b"1"
            said = columns.known(stream)
            assert said is not None and streams.visibility(schema) == said.visibility
            for field in schema:
                if field.name in known.names:
                    ours = known.field(field.name)
                    assert field.equals(ours, check_metadata=True), (stream, field)
                else:  # named after readers, and described by the task
                    assert field.name.startswith("squared_error_analyst"), (stream, field)
                    assert field.metadata[b"meaning"]
    return set(parts.names(folder / "metrics"))


@pytest.mark.parametrize("kind", sorted(TASKS.kinds))
def test_every_task_writes_what_is_described(kind: str, tmp_path: Path) -> None:
    for number, document in enumerate(documents(kind, TASKS.kinds[kind])):
        result = run(parse(document), out=tmp_path / str(number))
        assert {"releases", "clipping", "timing"} <= check(result.run_dir)


def test_streams_of_groups_and_withheld_batches_are_what_is_described(tmp_path: Path) -> None:
    data = {"kind": "gaussian", "dimension": 6, "clip": 1.0}
    devices = [{"name": name, "share": 0.5} for name in ("phone", "desk")]
    # About a hundred decide to take part, so that one batch in two is too small.
    made = scenario(
        rounds=12,
        population={"clients": 200, "data": data, "classes": devices},
        participation={"kind": "self", "probability": 0.5},
        shuffle={"min_batch": 100},
    )
    assert {"groups", "withheld"} <= check(run(made, out=tmp_path / "run").run_dir)


def test_a_task_of_ones_own_says_what_its_columns_mean() -> None:
    rows = streams.released({"regret": [0.5]}, about={"regret": ("reward", "so far")}, reader="b")
    schema = columns.described("bandit", streams.keyed(rows, 0, 3).schema)
    assert schema.field("regret").metadata == {b"unit": b"reward", b"meaning": b"so far"}
    assert schema.metadata[b"reader"] == b"b" and schema.field("release").metadata[b"meaning"]


def test_who_took_part_is_read_from_any_way_of_storing_it() -> None:
    event, some = LocalReport(1.0), np.array([1, 5, 9], np.uint32)
    charges = [
        Charge(0, 0, 0.0, event, range(2, 5)),
        Charge(0, 1, 0.0, event, some),
        Charge(1, 0, 0.0, event, np.arange(0, 40, 2, dtype=np.uint32)),
    ]
    rows = [charge.row(clients) for charge, clients in zip(charges, (99, 99, 41), strict=True)]
    assert [row["encoding"] for row in rows] == ["range", "ids", "bitmap"]
    found = charged.participation(rows)
    assert found["client"].to_pylist() == [2, 3, 4, 1, 5, 9, *range(0, 40, 2)]
    assert found["release"].to_pylist() == [0] * 3 + [1] * 3 + [0] * 20
    assert found["repetition"].to_pylist() == [0] * 6 + [1] * 20
    assert charged.participation([]).schema.equals(found.schema)
