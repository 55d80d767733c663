"""The README keeps its word: its files run, its commands exist, its output is what is printed."""

import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from raydp_sim.cli.main import summaries
from tests.docs.pages import PAGES, ROOT, blocks, call, files, shows

README = PAGES["README.md"]
INLINE = ("--set", "placement.backend=inline", "--out", "made")


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the README shows, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYDP_SIM_PATH", "")
    for name, text in files("README.md").items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 200


def test_the_first_commands_are_the_makefiles() -> None:
    first, second, *_ = blocks("README.md", "bash")
    assert (first, second) == ("make quickstart\n", "make test\n")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"quickstart", "test", "test-all", "format", "docs"} <= set(targets)
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("page", ["README.md", "docs/commands.md"])
def test_every_command_is_there(page: str) -> None:
    for name in summaries():
        assert f"`raydp-sim {name}" in PAGES[page], name


def test_the_output_shown_is_that_of_the_quickstart(beside: Path) -> None:
    """Here and in full on its page: all but wall times, processes and paths."""
    result = call("run", "quickstart", *INLINE)
    (command,) = [text for text in blocks("README.md", "bash") if "inline" in text]
    assert command.split() == ["raydp-sim", "run", "quickstart", *INLINE[:2]]
    (short,) = blocks("README.md", "text")
    shows(short, result.stderr.splitlines()[0] + "\n" + result.stdout)
    (full,) = blocks("docs/quickstart.md", "text")
    differ = ("plan:", "wall time", "run directory", "picture", "starting", "placing", "writing")
    shows(full, result.stderr.splitlines()[-2] + "\n" + result.stdout, (*differ, "release 20"))
    for line in result.stdout.splitlines():
        assert line.startswith(differ) or line.rstrip() in full, line
    place, _, plan = result.stderr.splitlines()[0].partition("; ")
    (predicted,) = blocks("docs/prediction.md", "text")
    assert predicted == f"{place}; {plan}\n"
    assert f" actors, 1003 MiB, about 10 s; {plan}\n" in full, (
        "on Ray all but its place is the same"
    )


def test_the_histogram_runs(beside: Path) -> None:
    result = call("run", "histogram.yaml", *INLINE)
    assert re.search(r"^category +estimate", result.stdout, re.MULTILINE)


def test_the_own_file_is_read_with_the_names_of_its_categories(beside: Path) -> None:
    cities = np.random.default_rng(1).choice(["Bern", "Lagos", "Lima", "Oslo", "Pune"], 20_000)
    rows = (f"p{number},{city}\n" for number, city in enumerate(cities))
    (beside / "people.csv").write_text("person,city\n" + "".join(rows))
    result = call("run", "cities.yaml", *INLINE)
    assert set(re.findall(r"^(\w+) +0\.\d+ +0\.0", result.stdout, re.MULTILINE)) == set(cities)


@pytest.mark.usefixtures("drawn")
def test_the_picture_is_that_of_the_fleet(beside: Path) -> None:
    """Fonts may be drawn otherwise elsewhere; other curves, bars or axes change far more."""
    call("run", "fleet.yaml", *INLINE)
    ours, shown = (
        matplotlib.image.imread(path)[..., :3].astype(float)
        for path in (beside / "made" / "plot.png", ROOT / "docs" / "fleet.png")
    )
    assert ours.shape == shown.shape
    assert abs(ours - shown).mean() < 0.002


def test_the_own_mechanism_passes_its_check(beside: Path) -> None:
    assert "`raydp-sim check duchi:Duchi --set epsilon_local=1`" in README
    result = call("check", "duchi:Duchi", "--set", "epsilon_local=1")
    assert " 0 failed" in result.stdout
