"""`raydp-sim sweep` and `raydp-sim compare` from the outside."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from raydp_sim.cli import sweep, tables
from raydp_sim.cli.main import main
from raydp_sim.run import Run
from tests.cli.narrow import assert_fits
from tests.cli.test_bad_input import files, refused, write
from tests.conftest import assert_identical

GRID = ("--over", "mechanism.epsilon_local=1,2", "--over", "mechanism.coordinates=1,2")
TURNED = ("--over", "mechanism.coordinates=2,1", "--over", "mechanism.epsilon_local=2,1")
FOLDERS = [f"coordinates={c},epsilon_local={e}" for e in (1, 2) for c in (1, 2)]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYDP_SIM_PATH", "")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(tmp_path, {"placement.checkpoint_seconds": 0})


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def done(*arguments: str) -> Result:
    result = call(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def test_a_sweep_is_a_table_a_picture_and_a_run_per_point(path: str) -> None:
    result = done("sweep", path, *GRID, "--repeat", "3", "--out", "made")
    rows = pq.read_table("made/sweep.parquet").to_pylist()
    swept = [(row["mechanism.epsilon_local"], row["mechanism.coordinates"]) for row in rows]
    assert swept == [(1, 1), (1, 2), (2, 1), (2, 2)]
    for row, folder in zip(rows, FOLDERS, strict=True):
        summary = json.loads(Path("made/points", folder, "summary.json").read_text())
        assert row["error"] == summary["metrics"]["running_squared_error"]
        assert row["standard_error"] == summary["standard_errors"]["running_squared_error"]
        assert row["epsilon"] == summary["privacy"]["epsilon"]
        assert row["epsilon_local"] == row["mechanism.epsilon_local"]
        assert row["bits"] == summary["communication"]["bits_per_report"]
        assert row["wall_s"] == summary["timing"]["wall_s"] and summary["repeat"] == 3
    assert Path("made/sweep.png").read_bytes().startswith(b"\x89PNG")
    least = min(rows, key=lambda row: row["error"])
    words = " ".join(result.stdout.split())
    assert f"best: mechanism.epsilon_local={least['mechanism.epsilon_local']:g}, " in words
    assert "with the least running squared error of 4 points" in words
    assert "best at the least epsilon" in words or "epsilon_local=1, mech" in words
    assert "sweep: 4 points, " in result.stderr and "(4 of 4)" in result.stderr
    # A point is the run that anyone would have played.
    one = ("--set", "mechanism.epsilon_local=2", "--set", "mechanism.coordinates=1")
    done("run", path, *one, "--set", "repeat=3", "--out", "alone")
    assert_identical(Path("alone"), Path("made/points", FOLDERS[2]))


def test_the_order_changes_nothing_and_what_is_complete_is_not_played_again(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = json.loads(done("sweep", path, *GRID, "--out", "made", "--json").stdout)
    monkeypatch.setattr(Run, "play", None)
    again = done("sweep", path, *TURNED, "--out", "made", "--json")
    assert "4 points, 4 complete" in again.stderr
    second = json.loads(again.stdout)
    key = lambda row: row["run_dir"]  # noqa: E731  # used twice, here
    assert sorted(first["points"], key=key) == sorted(second["points"], key=key)
    assert first["best"] == second["best"] and first["error"] == "running_squared_error"


def test_an_interrupted_sweep_is_continued_to_the_same_numbers(
    path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done("sweep", path, *GRID, "--out", "whole")
    whole, played = Run.play, []

    def play(self: Run) -> Any:
        played.append(self.directory.path.name)
        for row in whole(self):
            yield row
            if len(played) == 2:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Run, "play", play)
        result = call("sweep", path, *GRID, "--out", "made")
    assert result.exit_code == 130 and result.stdout == ""
    assert f"the same command with --out {tmp_path}/made continues" in result.stderr
    assert played == FOLDERS[:2] and not Path("made/sweep.parquet").exists()
    (tmp_path / "made" / "points" / FOLDERS[3] / "metrics").mkdir(parents=True)
    before = Path("made/points", FOLDERS[0], "summary.json").stat().st_mtime_ns
    assert "4 points, 1 complete" in done("sweep", path, *GRID, "--out", "made").stderr
    assert Path("made/points", FOLDERS[0], "summary.json").stat().st_mtime_ns == before
    assert "resumed at" in Path("made/points", FOLDERS[1], "log.txt").read_text()
    for folder in FOLDERS:
        assert_identical(Path("whole/points", folder), Path("made/points", folder))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--over", "mechanism.coordinate=1,2"], ["mechanism.coordinate is 1", "'coordinates'?"]),
        (["--over", "task.rounds="], ["task.rounds has no values", "give some"]),
        (["--over", "task.rounds=1,2,1"], ["task.rounds has 1 twice"]),
        (["--over", "task.rounds=1,0"], ["--over task.rounds=0", "task.rounds is 0"]),
        (["--over", "name.x=1"], ["name.x", "name is not a section"]),
        (["--over", "repeat=1,2", "--repeat", "2"], ["--over repeat", "--repeat 2"]),
        (["--over", "seed=1,2", "--set", "seed=3"], ["--over seed", "--set seed=3"]),
        (["--over", "population.clients=60,4e9"], ["--over population.clients=4000000000", "GiB"]),
        (["--over", "seed=1,2", "--out", "taken"], ["--out", "'taken'", "exists"]),
        (["--over", "seed=1,2", "--address", "h:1"], ["--address", "inline"]),
    ],
)
def test_bad_sweeps_are_refused_before_anything_is_played(
    options: list[str], words: list[str], path: str, tmp_path: Path
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "precious.txt").write_text("keep me")
    before = files(tmp_path)
    refused(call("sweep", path, *options), *words)
    assert files(tmp_path) == before


def test_a_directory_of_another_sweep_is_refused(path: str, tmp_path: Path) -> None:
    over = ("--over", "seed=1,2")
    done("sweep", path, *over, "--out", "made")
    before = files(tmp_path)
    refused(call("sweep", path, "--over", "seed=1,3", "--out", "made"), "made", "another grid")
    refused(call("sweep", path, *over, "--set", "task.rounds=1", "--out", "made"), "other contents")
    write(tmp_path, {"population.clients": 49})
    refused(call("sweep", path, *over, "--out", "made"), "other contents")
    assert files(tmp_path) == before


def test_a_figure_is_not_swept() -> None:
    refused(call("sweep", "seeds/000-figure-5.6", "--over", "seed=1,2"), "figure")


def test_the_table_of_a_sweep_fits_into_80_columns(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "draw", lambda *drawn: b"")
    fields = ("placement.checkpoint_seconds=0,1", "participation.sampled=20", "task.rounds=1,2")
    arguments = ["sweep", path, *(word for field in fields for word in ("--over", field))]
    arguments += ["--set", "name=x", "--repeat", "2", "--out", "made"]
    done(*arguments)
    with monkeypatch.context() as patch:
        narrow = assert_fits(arguments, patch)
    assert "checkpoint_seconds" in narrow and "± s.e." in narrow
    assert " sampled" not in narrow, "it has one value"
    monkeypatch.setattr(tables, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    assert "No room for: wall s, bits, local loss;" in " ".join(done(*arguments).stdout.split())
    monkeypatch.setenv("COLUMNS", "40")
    lines = done(*arguments).stdout.splitlines()
    assert sum(line.startswith("point ") for line in lines) == 3, "one below the other"
    assert all(len(line) <= 40 for line in lines if "/" not in line)


def test_runs_are_compared_side_by_side(path: str) -> None:
    for name, sampled in (("one", "10"), ("two", "20")):
        done("run", path, "--set", f"participation.sampled={sampled}", "--out", name)
    shown = done("compare", "one", "two", "--plot", "both.png").stdout
    assert "participation.sampled" in shown and "running squared error" in shown
    assert "task.rounds" not in shown, "they do not differ in it"
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(done("compare", "one", "two", "--json").stdout)
    assert [run["differs"] for run in found["runs"]] == [
        {"participation.sampled": 10},
        {"participation.sampled": 20},
    ]
    for run in found["runs"]:
        summary = json.loads(Path(run["run_dir"], "summary.json").read_text())
        assert run["epsilon"] == summary["privacy"]["epsilon"]
        assert run["error"] == summary["metrics"][found["error"]]
    Path("two/summary.json").unlink()
    refused(call("compare", "one", "two"), "two: it is not complete", "raydp-sim resume two")
    refused(call("compare", "one", "one"), "given twice")
    refused(call("compare", "one"), "at least two")
    refused(call("compare", "one", "nowhere"), "nowhere", "scenario.yaml")
    refused(call("compare", "one", "two", "--plot", "x.pdf"), "--plot", ".png")
