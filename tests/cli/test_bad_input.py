"""Bad input: exit code 2, one message that names field, value and remedy, and nothing written."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result

from raydp_sim.cli.main import main

GOOD: dict[str, Any] = {
    "name": "small",
    "population": {
        "clients": 50,
        "data": {"kind": "gaussian", "dimension": 4, "clip": 1.0},
    },
    "participation": {"kind": "uniform", "sampled": 20},
    "task": {"kind": "mean", "rounds": 2},
    "mechanism": {"kind": "linf", "radius": 1.0, "epsilon_local": 1.0, "coordinates": 2},
    "placement": {"backend": "inline"},
}
BITS = {"population.data": {"kind": "bernoulli", "probability": 0.5}}


@pytest.fixture(autouse=True)
def forget_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYDP_SIM_PATH", "")


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the good scenario with some fields replaced, or removed where the value is None."""
    document = yaml.safe_load(yaml.safe_dump(GOOD))
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = document
        for key in parents:
            place = place.setdefault(key, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    return document


def write(folder: Path, changes: dict[str, Any]) -> str:
    path = folder / "bad.yaml"
    path.write_text(yaml.safe_dump(changed(changes)))
    return str(path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def refused(result: Result, *words: str) -> None:
    assert result.exit_code == 2, (result.exit_code, result.output)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith(("raydp-sim: ", "Usage: ")), result.stderr
    # The folder's name holds digits; they must not count as the value.
    message = result.stderr.replace(str(Path.cwd()), "")
    for word in words:
        assert word in message, (word, message)
    assert result.stderr.count("raydp-sim: ") == 1
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown section": ({"poplation": {}}, ["poplation", "did you mean 'population'?"]),
    "unknown key in a section": (
        {"shuffle.min_bach": 3},
        ["shuffle.min_bach", "3", "did you mean 'min_batch'?"],
    ),
    "unknown key in a piece": (
        {"mechanism.coordinate": 3},
        ["mechanism.coordinate", "3", "did you mean 'coordinates'?"],
    ),
    "unknown key in the data": (
        {"population.data.dimensions": 3},
        ["population.data.dimensions", "3", "did you mean 'dimension'?"],
    ),
    "a key of another kind's": (
        {"mechanism.epsilon": 2},
        ["mechanism.epsilon is 2", "did you mean 'epsilon_local'?"],
    ),
    "a key of another section": ({"clients": 9}, ["clients is 9", "mean 'population.clients'?"]),
    "a key of two other sections": (
        {"privacy.epsilon": 1},
        ["privacy.epsilon is 1", "'mechanism.target.epsilon' or 'privacy.budget.epsilon'?"],
    ),
    "a key cut short": ({"mechanism.eps": 2}, ["mechanism.eps", "did you mean 'epsilon_local'?"]),
    "a number for a list": (
        {"population.availability": {"kind": "diurnal", "low": 0.1, "high": 0.9, "zones": 4}},
        ["population.availability.zones is 4", "a list, such as [4]"],
    ),
    "half a client": ({"population.clients": 2.5}, ["population.clients is 2.5", "whole number"]),
    "1e30 clients": (
        {"population.clients": 1e30},
        ["population.clients is 1e+30; it is too large"],
    ),
    "unknown key like nothing": ({"mechanism.zzz": 3}, ["mechanism.zzz", "3", "schema"]),
    "a key with a dash": ({"shuffle.min-batch": 3}, ["shuffle.min-batch is 3", "'min_batch'"]),
    "a key that is no word": ({"7": 3}, ["7", "not a known key"]),
    "wrong type": (
        {"population.clients": "many"},
        ["population.clients", "'many'", "whole number"],
    ),
    "yes for a number": ({"population.clients": True}, ["population.clients", "True", "a number"]),
    "text for a number": ({"repeat": "2"}, ["repeat", "'2'", "whole number"]),
    "a radius out of all range": ({"mechanism.radius": 1e300}, ["mechanism.radius", "1e+300"]),
    "a dimension out of all range": (
        {"population.data.dimension": 10**9},
        ["population.data.dimension", "1000000000"],
    ),
    "clients that differ": ({"mechanism.clients": 7}, ["mechanism.clients", "7", "50"]),
    "a bound that is not there": ({"privacy.bound": "magic"}, ["privacy.bound", "'magic'", "best"]),
    "a very long name": ({"name": "x" * 300}, ["name", "100"]),
    "section of the wrong type": ({"population": 7}, ["population", "7"]),
    "piece of the wrong type": ({"mechanism": "linf"}, ["mechanism", "'linf'", "kind"]),
    "negative epsilon": (
        {"mechanism.epsilon_local": -1},
        ["mechanism.epsilon_local", "-1", "greater than 0"],
    ),
    "epsilon 0": (
        {"mechanism.epsilon_local": 0},
        ["mechanism.epsilon_local", "0", "greater than 0"],
    ),
    "epsilon nan": (
        {"mechanism.epsilon_local": float("nan")},
        ["mechanism.epsilon_local", "nan", "finite"],
    ),
    "more sampled than clients": (
        {"participation.sampled": 51},
        ["participation.sampled", "51", "50", "population.clients"],
    ),
    "more coordinates than dimensions": (
        {"mechanism.coordinates": 5},
        ["mechanism.coordinates", "5", "4"],
    ),
    "more coordinates than rotated dimensions": (
        {"mechanism.kind": "l2", "population.data.norm": "l2", "mechanism.coordinates": 5},
        ["mechanism.coordinates", "5", "4"],
    ),
    "out of range": (
        {"population.data.clip": 3.0},
        ["population.data", "client", "on_out_of_range: clip"],
    ),
    "missing section": ({"mechanism": None}, ["mechanism", "missing"]),
    "missing field": ({"mechanism.radius": None}, ["mechanism.radius", "missing"]),
    "missing kind": ({"mechanism.kind": None}, ["mechanism.kind", "missing", "linf"]),
    "unknown kind": ({"mechanism.kind": "linff"}, ["mechanism.kind", "'linff'", "'linf'"]),
    "unknown data": ({"population.data.kind": "mnisty"}, ["population.data.kind", "'mnisty'"]),
    "no such class": (
        {"mechanism.kind": "nowhere_at_all:Thing"},
        ["mechanism.kind", "'nowhere_at_all:Thing'", "PYTHONPATH"],
    ),
    "a class of another kind": (
        {"mechanism.kind": "fractions:Fraction"},
        ["mechanism.kind", "'fractions:Fraction'", "subclass"],
    ),
    "trust without its mechanism": (
        {"trust": "central"},
        ["trust", "'central'", "local or shuffle"],
    ),
    "mechanism without its trust": (
        {
            "mechanism": {"kind": "central-laplace", "radius": 1.0, "epsilon": 1.0},
        },
        ["trust", "'shuffle'", "central"],
    ),
    "min_batch above clients": ({"shuffle.min_batch": 51}, ["shuffle.min_batch", "51", "20"]),
    "repeat 0": ({"repeat": 0}, ["repeat", "0", "greater than or equal to 1"]),
    "negative seed": ({"seed": -1}, ["seed", "-1", "greater than or equal to 0"]),
    "two guarantees": (
        {"mechanism.target": {"epsilon": 1.0}},
        ["mechanism", "epsilon_local", "1", "target", "exactly one"],
    ),
    "no guarantee": (
        {"mechanism.epsilon_local": None},
        ["mechanism", "epsilon_local", "exactly one"],
    ),
    "2rr with a vector": (
        {"mechanism": {"kind": "2rr", "epsilon_local": 1.0}},
        ["mechanism", "dimension", "4"],
    ),
    "a dimension that does not fit": (
        {"mechanism.dimension": 5},
        ["mechanism.dimension", "5", "4"],
    ),
    "a mean that does not fit": (
        {"population.data.mean": [1.0, 2.0]},
        ["population.data", "mean", "2", "4"],
    ),
    "a union of types": (
        {"placement.clients_per_actor": 0},
        ["placement.clients_per_actor is 0", "greater than or equal to 1", "'auto'"],
    ),
    "a name with a slash": ({"name": "a/b"}, ["name", "'a/b'"]),
    "delta that is spent": (
        {
            "trust": "local",
            "mechanism": {
                "kind": "gaussian",
                "radius": 2.0,
                "epsilon_local": 1.0,
                "delta_local": 1e-3,
            },
        },
        ["privacy.delta", "1e-06", "task.rounds"],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_bad_file_is_refused_in_one_line(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, words = CASES[name]
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, changes)
    before = files(tmp_path)
    result = call(command, path)
    refused(result, "bad.yaml", *words)
    assert files(tmp_path) == before


def test_the_good_scenario_is_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("validate", write(tmp_path, {})).exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("just words", ["mapping", "population"]),
        ("- a\n- b", ["mapping", "population"]),
        ("name: [1, 2", ["YAML", "line"]),
        ("\tname: x", ["YAML", "line"]),
    ],
)
def test_what_is_not_a_scenario_is_refused(
    text: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text(text)
    result = call("run", "bad.yaml")
    refused(result, "bad.yaml", *words)
    assert files(tmp_path) == {"bad.yaml"}


def doubled(first: str, line: str) -> str:
    """Return YAML in which each of twenty lines holds the one before nine times."""
    return "\n".join(
        [first, *(line.format(i, ", ".join([f"*a{i - 1}"] * 9)) for i in range(1, 20))]
    )


BOMBS = {
    "lists": (doubled("a0: &a0 [x]", "a{0}: &a{0} [{1}]"), ["line 6", "more than 100,000 values"]),
    "merges": (
        doubled("a0: &a0 {x: 1}", "a{0}: &a{0} {{<<: [{1}]}}"),
        ["line 6", "more than 100,000 values"],
    ),
    "many aliases": ("a: &a x\nb: [" + "*a, " * 5000 + "*a]", ["line 2", "1,000 aliases"]),
    "itself": ("a: &a [1, *a]", ["line 1", "*a stands inside of what it names"]),
    "deep": ("[" * 20_000, ["line 1, column 33", "32 levels deep"]),
    "long": ("a: " + "x" * (5 << 20), ["5,242,883 bytes", "kind: file"]),
}


@pytest.mark.timeout(20)  # followed, the aliases would take years
@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_grows_when_read_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, words = BOMBS[name]
    (tmp_path / "bad.yaml").write_text(text)
    refused(call("validate", "bad.yaml"), "bad.yaml", *words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "seed"], ["--set seed", "section.field=value"]),
        (["--set", "=3"], ["--set =3", "section.field=value"]),
        (["--set", "task.round=3"], ["task.round", "3", "did you mean 'rounds'?"]),
        (["--set", "taks.rounds=3"], ["taks", "did you mean 'task'?"]),
        (["--set", "name.a=3"], ["--set name.a=3", "name is not a section"]),
        (["--set", "task.rounds=[1"], ["--set task.rounds=[1", "YAML"]),
        (["--set", "population.clients=4e9"], ["population.clients is 4000000000", "lower it"]),
        (["--set", "population.clients=1e10"], ["population.clients", "less than 4294967296"]),
        (["--set", "name=" + "[" * 99], ["--set name=", "nested more than 32 levels"]),
        (["--set", "task.rounds=0"], ["task.rounds", "0", "greater than or equal to 1"]),
        (["--seed", "-3"], ["seed", "-3", "greater than or equal to 0"]),
        (["--out", "taken"], ["--out", "'taken'", "exists"]),
        (["--out", "bad.yaml/run"], ["--out", "bad.yaml", "directory"]),
        (["--address", "127.0.0.1:1"], ["--address", "inline", "placement.backend"]),
    ],
)
def test_bad_options_are_refused(
    options: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, {})
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "precious.txt").write_text("keep me")
    before = files(tmp_path)
    result = call("run", path, *options)
    lines = result.stderr.strip().splitlines()
    refused(result, *words) if len(lines) == 1 else pytest.fail(result.stderr)
    assert files(tmp_path) == before


DATA = {
    "nan in npy": ("x.npy", [[0.0, 1.0], [np.nan, 0.0]], ["client 1", "nan", "index 0", "finite"]),
    "infinity in npy": ("x.npy", [[0.0, 1.0], [0.0, np.inf]], ["client 1", "inf", "index 1"]),
    "nan in csv": ("x.csv", "a,b\n0,1\nnan,0\n", ["client 1", "nan", "index 0", "finite"]),
    "hole in csv": ("x.csv", "a,b\n0,1\n,0\n", ["client 1", "nan", "index 0"]),
    "words in csv": ("x.csv", "a,b\n0,one\n1,two\n", ["number"]),
    "out of range": ("x.csv", "a,b\n0,1\n7.5,0\n", ["client 1", "7.5", "on_out_of_range: clip"]),
    "too few rows": ("x.csv", "a,b\n0,1\n", ["population.clients", "2", "1 rows"]),
    "missing": ("", "", ["population.data.path", "there is no such file"]),
    "not an array": ("x.npy", "these are words", ["population.data.path", "cannot be read"]),
    "unknown ending": ("x.txt", "1 2", ["population.data.path", ".txt", ".npy"]),
    "one axis": ("x.npy", [0.0, 1.0], ["population.data.path", "(2,)", "(clients, dimension)"]),
}


def write_data(folder: Path, name: str, content: Any) -> dict[str, Any]:
    if isinstance(content, list):
        np.save(folder / name, np.array(content))
    elif name:
        (folder / name).write_text(content)
    return {
        "population": {"clients": 2, "data": {"kind": "file", "path": name or "nowhere.npy"}},
        "participation": {"kind": "all"},
        "mechanism": {"kind": "linf", "radius": 1.0, "epsilon_local": 1.0},
    }


@pytest.mark.parametrize("case", DATA)
def test_bad_data_files_are_refused(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, content, words = DATA[case]
    path = write(tmp_path, write_data(tmp_path, name, content))
    before = files(tmp_path)
    result = call("run", path)
    refused(result, "bad.yaml", "population", *words)
    assert files(tmp_path) == before


def test_out_of_range_is_accepted_with_clip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, write_data(tmp_path, "x.csv", "a,b\n0,1\n7.5,0\n"))
    result = call("run", path, "--set", "mechanism.on_out_of_range=clip", "--out", "made")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "made" / "summary.json").is_file()


@pytest.mark.parametrize("name", ["nowhere.yaml", "nowhere", "folder"])
@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_missing_scenario_is_refused(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    result = call(command, name)
    refused(result, name)


@pytest.mark.parametrize("name", ["nowhere", "folder"])
def test_only_a_run_can_be_resumed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    result = call("resume", name)
    refused(result, name, "scenario.yaml", "run directory")
    assert files(tmp_path) == {"folder"}


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["validate"], ["run", "quickstart", "--seed", "x"], ["run", "--nope"], ["nonesuch"]],
)
def test_wrong_usage_is_bad_input(arguments: list[str]) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr and "Traceback" not in result.stderr
