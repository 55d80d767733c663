"""The pages of docs keep their word: what they show runs, and prints what is shown."""

import re
from pathlib import Path

import pytest
import yaml

from raydp_sim.metrics import streams
from raydp_sim.scenario import parse
from tests.docs.pages import PAGES, blocks, call, files, shows

INLINE = ("--set", "placement.backend=inline", "--out", "made")
EXTENDING = "docs/extending.md"


@pytest.fixture
def own_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the page on own pieces shows, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYDP_SIM_PATH", "")
    for name, text in files(EXTENDING).items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("checked", ["duchi:Duchi", "median:Median"])
def test_own_pieces_are_checked_as_shown(own_pieces: Path, checked: str) -> None:
    page = PAGES[EXTENDING]
    command, after = page.split(f"```bash\nraydp-sim check {checked}")[1].split("\n```", 1)
    result = call("check", checked, *command.split())
    shows(after.split("```text\n")[1].split("```")[0], result.stdout)


def test_own_pieces_run(own_pieces: Path) -> None:
    result = call("run", "own.yaml", *INLINE)
    error = re.search(r"squared error cohort +(\S+)", result.stdout)
    # Variance at most coth(1/2)^2 / 10,000 = 4.7e-4, so beyond 5 sd with probability below 1e-6.
    assert error is not None and 0 < float(error[1]) < 25 * 4.7e-4


def test_the_task_of_ones_own_prints_what_is_shown(own_pieces: Path) -> None:
    result = call("run", "median.yaml", *INLINE)
    (shown,) = [text for text in blocks(EXTENDING, "text") if "releases         8 of 8" in text]
    shows(shown, result.stdout)


def test_the_streams_of_a_run_are_listed_with_their_marks(own_pieces: Path) -> None:
    listed = re.findall(r"^\| `(\w+)` \| ([\w-]+) \|", PAGES["docs/run-directory.md"], re.MULTILINE)
    fields = ("task.rounds=8", "shuffle.min_batch=55", "participation.deadline=1500")
    shorter = [word for field in fields for word in ("--set", field)]
    call("run", "stress/tiny-population", *shorter, *INLINE)
    made = {place.name for place in (own_pieces / "made" / "metrics").iterdir()}
    assert "withheld" in made and made <= dict(listed).keys()
    for name in made:
        schema = streams.read(own_pieces / "made" / "metrics", name).schema
        assert dict(listed)[name] == streams.visibility(schema), name


def test_the_short_scenario_is_complete() -> None:
    (document,) = blocks("docs/commands.md", "yaml")
    assert parse(yaml.safe_load(document)).task.rounds == 1


def test_every_exit_code_is_there() -> None:
    for code in (0, 1, 2, 3, 130):
        assert f"| {code} |" in PAGES["docs/commands.md"]


def test_the_calculator_prints_what_is_shown() -> None:
    """All but the CPU time of each bound."""
    command, *_ = blocks("docs/accounting.md", "bash")
    shown, *_ = blocks("docs/accounting.md", "text")
    printed = call(*command.split()[1:]).stdout

    def timeless(text: str) -> str:
        return re.sub(r" +\d+\.\d{3} *$", "", text, flags=re.MULTILINE)

    shows(timeless(shown), timeless(printed))


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_shown_can_be_called(page: str) -> None:
    """With options that exist; those of other programs and of clusters are left alone."""
    for line in "".join(blocks(page, "bash")).splitlines():
        words = line.removeprefix(".venv/bin/").split()
        if words[0] != "raydp-sim":
            continue
        name = 3 if words[1] in ("account", "bench", "traces") else 2
        usage = call(*words[1:name], "--help").stdout
        for option in (word for word in words if word.startswith("--")):
            assert option in usage, line


def test_the_bandit_that_is_shown_is_a_scenario() -> None:
    (document,) = blocks("docs/bandits.md", "yaml")
    assert parse(yaml.safe_load(document)).task.kind == "bandit"


def test_majorities_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (command,), (shown,) = (blocks("docs/majority.md", kind) for kind in ("bash", "text"))
    shows(shown, call(*command.split()[1:], *INLINE).stdout)
    for noise, share in (("subsampling", "0.1056"), ("constant", "0.4223")):
        other = ("--set", f"mechanism.noise={noise}", "--out", noise)
        printed = call(*command.split()[1:], *INLINE[:2], *other).stdout
        assert re.search(rf"expected disagreement +{re.escape(share)}\n", printed)


def test_sketches_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command, private = blocks("docs/sketches.md", "bash")
    shown, hidden = blocks("docs/sketches.md", "text")
    shows(shown, call(*command.split()[1:], *INLINE).stdout)
    inline = ("--set", "placement.backend=inline", "--out", "private")
    shows(hidden, call(*private.split()[1:], *inline).stdout)
    own = call(*command.split()[1:], *INLINE[:2], "--set", "task.similarity=one", "--out", "own")
    assert re.search(r"squared error cohort +1\.063\n", own.stdout)
