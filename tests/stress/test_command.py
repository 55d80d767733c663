"""`raydp-sim stress` from the outside, on scenarios made small, and the files that ship with it."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from raydp_sim.cli import stress
from raydp_sim.cli.main import main
from raydp_sim.cli.shipped import FOLDER, shipped
from raydp_sim.errors import RunError
from raydp_sim.metrics import streams
from raydp_sim.population.intervals import load as load_stays
from raydp_sim.privacy.ledger import store
from raydp_sim.run import Run, run
from raydp_sim.scenario import load
from raydp_sim.stress import recordings
from raydp_sim.stress.diagnosis import diagnose
from raydp_sim.stress.measures import Measures, measure
from tests.cli.narrow import assert_fits

SUITE = [name for name in shipped() if name.startswith("stress/")]
SMALL = ["--set", "task.rounds=4"]
ROW = {
    "name": str,
    "policy": str,
    "clients": int,
    "batches": int,
    "made": int,
    "withheld_count": int,
    "squared_error": float,
    "running_error": float,
    "expected_error": float,
    "bias": float,
    "batch_p5": float,
    "batch_median": float,
    "epsilon": float,
    "planned": float,
    "gini": float,
    "never": float,
    "staleness": float,
    "stalest": int,
    "started": int,
    "waste": dict,
    "findings": list,
    "run_dir": str,
    "baseline": str,
    "description": str,
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYDP_SIM_PATH", "")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["stress", *arguments])


def test_one_document_with_a_row_per_scenario_the_baseline_first():
    result = call("half-dropout", *SMALL, "--out", "made", "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [row["name"] for row in rows] == ["steady", "half-dropout"]
    for row in rows:
        for name, kind in ROW.items():
            assert isinstance(row[name], kind), name
        assert set(row["waste"]) == {"dropped", "late", "withheld", "under_way", "total"}
        assert all(set(found) == {"rule", "text"} for found in row["findings"])
        assert Path(row["run_dir"], "summary.json").is_file()
    assert rows == json.loads(Path("made/stress.json").read_text())
    assert Path("made/stress.png").stat().st_size > 10_000
    assert "waste" in [found["rule"] for found in rows[1]["findings"]]
    assert "playing half-dropout (2 of 2)" in result.stderr


def test_the_table_says_what_went_wrong_and_where_it_all_is():
    result = call("stress/half-dropout", "steady", *SMALL, "--out", "made", "--plot", "one.png")
    assert result.exit_code == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert "Nothing went wrong." in words
    assert "lost on the way" in words and "run directories" in words and "one.png" in words
    assert Path("one.png").is_file() and not Path("made/stress.png").exists()
    assert "\x1b" not in result.stdout and not any(
        line != line.rstrip() for line in result.stdout.splitlines()
    )


def test_a_name_that_is_not_there_is_told_what_is():
    result = call("half-dropouts")
    assert result.exit_code == 2
    assert "did you mean 'half-dropout'?" in result.stderr and "stragglers" in result.stderr
    assert not Path("runs").exists()


def test_a_field_that_does_not_fit_ends_it_before_anything_is_played():
    result = call("stragglers", "--set", "participation.factor=2", "--out", "made")
    assert result.exit_code == 2
    assert "participation.factor" in result.stderr and "steady" in result.stderr
    assert not Path("made").exists()


@pytest.mark.parametrize("plot", ["picture.xyz", "file/picture.png"])
def test_a_picture_that_cannot_be_written_is_told_before_the_runs(plot):
    Path("file").write_text("not a folder")
    result = call("steady", "--plot", plot, "--out", "made")
    assert result.exit_code == 2 and f"--plot is '{plot}'" in result.stderr
    assert not Path("made").exists()


def test_a_run_that_fails_ends_with_3(monkeypatch):
    def play(self):
        raise RunError("an actor died")
        yield {}

    monkeypatch.setattr(Run, "play", play)
    result = call("steady", "--out", "made")
    assert result.exit_code == 3 and "an actor died" in result.stderr


def test_a_file_of_the_users_own_is_compared_too():
    text = shipped()["stress/steady"].read_text().replace("name: steady", "name: mine")
    Path("mine.yaml").write_text(text.replace("probability: 0.25", "probability: 0.2"))
    result = call("mine.yaml", *SMALL, "--out", "made", "--json")
    assert result.exit_code == 0, result.stderr
    assert [row["name"] for row in json.loads(result.stdout)] == ["steady", "mine"]


def test_two_of_one_name_are_refused():
    Path("mine.yaml").write_text(shipped()["stress/steady"].read_text())
    result = call("mine.yaml")
    assert result.exit_code == 2 and "name is 'steady'" in result.stderr


def test_the_whole_suite_is_played_and_compared():
    """Two releases each; that a batch of a policy that never got started is withheld is fine."""
    result = call("--set", "task.rounds=2", "--out", "made", "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert rows[0]["name"] == "steady" and len(rows) == len(SUITE) >= 11
    assert {row["name"] for row in rows} == {name.removeprefix("stress/") for name in SUITE}


@pytest.mark.parametrize(
    ("name", "rule", "advice"),
    [
        ("night-drought", "withheld", "participation.on_short=wait"),
        ("stragglers", "short", "participation.deadline=3600"),
    ],
)
def test_the_advice_helps(name, rule, advice, steady, tmp_path):
    """What is found in a scenario as it ships is no longer found when the advice is followed."""
    found = {}
    for out, changes in (("before", ()), ("after", (advice,))):
        measured = played(tmp_path / out, *changes, name=name)
        found[out] = [each.rule for each in diagnose(measured, steady)]
    assert rule in found["before"] and rule not in found["after"]


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Measures:
    return played(tmp_path_factory.mktemp("steady"), name="steady")


@pytest.fixture(scope="module")
def drained(tmp_path_factory: pytest.TempPathFactory) -> Measures:
    return played(tmp_path_factory.mktemp("drained"))


def played(folder: Path, *changes: str, name: str = "spent-budgets") -> Measures:
    """Measure a scenario alone: what is changed must not change the baseline too."""
    result = run(load(shipped()[f"stress/{name}"], changes), out=folder / "run")
    held = streams.read(folder / "run" / "metrics", "withheld")
    charges = store.charges(folder / "run" / "ledger")
    return measure(result.scenario, result.summary, result.metrics, held, charges)


@pytest.mark.parametrize(
    "advice",
    [
        "privacy.budget.epsilon=3",
        "mechanism.epsilon_local=1.5",
        "population.clients=8000",
        "task.rounds=80",
    ],
)
def test_each_advice_about_spent_budgets_lets_batches_out(drained, tmp_path, advice):
    """Nine of ten batches that were withheld no longer are, and no release is missing for it."""
    (found,) = diagnose(drained, drained)
    assert found.rule == "spent" and advice.split("=")[0] in found.text
    after = played(tmp_path, advice)
    assert drained.withheld_count > 30 and after.withheld_count <= 0.1 * drained.withheld_count
    assert after.made >= drained.made - 1


def test_nothing_else_is_advised_about_spent_budgets(drained):
    """What is tried above is all that is named."""
    (found,) = diagnose(drained, drained)
    names = re.findall(r"[a-z]+(?:\.[a-z_]+)+", found.text)
    assert sorted(names) == [
        "mechanism.epsilon_local",
        "population.clients",
        "privacy.budget.epsilon",
        "task.rounds",
    ]


@pytest.mark.parametrize("advice", ["shuffle.min_batch=153", "participation.deadline=3600"])
def test_what_is_not_advised_about_spent_budgets_would_not_help(drained, tmp_path, advice):
    assert played(tmp_path, advice).withheld_count > 0.9 * drained.withheld_count


def test_the_docs_show_what_is_printed():
    page = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
    command, after = page.split("```bash\nraydp-sim stress ")[1].split("\n```", 1)
    shown = after.split("```text\n")[1].split("```")[0]
    result = call(*command.split())
    assert result.exit_code == 0, result.stderr
    expected = result.stdout.replace(f"{Path.cwd()}/", "").strip()
    assert shown.strip() == expected


@pytest.mark.parametrize("name", SUITE)
def test_the_suite_is_one_family(name):
    """Errors can be compared: same data and mechanism, and no Ray for a few thousand clients."""
    steady, one = load(shipped()["stress/steady"]), load(shipped()[name])
    assert one.mechanism == steady.mechanism and one.population.data == steady.population.data
    assert one.placement.backend == "inline"
    assert one.population.clients <= 5000 and 30 <= one.task.rounds <= 200


@pytest.mark.parametrize("name", recordings.TABLES)
def test_the_recordings_follow_from_their_recipe(name):
    path = FOLDER / "stress" / "traces" / f"{name}.csv"
    assert path.read_text(encoding="utf-8") == recordings.text(recordings.TABLES[name]())
    assert path.stat().st_size < 200_000
    assert load_stays(str(path)).end <= recordings.DAY


def test_the_table_fits_into_80_columns(monkeypatch):
    class Once:
        """Two calls of one command may not share a directory."""

        made = 0

        def folder(self, name, out):
            self.made += 1
            return Path(f"made{self.made}").resolve()

    monkeypatch.setattr(stress, "fresh_folder", Once().folder)
    monkeypatch.setattr(stress, "draw", lambda rows, path: None)
    narrow = assert_fits(["stress", "half-dropout", *SMALL], monkeypatch)
    assert narrow.count("scenario ") == 2, "the table is in two, one below the other"
