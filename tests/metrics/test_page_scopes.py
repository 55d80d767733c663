"""What a token does not open changes nothing of what it is answered, whichever way it asks."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from raydp_sim.metrics.live.access import Grant
from raydp_sim.metrics.page.answers import Page
from raydp_sim.metrics.page.runs import Runs
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.server import app
from raydp_sim.metrics.page.source import OnDisk
from raydp_sim.run import run
from raydp_sim.run.presence import availability
from raydp_sim.run.spending import epsilons
from tests.actors.leveled import analysts
from tests.conftest import scenario
from tests.metrics.pages import ALL, ANALYST, CHARGES, FIRST, GRANTS, browser

GRANT = dict(zip((ANALYST, CHARGES, FIRST), GRANTS[1:], strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    run(scenario(rounds=3), out=place / "mean")
    run(analysts(rounds=3), out=place / "levels")
    return place


def without_closed(folder: Path, opened: Grant) -> list[str]:
    """Take away the files of every stream that is closed; return the names of these streams."""
    gone = []
    for path in folder.iterdir():
        source = OnDisk(path)
        kept = set(Seen(path.name, source, opened).schemas)
        gone += sorted(set(source.schemas()) - kept)
        for stream in (path / "metrics").iterdir():
            if stream.is_dir() and stream.name not in kept:
                shutil.rmtree(stream)
        if "ledger" not in kept:
            shutil.rmtree(path / "ledger")
        (path / "plot.png").unlink(missing_ok=True)
    return gone


def asked(folder: Path, token: str, streams: list[str]) -> dict[str, Any]:
    """Every answer about the runs; when files changed is not part of it."""
    asking = browser(
        app(Page(Runs(folder), epsilons=epsilons, presence=availability), GRANTS),
        headers={"authorization": f"Bearer {token}"},
    )
    found: dict[str, Any] = {"runs": asking.get("/api/runs").json()}
    for line in found["runs"]["runs"]:
        del line["updated"]
    found["compare"] = asking.get("/api/compare?run=mean&run=levels").json()
    for name in ("mean", "levels"):
        document = asking.get("/api/run", params={"run": name}).json()
        del document["version"]
        found[name] = document
        for path in ("scenario", "plot", "ledger", "availability"):
            answer = asking.get(f"/api/{path}", params={"run": name})
            found[f"{path} {name}"] = answer.status_code, answer.content
        for stream in streams:
            for path in ("stream", "download"):
                params = {"run": name, "stream": stream, "format": "csv"}
                answer = asking.get(f"/api/{path}", params=params)
                found[f"{path} {name} {stream}"] = answer.status_code, answer.content
    return found


@pytest.mark.parametrize("token", [ANALYST, CHARGES, FIRST], ids=["analyst", "ledger", "reader"])
def test_what_is_closed_changes_no_answer(folder: Path, token: str, tmp_path: Path) -> None:
    copied = tmp_path / "runs"
    shutil.copytree(folder, copied)
    gone = without_closed(copied, GRANT[token])
    assert "errors" in gone and "analyst-2" in gone
    streams = [*gone, "releases", "analyst-1", "public"]
    assert asked(folder, token, streams) == asked(copied, token, streams)


def test_the_difference_would_show(folder: Path, tmp_path: Path) -> None:
    """Whoever may see everything does miss what was taken away."""
    copied = tmp_path / "runs"
    shutil.copytree(folder, copied)
    without_closed(copied, GRANT[ANALYST])
    assert asked(folder, ALL, ["errors"]) != asked(copied, ALL, ["errors"])
