"""A full disk, a killed actor: the run stops and says so, no row is lost, none is there twice."""

import errno
import math
import threading
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.errors import RunError
from raydp_sim.metrics import connect, parts, writer
from raydp_sim.run import prepare, reopen, run
from tests.conftest import assert_identical, scenario, with_placement
from tests.metrics.test_live import ALL, playing, watched

pytestmark = pytest.mark.timeout(200, method="thread")


def full(monkeypatch: pytest.MonkeyPatch, name: str, after: int) -> None:
    """Let writing fail from some call on, as on a disk without room."""
    writing, calls = getattr(parts, name), []

    def failing(path: Path, *args: object) -> None:
        calls.append(path)
        if len(calls) > after:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        writing(path, *args)

    monkeypatch.setattr(parts, name, failing)


@pytest.mark.parametrize(("name", "after"), [("write_durable", 3), ("write_table", 0)])
def test_a_full_disk_stops_a_run_that_is_resumed_to_the_same_rows(
    name: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a part, or the part itself, cannot be written.

    However long a release takes, parts are written at the end: else nothing would wait for one.
    """
    monkeypatch.setattr(writer, "_SECONDS", math.inf)
    monkeypatch.setattr(writer, "_MOST_SECONDS", math.inf)
    base = with_placement(scenario(rounds=8), checkpoint_seconds=0)
    with monkeypatch.context() as patched:
        full(patched, name, after)
        made = prepare(base, out=tmp_path / "run")
        with pytest.raises(RunError, match=r"No space left on device.*raydp-sim resume") as caught:
            list(made.play())
    assert caught.value.resumable
    list(reopen(tmp_path / "run").play())
    run(base, out=tmp_path / "whole")
    assert_identical(tmp_path / "run", tmp_path / "whole")


def test_a_full_disk_is_one_line_for_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(monkeypatch, "write_table", 0)
    inline = ("--set", "placement.backend=inline", "--out", str(tmp_path / "run"))
    result = CliRunner().invoke(main, ["run", "quickstart", *inline])
    assert result.exit_code == 3
    last = result.stderr.strip().replace("\n", " ")
    assert "No space left on device" in last and "raydp-sim resume" in last
    assert "Traceback" not in result.output


@pytest.mark.cluster
@pytest.mark.timeout(600, method="thread")  # Ray starts twice, and others may be busy
def test_a_killed_metrics_actor_stops_a_run_whose_followers_lose_nothing(
    tmp_path: Path, ray_session: None
) -> None:
    made, urls = playing(tmp_path / "run", rounds=40, backend="ray", recoveries=0, span=1)
    rows = made.play()
    for _ in range(5):
        next(rows)
    following = connect(urls[0], ALL).follow("releases")
    seen: list[int] = []
    for batch in following:
        seen += batch["release"].to_pylist()
        if len(seen) >= 5:
            break
    (actor,) = [
        process
        for process in psutil.process_iter(["name"])
        if process.info["name"].startswith("ray::MetricsActor") and _ours(process)
    ]
    actor.kill()
    with pytest.raises(RunError, match=r"died.*continue with `raydp-sim resume"):
        list(rows)
    with pytest.raises(RunError, match="the run was interrupted"):
        for batch in following:
            seen += batch["release"].to_pylist()
    again = reopen(tmp_path / "run")
    urls = watched(again)
    rest: list[int] = []
    rows = again.play()
    next(rows)
    later = connect(urls[0], ALL).follow("releases", following.offset)
    reading = threading.Thread(
        target=lambda: rest.extend(later.to_table()["release"].to_pylist()), daemon=True
    )
    reading.start()
    list(rows)
    reading.join()
    assert seen + rest == list(range(40))


def _ours(process: psutil.Process) -> bool:
    """Say whether a process is below this one: there may be other tests on the machine."""
    return psutil.Process().pid in [parent.pid for parent in process.parents()]
