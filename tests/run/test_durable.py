"""What could not be written leaves nothing behind, neither at once nor when a run goes on."""

import errno
import os

import pytest
import yaml

from raydp_sim import durable
from raydp_sim.run import reopen, run
from raydp_sim.run.directory import RunDir
from tests.actors.test_faults import exit_code
from tests.conftest import assert_identical, interrupted, scenario, with_placement

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full(*_):
    raise FULL


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_file_and_no_other(step, tmp_path, monkeypatch):
    durable.write_durable(tmp_path / "a", b"before")
    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(OSError, match="No space left"):
            durable.write_durable(tmp_path / "a", b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"before"


@pytest.mark.parametrize("where", ["write_summary", "save", "create", "rewind", "locked"])
def test_a_disk_that_is_full_is_exit_code_3_and_the_run_goes_on_later(
    where, tmp_path, monkeypatch, capsys
):
    """Wherever in a run it is noticed: at its beginning, when it is taken up, or at its end."""
    base = with_placement(scenario(40), checkpoint_seconds=0)
    run(base, out=tmp_path / "whole")
    words = ["run", written(tmp_path, base), "--out", str(tmp_path / "part")]
    if where in ("rewind", "locked"):
        interrupted(base, tmp_path / "part", 2)
        words = ["resume", str(tmp_path / "part")]
    with monkeypatch.context() as patch:
        patch.setattr(RunDir, where, full)
        assert exit_code(*words) == 3
    assert "No space left on device" in capsys.readouterr().err
    if where != "create":
        words = ["resume", str(tmp_path / "part")]
    assert exit_code(*words) == 0
    assert_identical(tmp_path / "whole", tmp_path / "part")


def written(folder, base):
    (folder / "own.yaml").write_text(yaml.safe_dump(base.document()))
    return str(folder / "own.yaml")


def test_a_resumed_run_drops_what_a_killed_writer_left(tmp_path):
    base = with_placement(scenario(40), checkpoint_seconds=0)
    run(base, out=tmp_path / "whole")
    interrupted(base, tmp_path / "part", 2)
    for folder in ("metrics", "checkpoints", "ledger", "."):
        (tmp_path / "part" / folder / ".half.npz.123.tmp").write_bytes(b"half")
    for _ in reopen(tmp_path / "part").play():
        pass
    assert not [*tmp_path.rglob(".*.tmp")]
    assert_identical(tmp_path / "whole", tmp_path / "part")
