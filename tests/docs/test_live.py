"""The page on following a run: what it shows works."""

import sys
import types
from pathlib import Path

import pytest
import yaml

from raydp_sim.metrics.live.access import issued
from raydp_sim.run import run
from tests.conftest import scenario
from tests.docs.pages import ROOT, blocks, files
from tests.metrics.test_live import ALL, playing

pytestmark = pytest.mark.timeout(120, method="thread")
PAGE = "docs/live.md"


def test_a_run_is_followed_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, urls = playing(tmp_path / "run", rounds=3)
    rows = made.play()
    next(rows)
    shown = blocks(PAGE, "python")[0]
    shown = shown.replace("grpc://127.0.0.1:8815", urls[0])
    shown = shown.replace("the token that was printed", ALL)
    # Of a run that is not over yet there is no end to wait for.
    exec(shown + "    break\n", {})
    said = capsys.readouterr().out
    assert "'state': 'live'" in said and "'releases'" in said
    assert said.splitlines()[1].split()[0] in "123"
    assert len(list(rows)) == 2


def test_the_tokens_of_the_page_are_a_file_of_tokens(tmp_path: Path) -> None:
    (tmp_path / "tokens.yaml").write_text(blocks(PAGE, "yaml")[0])
    everything, anyone, alice = issued(tmp_path / "tokens.yaml").grants
    assert everything.opens("ledger", None) and not anyone.opens("ledger", None)
    assert alice.opens("released", "alice") and not alice.opens("released", None)


def test_a_notebook_draws_as_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pictures: list[object] = []
    display = types.SimpleNamespace(clear_output=lambda wait: None, display=pictures.append)
    # Matplotlib asks it, too, whether it is at work.
    asked = {"get_ipython": lambda: None, "version_info": (9, 0)}
    stand_in = types.SimpleNamespace(display=display, **asked)
    monkeypatch.setitem(sys.modules, "IPython", stand_in)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    import matplotlib

    matplotlib.use("Agg")
    exec(blocks(PAGE, "python")[1], {})
    assert len(pictures) == 20


def test_the_sink_of_the_page_is_found_and_fed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYDP_SIM_PATH", str(tmp_path))
    (tmp_path / "lines.py").write_text(files(PAGE)["lines.py"])
    metrics = yaml.safe_load(blocks(PAGE, "yaml")[1])["metrics"]
    kinds = [sink["kind"] for sink in metrics["sinks"]]
    assert kinds == ["tensorboard", "prometheus", "lines:Lines"]
    metrics["sinks"] = [sink for sink in metrics["sinks"] if sink["kind"] != "prometheus"]
    folder = run(scenario(rounds=2, metrics=metrics), out=tmp_path / "run").run_dir
    assert "releases: " in (folder / "lines.txt").read_text()
    assert list((folder / "tensorboard").iterdir())
