"""`raydp-sim traces`, from the outside."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from raydp_sim.cli.main import main
from raydp_sim.scenario import load

RECORD = {"active": [10, 50], "inactive": [40, 70], "finish_time": 100, "duration": 50}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = {str(name): RECORD for name in (7, 30, 4)}
    (tmp_path / "in.json").write_text(json.dumps(document))


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["traces", *arguments])


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_what_is_converted_checks_and_loads(name: str, tmp_path: Path) -> None:
    result = call("convert", "in.json", name)
    assert result.exit_code == 0, result.stderr
    for words in ("clients        3", "intervals      6", "100 s", "50.0% of the clients' time"):
        assert words in result.stdout
    assert call("check", name, "--clients", "3").stdout.startswith("clients        3\n")
    # The line that it prints is a scenario's.
    printed = result.stdout.partition("use it as      population.")[2]
    document = {
        "name": "recorded",
        "population": {
            "clients": 3,
            "data": {"kind": "bernoulli", "probability": 0.5},
            **yaml.safe_load(printed),
        },
        "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
    }
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(document))
    assert load("a.yaml").population.rate() == pytest.approx(0.5)


def test_csv_is_plain() -> None:
    assert call("convert", "in.json", "out.csv", "--clients", "1").exit_code == 0
    assert Path("out.csv").read_text() == "client,on,off\n0,10,40\n0,50,70\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("convert", "in.json", "in.json"), ["OUT is 'in.json'", "must end in .csv or .parquet"]),
        (("convert", "in.json", "taken.csv"), ["OUT is 'taken.csv'", "already exists"]),
        (("convert", "in.json", "no/where.csv"), ["OUT", "there is no folder no"]),
        (("convert", "nowhere", "out.csv"), ["nowhere", "cannot be read"]),
        (("convert", "words", "out.csv"), ["words", "neither JSON nor a pickle"]),
        (("convert", "in.json", "out.csv", "--clients", "4"), ["--clients is 4", "only 3"]),
        (("check", "in.json"), ["in.json", "convert it first"]),
        (("check", "taken.csv"), ["taken.csv", "line 2", "off is 1", "later than on"]),
        (("check", "good.csv", "--clients", "3"), ["good.csv", "line 2", "client is 3", "0 to 2"]),
    ],
)
def test_bad_input_ends_with_2_and_writes_nothing(
    arguments: tuple[str, ...], words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "taken.csv").write_text("client,on,off\n0,2,1\n")
    (tmp_path / "good.csv").write_text("client,on,off\n3,1,2\n")
    (tmp_path / "words").write_text("nothing to see")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = call(*arguments)
    assert result.exit_code == 2 and len(result.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in result.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
