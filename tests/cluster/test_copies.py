"""A finished run is copied whole to wherever Arrow reaches, or the command says why not."""

import shlex
from types import SimpleNamespace

import pytest
import yaml
from pyarrow import fs

from raydp_sim.errors import InputError, RunError
from raydp_sim.remote import handed
from raydp_sim.remote.copies import Copies
from raydp_sim.run import run
from tests.actors.test_faults import exit_code
from tests.conftest import assert_identical, scenario, with_placement


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("copies") / "made"
    run(scenario(40, rounds=3), out=folder)
    return folder


def written(folder):
    base = with_placement(scenario(40, rounds=3), checkpoint_seconds=0)
    (folder / "own.yaml").write_text(yaml.safe_dump(base.document()))
    return str(folder / "own.yaml")


def content(folder):
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in found.items() if name.name != ".lock"}


def test_a_run_is_copied_when_it_is_finished(made, tmp_path, capsys):
    uri = f"file://{tmp_path}/store/runs"
    words = ("--out", str(tmp_path / "first"), "--copy-to", uri)
    assert exit_code("run", written(tmp_path), *words) == 0
    assert f"copied to {uri}/first" in capsys.readouterr().err.replace("\n", "")
    copied = tmp_path / "store" / "runs" / "first"
    assert content(copied) == content(tmp_path / "first")
    assert not (copied / ".lock").exists()
    assert [path.name for path in copied.parent.iterdir()] == ["first"]
    assert_identical(made, copied)


def test_objects_are_what_the_files_are(made, monkeypatch):
    """A file system of Arrow that is no disk."""
    store = fs._MockFileSystem()
    chosen = SimpleNamespace(from_uri=lambda uri: (store, "bucket/runs"))
    monkeypatch.setattr(fs, "FileSystem", chosen)
    assert Copies("mock://bucket/runs").send(made) == "mock://bucket/runs/made"
    listed = store.get_file_info(fs.FileSelector("bucket", recursive=True))
    found = {}
    for info in listed:
        if info.is_file:
            with store.open_input_stream(info.path) as file:
                found[info.path.removeprefix("bucket/runs/made/")] = file.read()
    assert found == content(made)


def test_one_that_was_cut_off_is_copied_again(made, tmp_path, monkeypatch, capsys):
    uri, copied, copy = f"file://{tmp_path}", tmp_path / "made", Copies._copy

    def failing(self, source, path):
        if len(content(tmp_path)) == 3:
            raise OSError("AWS Error NETWORK_CONNECTION")
        copy(self, source, path)

    with monkeypatch.context() as patch:
        patch.setattr(Copies, "_copy", failing)
        assert exit_code("resume", str(made), "--copy-to", uri) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert f"raydp-sim resume {made} --copy-to" in said and "NETWORK_CONNECTION" in said
    assert len(content(copied)) == 3 and not (copied / "summary.json").exists()
    for _ in range(2):
        assert exit_code("resume", str(made), "--copy-to", uri) == 0
        assert content(copied) == content(made)


def test_another_run_is_not_overwritten(made, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "summary.json").write_text("{}")
    with pytest.raises(RunError, match="holds another run") as refused:
        Copies(f"file://{tmp_path}").send(made)
    assert not refused.value.resumable
    assert content(tmp_path) == {"made/summary.json": b"{}"}


@pytest.mark.parametrize("uri", ["nonsense", "ftp://host/runs", "file:///proc/runs"])
def test_where_nothing_can_be_written_nothing_is_played(uri, tmp_path, capsys):
    words = ("--out", str(tmp_path / "out"), "--copy-to", uri)
    assert exit_code("run", written(tmp_path), *words) == 2
    assert f"--copy-to is '{uri}'" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "uri,shown",
    [
        ("s3://key:sec/ret@bucket/runs", "s3://bucket/runs"),
        ("abfs://container@account/runs", "abfs://container@account/runs"),
    ],
)
def test_an_address_is_shown_without_what_opens_it(uri, shown, monkeypatch):
    chosen = SimpleNamespace(from_uri=lambda uri: (fs._MockFileSystem(), "runs"))
    monkeypatch.setattr(fs, "FileSystem", chosen)
    assert Copies(uri).shown == shown


def test_keys_in_an_address_are_not_shown(monkeypatch):
    def refused(uri):
        raise OSError(f"no such bucket: {uri}")

    chosen = SimpleNamespace(from_uri=refused)
    monkeypatch.setattr(fs, "FileSystem", chosen)
    with pytest.raises(InputError) as error:
        Copies("s3://key:secret@bucket/runs?session_token=hidden")
    assert "s3://bucket/runs" in str(error.value)
    assert not {"key", "secret", "hidden"} & set(str(error.value).replace(":", " ").split())
    assert "secret" not in str(error.value) and "hidden" not in str(error.value)


def test_what_is_handed_in_copies_there_also_when_it_was_resumed():
    lines = handed.playing("~/runs/a", (), None, "s3://bucket/my runs").splitlines()
    commands = [shlex.split(line) for line in lines if "raydp-sim r" in line]
    assert [words[1] for words in commands] == ["run", "resume"]
    for words in commands:
        assert words[words.index("--copy-to") + 1] == "s3://bucket/my runs"
    assert "--copy-to" not in handed.playing("~/runs/a", (), None)
