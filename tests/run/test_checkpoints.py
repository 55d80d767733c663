"""A checkpoint is what was written, or it is refused, and the last good one is used."""

import os
import shutil

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.run import prepare, reopen, run
from raydp_sim.run.checkpoints import Checkpoint, Checkpoints, packed
from tests.actors.test_faults import exit_code
from tests.actors.test_protocol_state import remembering
from tests.conftest import assert_identical, interrupted, scenario


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run that nothing disturbed, and the same one stopped after three releases."""
    folder = tmp_path_factory.mktemp("checkpoints")
    base = remembering(per_actor=30)
    run(base, out=folder / "whole")
    interrupted(base, folder / "part", 3)
    return folder


def changed(path, change):
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    change(arrays)
    path.write_bytes(packed(arrays))


def poison(arrays):
    name = next(key for key in arrays if arrays[key].dtype.kind == "f" and arrays[key].size)
    arrays[name] = np.full_like(arrays[name], np.nan)


def reshape(arrays):
    name = next(key for key in arrays if "/" in key and arrays[key].ndim == 1)
    arrays[name] = arrays[name][None]


def without(group):
    def change(arrays):
        for name in [key for key in arrays if key.startswith(f"{group}/")]:
            del arrays[name]

    return change


def renamed(path):
    path.rename(path.with_name("000000-00000099.npz"))


def odd(path):
    shutil.copy(path, path.with_name("copy.npz"))


def one_client_file(path):
    return sorted(path.with_suffix(".clients").glob("*.npz"))[1]


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-40]),
    "flipped": lambda path: path.write_bytes(path.read_bytes().replace(b"clock/", b"clock_")),
    "renamed": renamed,
    "another name": odd,
    "of other shape": lambda path: changed(path, reshape),
    "without a group": lambda path: changed(path, without("state")),
    "without a seal": lambda path: changed(path, lambda arrays: arrays.pop("seal")),
    "NaN": lambda path: changed(path, poison),
    "clients lost": lambda path: one_client_file(path).unlink(),
    "clients emptied": lambda path: one_client_file(path).write_bytes(b""),
    "clients exchanged": lambda path: shutil.copy(
        sorted(path.with_suffix(".clients").glob("*.npz"))[0], one_client_file(path)
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_and_the_last_good_one_is_used(
    damage, runs, tmp_path, capsys
):
    shutil.copytree(runs / "part", tmp_path / "run")
    before, last = sorted((tmp_path / "run" / "checkpoints").glob("*.npz"))
    DAMAGES[damage](last)
    assert exit_code("resume", str(tmp_path / "run")) == 2
    said = " ".join(capsys.readouterr().err.split())
    good = last if damage == "another name" else before
    release = int(good.stem.split("-")[1])
    assert "damaged" in said and f"resume again to continue from release {release} of" in said
    assert len(said) < 1000
    assert exit_code("resume", str(tmp_path / "run")) == 0
    assert f"resumed at repetition 0, release {release}\n" in (
        (tmp_path / "run" / "log.txt").read_text()
    )
    assert_identical(runs / "whole", tmp_path / "run")


def test_where_every_checkpoint_is_damaged_the_run_starts_from_its_beginning(runs, tmp_path):
    shutil.copytree(runs / "part", tmp_path / "run")
    for path in (tmp_path / "run" / "checkpoints").glob("*.npz"):
        path.write_bytes(b"")
    with pytest.raises(InputError, match=r" and .* resume again to continue from release 0 of"):
        list(reopen(tmp_path / "run").play())
    list(reopen(tmp_path / "run").play())
    assert_identical(runs / "whole", tmp_path / "run")


def test_two_checkpoints_are_kept_while_a_run_is_played_and_one_when_it_is_over(runs):
    assert len(list(runs.glob("part/checkpoints/*.npz"))) == 2
    assert len(list(runs.glob("part/checkpoints/*.clients"))) == 2
    assert len(list(runs.glob("whole/checkpoints/*.npz"))) == 1
    assert len(list(runs.glob("whole/checkpoints/*.clients"))) == 1


@pytest.mark.parametrize("place", ["checkpoints", ".lock"])
def test_a_folder_that_is_gone_or_in_the_way_is_bad_input(place, runs, tmp_path, capsys):
    shutil.copytree(runs / "part", tmp_path / "run")
    path = tmp_path / "run" / place
    if place == "checkpoints":
        shutil.rmtree(path)
    else:
        path.unlink()
        path.mkdir()
    assert exit_code("resume", str(tmp_path / "run")) == 2
    assert place in capsys.readouterr().err
    if place == "checkpoints":
        path.mkdir()
        list(reopen(tmp_path / "run").play())
        assert_identical(runs / "whole", tmp_path / "run")


@pytest.mark.parametrize("step", range(6))
def test_a_run_killed_while_it_was_made_is_taken_up(step, tmp_path, monkeypatch, capsys):
    """The process stops at the n-th step towards the disk, before the scenario is written."""
    made, steps = scenario(40, rounds=1), 0
    file = tmp_path / "small.yaml"
    file.write_text("placeholder: only its name is noted\n")

    def dying(function):
        def call(*args, **more):
            nonlocal steps
            steps += 1
            if steps > step:
                raise KeyboardInterrupt
            return function(*args, **more)

        return call

    with monkeypatch.context() as patch:
        for name in ("mkdir", "fsync", "replace"):
            patch.setattr(os, name, dying(getattr(os, name)))
        with pytest.raises(KeyboardInterrupt):
            list(prepare(made, out=tmp_path / "run", origin=file).play())
    assert not (tmp_path / "run" / "scenario.yaml").exists()
    if (tmp_path / "run" / "metrics").exists():
        assert exit_code("resume", str(tmp_path / "run")) == 2
        assert "killed before it began" in " ".join(capsys.readouterr().err.split())
    run(made, out=tmp_path / "run")
    run(made, out=tmp_path / "whole")
    assert_identical(tmp_path / "whole", tmp_path / "run")


def test_what_somebody_else_put_there_is_not_taken_for_a_killed_run(tmp_path):
    for name in ("metrics", "ledger", "checkpoints"):
        (tmp_path / "run" / name).mkdir(parents=True)
    (tmp_path / "run" / "ledger" / "charges.log").write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        prepare(scenario(40), out=tmp_path / "run")


def test_two_runs_never_share_a_directory(tmp_path):
    """Both found it free; the one that comes second is refused when it begins to write."""
    one, other = (prepare(scenario(40), out=tmp_path / "run") for _ in range(2))
    waiting = other.play()
    other.watcher.phase = lambda name: list(one.play()) if name == "placing clients" else None
    with pytest.raises(InputError, match="another run has begun there"):
        next(waiting)


def test_names_that_are_longer_sort_as_numbers_do(tmp_path):
    """Checkpoints are found by their names; 10 comes after 9."""
    folder = Checkpoints(tmp_path)
    for finished in (9, 10, 11):
        folder.save(Checkpoint(0, finished, {"state": {"x": np.arange(finished)}}))
    assert folder.latest().finished == 11 and folder.reached().finished == 11
    assert len(list(tmp_path.glob("*.npz"))) == 2
