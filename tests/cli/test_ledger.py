"""`raydp-sim ledger`: who has spent what, from the outside."""

import json
import shutil
from pathlib import Path

import pytest

from raydp_sim.run import RunResult, run
from tests.cli.test_commands import call, done, elsewhere
from tests.conftest import scenario

__all__ = ["elsewhere"]  # a fixture that applies by itself
SOME = {"kind": "self", "probability": 0.4}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    base = scenario(rounds=6, repeat=2, participation=SOME)
    return run(base, out=tmp_path_factory.mktemp("ledger") / "made")


@pytest.fixture
def made(played: RunResult, tmp_path: Path) -> dict:
    """The summary of a small run in ./made, in which clients are charged differently."""
    shutil.copytree(played.run_dir, tmp_path / "made")
    return played.summary


def document(*arguments: str) -> dict:
    return json.loads(done("ledger", "made", "--json", *arguments).stdout)


def test_it_says_what_the_summary_says(made: dict) -> None:
    worst = max((document("--repetition", str(k)) for k in range(2)), key=lambda d: d["epsilon"])
    privacy = made["privacy"]
    for name in ("epsilon", "delta", "planned", "bound", "assumption", "per_client"):
        assert worst[name] == privacy[name], name
    assert worst["participation"] == privacy["participation"]
    shown = " ".join(done("ledger", "made").stdout.split())
    for words in ("worst client", "never charged", "Gini coefficient", "planned epsilon", "median"):
        assert words in shown


def test_a_clients_history_ends_where_the_distribution_has_it(made: dict) -> None:
    whole = document()
    worst = whole["per_client"]["worst"]
    own = document("--client", str(worst))["history"]
    assert own[-1]["epsilon"] == pytest.approx(whole["epsilon"], rel=1e-12)
    assert len(own) <= whole["participation"]["max"]
    assert all(row["event"]["kind"] == "MultiMessageShuffle" for row in own)
    assert [row["release"] for row in own] == sorted({row["release"] for row in own})
    shown = done("ledger", "made", "--client", str(worst)).stdout
    assert f"client {worst} took part in {len(own)} of 6 releases" in shown


def test_it_can_look_back(made: dict) -> None:
    spent = [document("--release", str(release))["epsilon"] for release in range(6)]
    assert spent == sorted(spent) and spent[0] < spent[-1] == document()["epsilon"]
    client = str(document()["per_client"]["worst"])
    own = document("--release", "2", "--client", client)["history"]
    assert own == [r for r in document("--client", client)["history"] if r["release"] <= 2]


def test_it_draws(made: dict) -> None:
    done("ledger", "made", "--plot", "spent.png")
    assert Path("spent.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments,words",
    [
        (("--client", "200"), "--client is 200; the run has 200 clients"),
        (("--client", "-1"), "--client is -1"),
        (("--release", "6"), "--release is 6; the run has 6 releases"),
        (("--repetition", "2"), "--repetition is 2"),
        (("--plot", "nowhere/spent.png"), "--plot is 'nowhere/spent.png'; it cannot be written"),
        (("--plot", "spent.what"), "--plot is 'spent.what'"),
    ],
)
def test_bad_options_end_with_2(arguments: tuple[str, ...], words: str, made: dict) -> None:
    result = call("ledger", "made", *arguments)
    assert result.exit_code == 2 and words in " ".join(result.stderr.split())


def test_what_is_no_run_ends_with_2(tmp_path: Path, made: dict) -> None:
    result = call("ledger", "elsewhere")
    assert result.exit_code == 2 and "give a run directory" in result.stderr
    Path("made/ledger/ledger.parquet").write_bytes(b"not what it was")
    result = call("ledger", "made")
    assert result.exit_code == 2 and "is damaged" in result.stderr
    Path("made/scenario.yaml").write_text("figure: {}\n")
    result = call("ledger", "made")
    assert result.exit_code == 2 and "has no ledger" in result.stderr


def test_a_run_that_has_charged_nothing_yet_is_shown(made: dict) -> None:
    Path("made/ledger/ledger.parquet").unlink()
    assert document()["per_client"]["never"] == 1.0
    assert "client 3 was never charged" in done("ledger", "made", "--client", "3").stdout


def used(privacy: dict) -> tuple[str, set[str]]:
    return privacy["amplification"]["used"], set(privacy["amplification"]["not_used"])


def test_the_summary_says_which_amplification_was_used_and_why_no_other(tmp_path: Path) -> None:
    sampled, batch, none = "sampled shuffle", "shuffle of the batch that formed", "none"
    uniform = {"kind": "uniform", "sampled": 100}
    cases = {
        sampled: {"participation": uniform},
        batch: {"participation": SOME},
        none: {"participation": SOME, "trust": "local"},
    }
    for expected, sections in cases.items():
        privacy = run(scenario(rounds=2, **sections), out=tmp_path / expected).summary["privacy"]
        assert used(privacy) == (expected, {sampled, batch, none} - {expected})
        assert privacy["epsilon"] <= privacy["planned"]
        assert all(privacy["amplification"]["not_used"].values())
    assert privacy["amplification"]["not_used"][sampled] == "nothing is shuffled: trust is local"


def test_the_summary_says_how_many_have_used_up_their_budget(tmp_path: Path) -> None:
    base = scenario(
        rounds=6,
        participation=SOME,
        shuffle={"min_batch": 50},
        privacy={"budget": {"epsilon": 3.0, "delta": 1e-6}},
    )
    found = run(base, out=tmp_path / "made").summary["privacy"]["budget"]
    assert found["epsilon"] == 3.0 and found["delta"] == 1e-6 and 0.0 <= found["exhausted"] <= 1.0
