"""Sinks: what TensorBoard and Prometheus read, sinks of one's own, and failing ones."""

import math
import socket
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.metrics.sinks.base import Began
from raydp_sim.metrics.sinks.prometheus import Page
from raydp_sim.metrics.sinks.tensorboard import TensorBoard, crc32c
from raydp_sim.run import prepare, reopen, run
from tests.conftest import scenario

OWN = "tests.metrics.own_sink"


def varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value, shift, place = value | (byte & 0x7F) << shift, shift + 7, place + 1
        if byte < 0x80:
            return value, place


def fields(content: bytes) -> Iterator[tuple[int, object]]:
    """Decode one Protocol Buffers message: numbers of fields with what they hold."""
    place = 0
    while place < len(content):
        tag, place = varint(content, place)
        kind = tag & 7
        if kind == 0:
            value, place = varint(content, place)
        elif kind == 2:
            size, place = varint(content, place)
            value, place = content[place : place + size], place + size
        else:
            size = {1: 8, 5: 4}[kind]
            (value,) = struct.unpack_from({1: "<d", 5: "<f"}[kind], content, place)
            place += size
        yield tag >> 3, value


def events(path: Path) -> Iterator[dict[int, object]]:
    """Read an event file as its format is described, and check every checksum."""
    content, place = path.read_bytes(), 0

    def masked(part: bytes) -> int:
        checksum = crc32c(part)
        return ((checksum >> 15) | (checksum << 17)) + 0xA282EAD8 & 0xFFFFFFFF

    while place < len(content):
        head = content[place : place + 8]
        (size,) = struct.unpack("<Q", head)
        body = content[place + 12 : place + 12 + size]
        ends = struct.unpack_from("<I", content, place + 8) + struct.unpack_from(
            "<I", content, place + 12 + size
        )
        assert ends == (masked(head), masked(body))
        place += 16 + size
        yield dict(fields(body))


def scalars(event: dict[int, object]) -> dict[str, float]:
    found = {}
    for _, value in fields(event.get(5, b"")):
        inside = dict(fields(value))
        found[inside[1].decode()] = inside[2]
    return found


def played(folder: Path, *sinks: dict[str, object], rounds: int = 5) -> Path:
    return run(scenario(rounds=rounds, metrics={"sinks": list(sinks)}), out=folder).run_dir


def test_tensorboard_has_every_number_of_every_release(tmp_path: Path) -> None:
    folder = played(tmp_path / "run", {"kind": "tensorboard"}, {"kind": f"{OWN}:Lines"})
    (file,) = (folder / "tensorboard").iterdir()
    version, start, *rest = events(file)
    assert version[3] == b"brain.Event:2" and dict(fields(start[7])) == {1: 1}
    seen: dict[tuple[str, int], float] = {}
    for event in rest:
        for tag, value in scalars(event).items():
            assert (tag, event[2]) not in seen
            seen[tag, event[2]] = value
    for stream in ("releases", "errors", "timing", "clipping"):
        for row in streams.read(folder / "metrics", stream).to_pylist():
            for name, value in row.items():
                if name in streams.KEY or not isinstance(value, (int, float)):
                    continue
                found = seen.pop((f"{stream}/{name}", row["release"]))
                assert math.isclose(found, value, rel_tol=1e-6)
    assert not seen
    lines = (folder / "lines.txt").read_text().splitlines()
    assert [line for line in lines if line.startswith("errors")] == [
        f"errors {release}" for release in range(5)
    ]
    assert not any(line.startswith("ledger") for line in lines)


def test_tensorboard_itself_reads_the_files(tmp_path: Path) -> None:
    loader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="TensorBoard is not there"
    )
    made = prepare(
        scenario(rounds=6, metrics={"sinks": [{"kind": "tensorboard"}]}), out=tmp_path / "run"
    )
    rows = made.play()
    for _ in range(3):
        next(rows)
    rows.close()
    for _ in reopen(tmp_path / "run").play():
        pass
    read = loader.EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    read.Reload()
    known = streams.read(tmp_path / "run" / "metrics", "releases")["epsilon"].to_pylist()
    found = read.Scalars("releases/epsilon")
    assert [each.step for each in found] == list(range(6))
    assert [each.value for each in found] == pytest.approx(known, rel=1e-6)


def test_repetitions_are_runs_of_their_own(tmp_path: Path) -> None:
    outlet = TensorBoard().opened(Began(tmp_path, {"repeat": 2}))
    for repetition in (0, 1):
        batch = streams.keyed(streams.simulation_only({"noise": 0.5}), repetition, 0)
        outlet.rows("errors", batch)
    outlet.close()
    places = sorted(path.name for path in (tmp_path / "tensorboard").iterdir())
    assert places == ["repetition-0", "repetition-1"]


def test_a_sink_that_fails_is_named_and_stops_nobody(tmp_path: Path) -> None:
    folder = played(tmp_path / "run", {"kind": f"{OWN}:Failing"}, {"kind": f"{OWN}:Lines"})
    assert streams.read(folder / "metrics", "releases").num_rows == 5
    said = (folder / "log.txt").read_text()
    assert "the sink tests.metrics.own_sink:Failing failed and gets no more rows" in said
    assert "no room" in said
    assert len((folder / "lines.txt").read_text().splitlines()) > 5


def test_sinks_that_are_not_there_are_refused_at_once() -> None:
    with pytest.raises(InputError, match="choose one of prometheus, tensorboard, or name your own"):
        scenario(metrics={"sinks": [{"kind": "tensorbord"}]})


@pytest.fixture
def page():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = Page('a "run"', port, everything=False)
    yield made, f"http://127.0.0.1:{port}"
    made.close()


def test_prometheus_reads_the_last_values_of_released_streams(page) -> None:
    made, url = page
    rows = [
        {**dict.fromkeys(streams.SCHEMAS["releases"].names, 0), "release": each, "bound": "b"}
        for each in range(3)
    ]
    rows[-1] |= {"epsilon": math.inf, "delta": 1e-6, "batch_size": 70, "epsilon_seed": None}
    made.rows("releases", streams.table("releases", rows).to_batches()[0])
    made.rows("errors", streams.keyed(streams.simulation_only({"noise": 0.5}), 0, 2))
    finer = streams.released({"estimate": [0.5]}, reader="analyst-1")
    made.rows("analyst-1", streams.keyed(finer, 0, 2))
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    assert 'raydp_sim_releases_batch_size{run="a \\"run\\""} 70.0\n' in text
    assert 'raydp_sim_releases_epsilon{run="a \\"run\\""} +Inf\n' in text
    assert "# HELP raydp_sim_releases_delta that goes with" in text
    assert 'raydp_sim_rows_total{run="a \\"run\\"",stream="releases"} 3\n' in text
    assert "errors" not in text and "noise" not in text and "epsilon_seed" not in text
    assert "analyst" not in text  # what one of several readers sees is not everyone's
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{url}/")
    parser = pytest.importorskip("prometheus_client.parser")
    found = {family.name: family.samples for family in parser.text_string_to_metric_families(text)}
    (sample,) = found["raydp_sim_releases_delta"]
    assert sample.value == 1e-6 and sample.labels == {"run": 'a "run"'}
