"""The commands that need no Ray, from the outside."""

import importlib
import json
import pkgutil
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from raydp_sim import cli
from raydp_sim.cli import playing
from raydp_sim.cli.main import main, summaries
from raydp_sim.errors import RunError
from raydp_sim.run import Run
from tests.cli.test_bad_input import write
from tests.conftest import assert_identical


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder of the test's own, and forget what it made importable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("RAYDP_SIM_PATH", "")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def done(*arguments: str) -> Result:
    result = call(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def command_of(name: str) -> click.Command:
    return importlib.import_module(f"raydp_sim.cli.{name}").command


def commands() -> dict[str, click.Command]:
    found = {name: command_of(name) for name in summaries()}
    for name, command in list(found.items()):
        if isinstance(command, click.Group):
            found |= {f"{name} {inner}": below for inner, below in command.commands.items()}
    return found


@pytest.mark.parametrize("name", commands())
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    text = done(*name.split(), "--help").stdout
    assert "Example:" in text
    assert "raydp-sim " in text.partition("Example:")[2]


def test_all_commands_are_found() -> None:
    names = [found.name for found in pkgutil.iter_modules(cli.__path__)]
    modules = {name: importlib.import_module(f"{cli.__name__}.{name}") for name in names}
    defined = {
        name
        for name, module in modules.items()
        if isinstance(getattr(module, "command", None), click.Command)
    }
    assert {"run", "validate", "list", "schema", "resume"} <= defined == set(summaries())
    assert all(command_of(name).name == name for name in summaries())


def test_run_prints_a_summary_and_leaves_a_whole_directory(tmp_path: Path, drawn: None) -> None:
    result = done("run", write(tmp_path, {}), "--out", "made")
    for words in (
        "squared error",
        "epsilon",
        "pld-",
        "against a server that sees nothing",
        "bits",
        "made",
    ):
        assert words in result.stdout
    assert "plan: one process" in result.stderr
    assert "\x1b" not in result.stdout + result.stderr
    assert len(result.stderr.splitlines()) < 10
    made = {path.name for path in Path("made").iterdir()}
    assert made >= {"scenario.yaml", "metrics", "ledger", "checkpoints", "summary.json", "log.txt"}
    assert "plot.png" in made


def test_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    result = done("run", write(tmp_path, {"repeat": 2}), "--out", "made", "--json")
    summary = json.loads(result.stdout)
    assert summary == json.loads(Path("made/summary.json").read_text())
    assert set(summary["standard_errors"]) <= set(summary["metrics"])
    assert [row["name"] for row in json.loads(done("list", "--json").stdout)]
    assert json.loads(done("validate", "quickstart", "--json").stdout)[0]["valid"]
    assert json.loads(done("resume", "made", "--json").stdout) == summary


def test_standard_errors_are_shown_when_there_are_repetitions(tmp_path: Path) -> None:
    # The estimates have a ± of their own, of the noise.
    assert "(standard error)" not in done("run", write(tmp_path, {}), "--out", "one").stdout
    shown = done("run", write(tmp_path, {"repeat": 3}), "--out", "three").stdout
    assert re.search(r"± \S+ \(standard error\)", shown) and "3 repetitions" in shown


def test_withheld_releases_are_shown(tmp_path: Path) -> None:
    rare = {"kind": "bernoulli", "probability": 0.001}
    fields = {"shuffle.min_batch": 20, "population.availability": rare}
    result = done("run", write(tmp_path, fields), "--out", "made")
    assert "0 of 2; 2 withheld" in result.stdout


def test_a_central_run_names_its_view(tmp_path: Path) -> None:
    mechanism = {"kind": "central-laplace", "radius": 4.0, "epsilon": 0.5}
    path = write(tmp_path, {"trust": "central", "mechanism": mechanism})
    shown = done("run", path, "--out", "made").stdout
    assert "is trusted" in " ".join(shown.split()) and "epsilon_local" not in shown


def test_without_out_every_run_gets_a_directory_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, {})
    for _ in range(2):
        done("run", path)
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_the_seed_decides(tmp_path: Path) -> None:
    path = write(tmp_path, {})
    for out, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        done("run", path, "--seed", seed, "--out", out)
    assert_identical(Path("a"), Path("b"))
    with pytest.raises(AssertionError):
        assert_identical(Path("a"), Path("c"))


def test_shipped_scenarios_are_listed_and_run_by_name() -> None:
    shown = done("list").stdout
    for word in ("quickstart", "10,000", "shuffle", "quickstart.yaml"):
        assert word in shown
    overrides = ["--set", "placement.backend=inline", "--set", "task.rounds=1"]
    assert "quickstart" in done("run", "quickstart", *overrides, "--out", "made").stdout


def test_a_file_comes_before_a_shipped_name(tmp_path: Path) -> None:
    shutil.copy(write(tmp_path, {"name": "mine"}), tmp_path / "quickstart")
    assert "mine (trust" in done("run", "quickstart", "--out", "made").stdout


def test_validate_tells_good_from_bad(tmp_path: Path) -> None:
    good, bad = write(tmp_path, {}), str(tmp_path / "other.yaml")
    Path(bad).write_text("name: x\n")
    result = call("validate", good, bad)
    assert result.exit_code == 2
    assert result.stdout == f"{good}: valid\n"
    assert "population is missing" in result.stderr
    found = json.loads(call("validate", good, bad, "--json").stdout)
    assert [entry["valid"] for entry in found] == [True, False]
    assert "population is missing" in found[1]["error"]


def test_validate_replaces_fields_first(tmp_path: Path) -> None:
    good = write(tmp_path, {})
    assert done("validate", good, "--set", "population.clients=1e3").stdout == f"{good}: valid\n"
    result = call("validate", good, "--set", "population.clients=0")
    assert result.exit_code == 2 and "population.clients is 0" in result.stderr
    figure = call("validate", "seeds/000-figure-5.6", "--set", "figure.panels=3")
    assert figure.exit_code == 2 and "figure.panels is 3" in figure.stderr


def test_a_power_of_ten_is_a_whole_number(tmp_path: Path) -> None:
    result = done("run", write(tmp_path, {}), "--set", "population.clients=1e2", "--out", "made")
    assert re.search(r"^clients +100 *$", result.stdout, re.MULTILINE)
    assert yaml.safe_load(Path("made/scenario.yaml").read_text())["population"]["clients"] == 100


def test_bits_and_bytes_add_up(tmp_path: Path) -> None:
    shown = done("run", write(tmp_path, {}), "--out", "made").stdout
    found = re.search(
        r"(\d+) bits per report, sent as (\d+) bytes?; (\d+) reports, (\d+) bytes", shown
    )
    assert found is not None, shown
    bits, each, reports, size = map(int, found.groups())
    assert (each, reports, size) == (-(-bits // 8), 40, 40 * each)


def test_under_local_trust_nothing_is_said_of_a_shuffler(tmp_path: Path) -> None:
    path = write(tmp_path, {"trust": "local"})
    for shown in (done("run", path, "--out", "made").stdout, done("ledger", "made").stdout):
        words = " ".join(shown.split("which holds for")[1].split())
        words = words.partition("amplification")[0].partition("releases per client")[0]
        assert "each client's reports, used or not" in words
        assert "released" not in words and "shuffler" not in words


OWN = '''
from typing import ClassVar
import numpy as np
from raydp_sim.datasets.base import Dataset
from raydp_sim.mechanisms.rr2 import RandomizedResponse

class Parity(Dataset):
    """Every other client holds a 1.

    Fields:
        phase: which of them.
    """

    kind: ClassVar[str] = "parity"
    phase: int = 0

    def width(self):
        return 1

    def values(self, ids, stream):
        return ((ids + self.phase) % 2).astype(np.float64)[:, None]

class Mine(RandomizedResponse):
    """As 2rr."""

    kind: ClassVar[str] = "mine"
'''


def write_own(folder: Path, module: str) -> str:
    """Write a scenario whose data set and mechanism are classes in a file beside it."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(OWN)
    return write(
        folder,
        {
            "population.data": {"kind": f"{module}:Parity", "phase": 1},
            "mechanism": {"kind": f"{module}:Mine", "epsilon_local": 1.0},
        },
    )


def test_classes_beside_the_scenario_file_are_found(tmp_path: Path) -> None:
    path = write_own(tmp_path / "deep", "own_beside")
    done("run", path, "--out", "made")
    kinds = yaml.safe_load(Path("made/scenario.yaml").read_text())
    assert kinds["mechanism"]["kind"] == "own_beside:Mine"
    # `resume` finds them again, although the run directory is somewhere else.
    del sys.modules["own_beside"]
    Path("made/summary.json").unlink()
    done("resume", "made")


def test_classes_in_the_working_directory_are_found(tmp_path: Path) -> None:
    path = write_own(tmp_path, "own_here")
    (tmp_path / "deep").mkdir()
    shutil.move(path, tmp_path / "deep" / "bad.yaml")
    done("run", "deep/bad.yaml", "--out", "made")


def test_a_module_that_fails_is_bad_input(tmp_path: Path) -> None:
    path = write_own(tmp_path, "own_broken")
    (tmp_path / "own_broken.py").write_text("1 / 0")
    result = call("run", path)
    assert result.exit_code == 2
    assert "cannot be imported (division by zero)" in result.stderr


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch, after: int = 1) -> None:
    """Let a run fail after some releases."""
    whole = Run.play

    def play(self: Run) -> Any:
        for number, row in enumerate(whole(self)):
            if number == after:
                raise error
            yield row

    monkeypatch.setattr(playing.Run, "play", play)


def test_an_interrupted_run_says_how_to_resume_and_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, {"task.rounds": 6, "placement.checkpoint_seconds": 0})
    done("run", path, "--out", "whole")
    with monkeypatch.context() as patch:
        fail_with(KeyboardInterrupt(), patch, after=3)
        result = call("run", path, "--out", "made")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert f"raydp-sim resume {tmp_path}/made" in result.stderr
    assert "Traceback" not in result.stderr
    done("resume", "made")
    assert_identical(Path("whole"), Path("made"))


def test_an_interrupt_before_the_beginning_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(self: Run) -> Any:
        raise KeyboardInterrupt
        yield {}

    monkeypatch.setattr(playing.Run, "play", play)
    result = call("run", write(tmp_path, {}), "--out", "made")
    assert result.exit_code == 130
    assert "nothing was written" in result.stderr
    assert not Path("made").exists()


def test_a_run_that_cannot_go_on_ends_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(RunError("an actor died; continue with `raydp-sim resume made`"), monkeypatch)
    result = call("run", write(tmp_path, {}), "--out", "made")
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-1].startswith("raydp-sim: an actor died; continue with")


def test_the_unexpected_is_one_line_and_a_traceback_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(ZeroDivisionError("a surprise\nwith details"), monkeypatch)
    path = write(tmp_path, {})
    result = call("run", path, "--out", "made")
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    assert "unexpected ZeroDivisionError: a surprise" in result.stderr.splitlines()[-1]
    assert "Traceback" in Path("made/log.txt").read_text()
    assert "Traceback" in call("--debug", "run", path, "--out", "again").stderr


def test_the_schema_is_printed() -> None:
    assert json.loads(done("schema").stdout)["properties"]["mechanism"]
