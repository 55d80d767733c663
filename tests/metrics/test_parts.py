"""Parts of streams: whole, unchanging, few, and what waits for one is never lost or there twice."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest

from raydp_sim.metrics import parts, streams, writer
from raydp_sim.metrics.writer import Writer


def row(release: int) -> dict[str, float]:
    return {"repetition": 0, "release": release, "wall_s": 0.5, "reports": 7, "duplicates": 0}


def errors(release: int, values: list[float]) -> pa.RecordBatch:
    return streams.keyed(streams.simulation_only({"noise": values}), 0, release)


def releases(folder: Path, stream: str = "timing") -> list[int]:
    return [int(each) for each in streams.read(folder, stream)["release"].to_pylist()]


def digests(folder: Path) -> dict[Path, str]:
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.parquet")
    }


def test_a_part_never_changes_once_it_can_be_seen(tmp_path: Path) -> None:
    made, seen = Writer(tmp_path), {}
    for release in range(20):
        made.row("timing", row(release))
        made.batch("errors", errors(release, [0.1, 0.2]))
        (made.flush if release % 5 == 4 else made.keep)()
        now = digests(tmp_path)
        assert {path: now[path] for path in seen} == seen
        seen = now
    assert len(seen) == 8
    assert releases(tmp_path) == list(range(20))
    assert releases(tmp_path, "errors") == [each for each in range(20) for _ in (0, 1)]


def test_checkpoints_alone_make_no_parts_but_lose_nothing(tmp_path: Path) -> None:
    made = Writer(tmp_path)
    for release in range(30):
        made.row("timing", row(release))
        made.keep()
    assert not list(tmp_path.rglob("*.parquet"))
    assert releases(tmp_path) == list(range(30))


def test_parts_roll_by_rows_bytes_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(writer.time, "monotonic", lambda: clock[0])
    made = Writer(tmp_path)

    def written() -> int:
        return len(list(tmp_path.rglob("*.parquet")))

    monkeypatch.setattr(writer, "_ROWS", 10)
    for release in range(9):
        made.row("timing", row(release))
        made.flush_if_late()
    assert written() == 0
    made.row("timing", row(9))
    made.flush_if_late()
    assert written() == 1
    made.batch("errors", errors(9, [0.0] * 4))
    monkeypatch.setattr(writer, "_BYTES", 8)
    made.flush_if_late()
    assert written() == 2
    made.row("timing", row(10))
    clock[0] = 1.01
    made.flush_if_late()
    assert written() == 3
    # After an hour a part is half a minute's.
    clock[0] = 3600.0
    made.flush_if_late()
    made.row("timing", row(11))
    for clock[0] in (3601.5, 3629.0):
        made.flush_if_late()
        assert written() == 3
    clock[0] = 3630.1
    made.flush_if_late()
    assert written() == 4


def test_a_checkpoint_with_much_to_keep_makes_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_KEPT_BYTES", 100)
    made = Writer(tmp_path)
    made.batch("errors", errors(0, [0.0] * 50))
    made.keep()
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert not (tmp_path / "waiting.npz").exists()


@pytest.mark.parametrize("finished", range(7))
@pytest.mark.parametrize("rolled", ["never", "after", "part only"])
def test_what_waited_is_there_once_after_a_crash(
    finished: int, rolled: str, tmp_path: Path
) -> None:
    """A kill between writing a part and dropping what was kept leaves both; rows count once."""
    made = Writer(tmp_path)
    for release in range(5):
        made.row("timing", row(release))
        if release == 1:
            made.flush()
    made.keep()
    kept = (tmp_path / "waiting.npz").read_bytes()
    made.row("timing", row(5))
    if rolled != "never":
        made.flush()
    if rolled == "part only":
        (tmp_path / "waiting.npz").write_bytes(kept)
    last = 5 if rolled == "never" else 6
    assert releases(tmp_path) == list(range(last))
    parts.trim(tmp_path, 0, finished)
    assert releases(tmp_path) == list(range(min(last, finished)))
    again = Writer(tmp_path)
    for release in range(finished, 7):
        again.row("timing", row(release))
    again.flush()
    assert releases(tmp_path) == list(range(min(last, finished))) + list(range(finished, 7))
    listed = parts.listed(tmp_path, "timing")
    ends = [part.offset + part.rows for part in listed]
    assert [part.offset for part in listed] == [0, *ends[:-1]]


def test_parts_keep_the_order_of_rows_that_came_out_of_turn(tmp_path: Path) -> None:
    made = Writer(tmp_path)
    for release in (3, 2, 4):
        made.row("timing", row(release))
        made.flush()
    paths = [part.path.stem[-1] for part in parts.listed(tmp_path, "timing")]
    assert paths == ["3", "2", "4"]


def test_rows_of_a_closing_are_written_once(tmp_path: Path) -> None:
    for _ in range(2):
        made = Writer(tmp_path)
        made.batch_once("learning", errors(9, [0.1, 0.2]))
    assert releases(tmp_path, "learning") == [9, 9]
    assert Writer(tmp_path)._stream("learning", errors(0, [0.0]).schema).offset == 2
