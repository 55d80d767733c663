"""Other tools read the folder of a run that is being played, and several runs as one table."""

from pathlib import Path

import pyarrow as pa
import pytest

import raydp_sim.metrics
from raydp_sim.errors import InputError
from raydp_sim.metrics import streams, writer
from raydp_sim.metrics.reference import reference
from raydp_sim.run import prepare, run
from tests.conftest import scenario, with_placement
from tests.docs.pages import PAGES, blocks, call

PAGE = "docs/streams.md"
ROUNDS = 9


@pytest.fixture
def playing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A run that has made half of its releases, and is still being played when the test is over."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(writer, "_SECONDS", 0.0)
    monkeypatch.setattr(writer, "_SHARE", 0.0)
    made = prepare(with_placement(scenario(rounds=ROUNDS), 2), out="runs/mine").play()
    for _ in range(5):
        next(made)
    yield made
    made.close()


@pytest.mark.parametrize("number", range(4))
def test_the_lines_of_the_page_read_a_run_that_is_being_played(playing, number: int) -> None:
    line = blocks(PAGE, "python")[0].split("\n\n")[1].splitlines()[number]
    tool = line.split(".")[0]
    for module in {tool, "pandas"} if "pandas" in line else {tool}:
        pytest.importorskip(module)
    known: dict[str, object] = {}
    exec(f"import {tool}, raydp_sim.metrics", known)

    def last() -> int:
        found = eval(line, known)
        if isinstance(found, list):
            return int(found[0][0])
        return int(found["release"].max())

    assert last() == 4
    next(playing)
    assert last() == 5
    assert len(list(playing)) == ROUNDS - 6
    assert last() == ROUNDS - 1


def test_several_runs_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = run(scenario(rounds=2), out="runs/mine")
    second = run(scenario(rounds=3), out="runs/other")
    known = {"raydp_sim": raydp_sim}
    whole = eval(blocks(PAGE, "python")[1], known)
    assert whole["run"].to_pylist() == ["mine"] * 2 + ["other"] * 3
    assert raydp_sim.metrics.read([first, second], "releases").equals(whole)
    assert whole.schema.field("epsilon").metadata[b"meaning"]
    alone = raydp_sim.metrics.read(first, "errors").drop_columns(["run"])
    assert alone.equals(streams.read(first.run_dir / "metrics", "errors"))


def test_runs_of_the_same_name_are_told_apart_and_columns_may_differ(tmp_path: Path) -> None:
    one = run(scenario(rounds=2), out=tmp_path / "a" / "run")
    other = run(scenario(rounds=2), out=tmp_path / "b" / "run")
    part = next((other.run_dir / "metrics" / "errors").iterdir())
    fewer = streams.read(other.run_dir / "metrics", "errors").drop_columns(["noise"])
    pa.parquet.write_table(fewer, part)
    whole = raydp_sim.metrics.read([one, other], "errors")
    assert set(whole["run"].to_pylist()) == {"a/run", "b/run"}
    assert whole["noise"].null_count == 2


def test_what_is_no_run_or_no_stream_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no metrics/ in it"):
        raydp_sim.metrics.read(tmp_path, "releases")
    made = run(scenario(rounds=2), out=tmp_path / "run")
    with pytest.raises(InputError, match="no run has the stream 'releasess'; there are clipping"):
        raydp_sim.metrics.read(made, "releasess")


def test_the_page_has_every_stream_and_column() -> None:
    """If not: replace what follows `## Reference` by what `raydp-sim schema --streams` prints."""
    shown = PAGES[PAGE].split("prints what follows.\n\n")[1]
    assert shown.strip() == reference().strip() == call("schema", "--streams").stdout.strip()
