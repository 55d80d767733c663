"""`watch` and `report`: what they show of a run, finished or not, here or elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from raydp_sim.cli.main import main
from raydp_sim.cli.watch import _followed, _looked_at
from raydp_sim.metrics import connect
from raydp_sim.metrics.view import View
from raydp_sim.run import prepare, run
from raydp_sim.run.directory import RunDir
from tests.conftest import scenario, with_placement
from tests.metrics.test_live import ALL, playing

pytestmark = pytest.mark.timeout(120, method="thread")


def call(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def test_a_finished_run_is_shown_once(tmp_path: Path) -> None:
    run(scenario(rounds=6), out=tmp_path / "run")
    shown = call("watch", str(tmp_path / "run")).stdout
    assert "run  small  6 of 6 releases  over" in shown
    assert re.search(r"squared error cohort +[\d.e-]+ +[▁▂▃▄▅▆▇█]{6}", shown)
    assert re.search(r"epsilon +[\d.]+ +▁[▁▂▃▄▅▆▇█]{4}█", shown)


def test_a_run_is_watched_from_its_folder_until_it_is_over(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("raydp_sim.metrics.writer._SECONDS", 0.0)
    monkeypatch.setattr("raydp_sim.metrics.writer._SHARE", 0.0)
    monkeypatch.setattr("raydp_sim.cli.watch._PAUSE", 0.0)
    rows = prepare(with_placement(scenario(rounds=5), 2), out=tmp_path / "run").play()
    next(rows)
    seen = _looked_at(RunDir(tmp_path / "run"), once=False)
    view, state = next(seen)
    assert view.done == 1 and state == "live"
    for done in range(2, 6):
        next(rows)
        assert next(seen)[0].done == done
    assert not list(rows)
    assert [state for _, state in seen] == ["over"]
    assert view.done == 5


def test_watching_an_interrupted_run_ends(tmp_path: Path) -> None:
    rows = prepare(with_placement(scenario(rounds=5), 2), out=tmp_path / "run").play()
    next(rows)
    rows.close()
    states = [state for _, state in _looked_at(RunDir(tmp_path / "run"), once=False)]
    assert states == ["interrupted"]


def test_a_run_elsewhere_is_watched_over_flight(tmp_path: Path) -> None:
    made, urls = playing(tmp_path / "run", rounds=6)
    rows = made.play()
    next(rows)
    shown = call("watch", urls[0], "--token", ALL).stdout
    assert "run  small" in shown and "of 6 releases  live" in shown and "epsilon" in shown
    refused = call("watch", urls[0], "--token", "a wrong one that is long", code=2)
    assert "the token is not accepted" in refused.stderr and "small" not in refused.output
    steps = _followed(connect(urls[0], ALL))
    view, state = next(steps)
    assert state == "live" and isinstance(view, View)
    list(rows)
    last, state = list(steps)[-1]
    assert state == "over" and last.done == 6
    assert len(last.lines["errors", "noise"]) == 6


class Parsed(HTMLParser):
    """What a page has: its tags, what it would load, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_report_is_one_file_that_needs_nothing_else(tmp_path: Path, drawn: None) -> None:
    hostile = "<script>alert(1)</script>"
    made = scenario(rounds=3).model_copy(update={"description": hostile})
    run(made, out=tmp_path / "run")
    call("report", str(tmp_path / "run"))
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    found = Parsed(page)
    assert "script" not in found.tags and hostile in found.text
    assert found.loads and all(load.startswith("data:image/svg+xml") for load in found.loads)
    assert "http" not in page.replace("http-equiv", "").split("base64,")[0]
    assert "default-src 'none'" in page and "@media print" in page
    for part in ("epsilon", "which holds for", "Answer", "Scenario", "kind: gaussian", "releases"):
        assert part in found.text, part
    assert "simulation-only" in found.text and "rounds: 3" in found.text


def test_a_report_of_several_runs_shows_what_differs_and_may_have_unfinished_ones(
    tmp_path: Path, drawn: None
) -> None:
    run(scenario(rounds=3), out=tmp_path / "one")
    rows = prepare(with_placement(scenario(rounds=4), 2), out=tmp_path / "two").play()
    next(rows)
    rows.close()
    both = [str(tmp_path / name) for name in ("one", "two")]
    assert "--out is missing" in call("report", *both, code=2).stderr
    assert "must end in .html" in call("report", *both, "--out", "a.txt", code=2).stderr
    call("report", *both, "--out", str(tmp_path / "both.html"))
    found = Parsed((tmp_path / "both.html").read_text(encoding="utf-8"))
    assert "Side by side" in found.text and "task.rounds" in found.text
    assert "1 of 4 releases so far" in found.text


def test_a_result_shows_itself_in_a_notebook(tmp_path: Path, drawn: None) -> None:
    result = run(scenario(rounds=2), out=tmp_path / "run")
    found = Parsed(result._repr_html_())
    assert "small" in found.text and "epsilon" in found.text
    assert found.loads[0].startswith("data:image/png;base64,")


def test_a_run_that_is_resumed_can_be_served(tmp_path: Path) -> None:
    rows = prepare(scenario(rounds=3), out=tmp_path / "run").play()
    next(rows)
    rows.close()
    said = call("resume", str(tmp_path / "run"), "--serve").stderr
    assert re.search(r"served at grpc://127\.0\.0\.1:\d+", said)
    everything, analyst = re.findall(r"token for [a-z ]+: (\S+)", said)
    assert everything != analyst
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not any(everything.encode() in path.read_bytes() for path in files)


def test_an_address_that_is_none_is_named(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "run"))
    refused = call("run", "quickstart", "--serve-at", "nowhere", *out, code=2)
    assert "metrics.serve is 'nowhere'" in refused.stderr and "host:port" in refused.stderr
    keyless = ("--serve", "--set", "metrics.certificate=a.pem")
    assert "give both, or neither" in call("run", "quickstart", *keyless, *out, code=2).stderr
    assert not (tmp_path / "run").exists()
