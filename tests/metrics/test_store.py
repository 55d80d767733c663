"""What followers are given, row by row, wherever it is kept."""

from pathlib import Path

import pytest

from raydp_sim.metrics import parts, streams
from raydp_sim.metrics.live import feed, store
from raydp_sim.metrics.live.feed import Feed
from raydp_sim.metrics.live.store import Interrupted, Store
from raydp_sim.metrics.writer import Writer
from tests.metrics.test_parts import row


class Direct(Feed):
    """A feed without a process: messages go into a store when the test says so."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.store = writer, Store({})
        self._queue, self._bytes, self._known = feed.deque(), 0, set()
        writer.on_rows, writer.on_part = self._rows, self._part
        for message in feed.known(writer.folder):
            self.store.take(message)

    def send(self) -> None:
        self.writer.settle()
        while (message := self._next()) is not None:
            self.store.take(message)


def followed(kept: Store, start: int = 0) -> list[int]:
    """Read a stream from an offset to where it is now."""
    stream, seen = kept.streams["timing"], []
    while found := kept.since(stream, start + len(seen), 0.0):
        for batch in found:
            assert batch.schema.equals(streams.SCHEMAS["timing"], check_metadata=True)
            seen += batch["release"].to_pylist()
    return seen


@pytest.mark.parametrize("memory", [0, 200, 1 << 20])
@pytest.mark.parametrize("queue", [0, 300, 1 << 20])
def test_each_row_is_seen_once_wherever_it_is_kept(
    memory: int, queue: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little memory, or a pipe that is full, rows come from Parquet, and none is left out."""
    monkeypatch.setattr(store, "_MOST_BYTES", memory)
    monkeypatch.setattr(feed, "_MOST_BYTES", queue)
    monkeypatch.setattr(store, "_MOST_ROWS", 7)
    made = Writer(tmp_path)
    direct = Direct(made)
    for release in range(60):
        made.row("timing", row(release))
        if release % 3 == 0:
            direct.send() if release % 2 else made.settle()
        if release % 10 == 9:
            made.flush()
        seen = followed(direct.store)
        assert seen == list(range(len(seen)))
        assert len(seen) <= release + 1
    direct.send()
    for start in (0, 1, 9, 10, 33, 59, 60, 99):
        assert followed(direct.store, start) == list(range(start, 60))
    kept = direct.store.streams["timing"]._recent
    assert sum(map(len, kept)) <= memory or len(kept) == 1


def test_rows_that_a_full_pipe_left_out_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_MOST_BYTES", 60)
    made = Writer(tmp_path)
    direct = Direct(made)
    for release in range(4):
        made.row("timing", row(release))
        made.settle()
    direct.send()
    stream = direct.store.streams["timing"]
    assert direct.store.since(stream, 0, 0.0) == []
    made.flush()
    direct.send()
    assert followed(direct.store) == [0, 1, 2, 3]


def test_a_resumed_run_goes_on_where_a_follower_was(tmp_path: Path) -> None:
    made = Writer(tmp_path)
    direct = Direct(made)
    for release in range(8):
        made.row("timing", row(release))
    made.keep()
    direct.send()
    seen = followed(direct.store)
    direct.store.lost()
    with pytest.raises(Interrupted):
        direct.store.since(direct.store.streams["timing"], 8, 0.0)
    parts.trim(tmp_path, 0, 5)  # back to a checkpoint
    made = Writer(tmp_path)
    direct = Direct(made)
    assert followed(direct.store, len(seen)) == []
    for release in range(5, 12):
        made.row("timing", row(release))
    direct.send()
    assert seen + followed(direct.store, len(seen)) == list(range(12))


def test_the_end_is_told_after_the_last_row(tmp_path: Path) -> None:
    made = Writer(tmp_path)
    direct = Direct(made)
    made.row("timing", row(0))
    made.settle()
    direct._queue.append(feed.Message(feed.wire.END, {}))
    direct.send()
    stream = direct.store.streams["timing"]
    assert [batch.num_rows for batch in direct.store.since(stream, 0, 0.0)] == [1]
    assert direct.store.since(stream, 1, 0.0) is None
