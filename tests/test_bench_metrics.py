"""The benchmark of live metrics measures what it says: followers that read every row."""

import json

import pytest
from click.testing import CliRunner

from raydp_sim.bench import metrics
from raydp_sim.bench.metrics import Figure
from raydp_sim.cli.main import main

pytestmark = pytest.mark.timeout(120, method="thread")


def test_followers_read_every_row_that_is_counted() -> None:
    found = metrics.throughput(seconds=0.2)
    written = found.note.split(" columns, ")[1].split(" rows")[0]
    assert found.note.endswith(f"the followers read {', '.join([written] * 3)}")
    assert found.value > 0.0


def test_a_latency_is_that_of_rows_that_came() -> None:
    assert 0.0 < metrics.latency(rows=20).value < 60_000.0


def test_figures_are_printed_beside_their_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        Figure("rows into Parquet", 300_000.0, 200_000.0, True, "rows/s", "some"),
        Figure("follow latency", 25.0, 20.0, False, "ms", "others"),
    ]
    monkeypatch.setattr(metrics, "figures", lambda say, case: iter(made))
    shown = CliRunner().invoke(main, ["bench", "metrics"]).stdout
    assert ">= 200,000 yes" in shown and "<= 20 NO" in shown and "others" in shown
    document = json.loads(CliRunner().invoke(main, ["bench", "metrics", "--json"]).stdout)
    assert [figure["met"] for figure in document["figures"]] == [True, False]
