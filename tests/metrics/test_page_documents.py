"""The documents of the page: what they show of a run, and of whom."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raydp_sim.metrics import columns, parts, streams
from raydp_sim.metrics.page import documents, statement
from raydp_sim.metrics.page.crowd import DAY, span
from raydp_sim.metrics.page.downloads import as_csv, as_parquet
from raydp_sim.metrics.page.runs import Runs
from raydp_sim.metrics.page.source import OnDisk
from raydp_sim.metrics.page.thin import MOST
from raydp_sim.metrics.page.turns import Turns
from raydp_sim.privacy.ledger import store
from raydp_sim.run import prepare, reopen, run
from tests.actors.leveled import analysts
from tests.conftest import scenario
from tests.metrics.pages import GRANTS, counted, seen

EVERYTHING, ANALYST, CHARGES, FIRST = GRANTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    run(scenario(rounds=6), out=place / "mean")
    run(scenario(rounds=4, repeat=3), out=place / "repeated")
    run(analysts(), out=place / "levels")
    return place


def panel(document: dict, name: str) -> dict:
    (found,) = [each for each in document["panels"] if each["id"] == name]
    return found


def names(document: dict) -> set[str]:
    return {each["id"] for each in document["panels"]}


def test_a_run_shows_its_rows(folder: Path) -> None:
    document = documents.run(seen(folder / "mean"), counted())
    rows = streams.joined(folder / "mean" / "metrics")
    off = panel(document, "how-far-off-the-estimate-is")
    line = [each["label"] for each in off["series"]].index("mean so far, against everyone")
    assert off["data"][0] == [1, 2, 3, 4, 5, 6] and off["y"]["unit"] == "data squared"
    shown = np.array(off["data"][1 + line])
    np.testing.assert_allclose(shown, rows["running_squared_error"].to_numpy(), rtol=1e-5)
    spent = panel(document, "what-the-clients-have-spent")
    np.testing.assert_allclose(spent["data"][2], rows["epsilon"].to_numpy(), rtol=1e-5)
    assert document["done"] == document["total"] == 6 and document["state"] == "over"
    assert document["spent"]["epsilon"] == pytest.approx(rows["epsilon"].to_numpy()[-1])
    assert "against" in document["spent"]["assumption"]
    assert document["measure"]["label"] == "squared error"
    json.dumps(document, allow_nan=False)


def test_lines_of_several_repetitions_are_means_with_bands(folder: Path) -> None:
    rows = streams.read(folder / "repeated" / "metrics", "errors")
    values = rows["noise"].to_numpy().reshape(3, 4)
    why = panel(documents.run(seen(folder / "repeated"), counted()), "why-it-is-off")
    np.testing.assert_allclose(why["data"][1], values.mean(axis=0), rtol=1e-5)
    low, high = why["bands"][0]
    half = values.std(axis=0, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(np.subtract(high, low) / 2, half, rtol=1e-3)


def test_who_took_part_is_counted_as_the_ledger_has_it(folder: Path) -> None:
    often = panel(documents.run(seen(folder / "mean"), counted()), "often")
    turns = np.zeros(200, int)
    for charge in store.charges(folder / "mean" / "ledger", 0):
        turns[np.asarray(charge.participants)] += 1
    at, bars = often["data"]
    assert sum(bars) == 200 and sum(x * y for x, y in zip(at, bars, strict=True)) == turns.sum()


def test_the_answer_has_its_noise_and_the_truth(folder: Path) -> None:
    answer = panel(documents.run(seen(folder / "mean"), counted()), "answer")
    result = reopen(folder / "mean").result
    assert result is not None and result.estimate is not None and result.truth is not None
    value, low, high, truth = (np.array(each) for each in answer["data"])
    np.testing.assert_allclose(value, result.estimate.values, rtol=1e-5)
    np.testing.assert_allclose(truth, result.truth.values, rtol=1e-4)
    np.testing.assert_allclose(high - low, 4 * result.estimate.standard_error, rtol=1e-3)


def test_a_token_for_what_is_released_sees_nothing_else(folder: Path) -> None:
    document = documents.run(seen(folder / "mean", ANALYST), counted())
    text = json.dumps(document)
    assert names(document) & {"what-the-clients-have-spent", "answer", "batch-sizes"}
    assert not names(document) & {"how-far-off-the-estimate-is", "why-it-is-off", "often", "spread"}
    assert {each["visibility"] for each in document["streams"]} == {"released"}
    assert len(panel(document, "answer")["data"]) == 3  # without the truth
    assert document["measure"] is None and not document["plot"]
    for secret in ("gaussian", "seed:", "truth", "wall", "noise"):
        assert secret not in text.replace("standard errors of noise", ""), secret
    assert "mechanism:" in document["text"] and "data:" not in document["text"]


def test_scopes_open_what_they_name(folder: Path) -> None:
    found = names(documents.run(seen(folder / "mean", CHARGES), counted()))
    assert {"often", "when", "spread"} <= found and "why-it-is-off" not in found


def test_a_reader_sees_its_own_streams_alone(folder: Path) -> None:
    path = folder / "levels"
    mine = documents.run(seen(path, FIRST), counted())
    assert [each["name"] for each in mine["streams"]] == ["analyst-1"]
    assert mine["spent"] is None and mine["privacy"] == [] and mine["text"] is None
    assert [row[0] for row in mine["views"]["rows"]] == ["analyst-1"]
    assert {each["tab"] for each in mine["panels"]} == {"analysts"}
    now = panel(mine, "analysts-now")
    assert [each["label"] for each in now["series"]] == ["analyst-1"] and now["truth"] is None
    others = documents.run(seen(path, ANALYST), counted())
    assert [each["label"] for each in panel(others, "analysts-now")["series"]] == ["public"]
    everyone = documents.run(seen(path), counted())
    shown = [each["label"] for each in panel(everyone, "analysts-now")["series"]]
    assert shown == ["analyst-1", "analyst-2", "public"]
    assert "how-far-off-each-analyst-is" in names(everyone)


def test_runs_side_by_side_say_what_differs(folder: Path) -> None:
    found = documents.compared([seen(folder / "mean"), seen(folder / "repeated")])
    differ = {row[0]: row[1:] for row in found["differ"]}
    assert differ["task.rounds"] == [6, 4] and differ["repeat"] == [1, 3]
    came = {row[0]: row[1:] for row in found["came"]}
    assert came["releases"] == [6, 12]
    spent = next(each for each in found["panels"] if each["title"].startswith("Epsilon"))
    assert [each["label"] for each in spent["series"]] == ["mean", "repeated"]
    assert spent["data"][2][4:] == [None, None]
    hidden = documents.compared([seen(folder / each, ANALYST) for each in ("mean", "repeated")])
    assert "Error" not in json.dumps(hidden) and "squared" not in json.dumps(hidden)


def test_the_list_has_a_line_per_run(folder: Path) -> None:
    assert Runs(folder).names() == ["levels", "mean", "repeated"]
    assert Runs(folder / "mean").names() == ["mean"]
    line = documents.listed(seen(folder / "mean"), 1.0)
    assert (line["done"], line["task"], line["mechanism"]) == (6, "mean", "linf")
    assert line["epsilon"] > 0 and line["measure"]["value"] > 0
    assert documents.listed(seen(folder / "levels", FIRST), 1.0)["done"] is None


def test_names_that_are_no_run_are_nobodys(folder: Path) -> None:
    runs = Runs(folder)
    for name in ("", ".", "..", "../runs/mean", "mean/", "/mean", "mean/metrics", str(folder)):
        assert runs.source(name) is None, name


def test_a_run_is_shown_while_it_is_played(tmp_path: Path) -> None:
    rows = prepare(scenario(rounds=5), out=tmp_path / "run").play()
    for _ in range(3):
        next(rows)
    source, turns = OnDisk(tmp_path / "run"), Turns()
    before = source.version()
    live = seen(tmp_path / "run")
    assert live.about["state"] == "live"
    first = documents.run(live, turns)
    assert sum(panel(first, "often")["data"][1]) == 200
    assert all(value is not None for _, value in statement.lines(live))
    for _ in rows:
        pass
    assert source.version() != before
    over = documents.run(seen(tmp_path / "run"), turns)
    assert over["state"] == "over" and over["done"] == 5
    assert panel(over, "often") == panel(documents.run(seen(tmp_path / "run"), Turns()), "often")


def test_epsilon_is_said_in_words_while_a_run_is_played(tmp_path: Path) -> None:
    rows = prepare(scenario(rounds=3), out=tmp_path / "run").play()
    next(rows)
    (tmp_path / "run" / "metrics" / "releases").mkdir(exist_ok=True)
    said = json.loads((tmp_path / "run" / "guarantee.json").read_text())
    for _ in rows:
        pass
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert said["assumption"] == summary["privacy"]["assumption"]
    (tmp_path / "run" / "summary.json").unlink()
    found = statement.spent(seen(tmp_path / "run"))
    assert found is not None and found["assumption"] == said["assumption"]
    # Words of another bound are not put beside an epsilon that they do not hold for.
    (tmp_path / "run" / "guarantee.json").write_text('{"bound": "x", "assumption": "y"}')
    found = statement.spent(seen(tmp_path / "run"))
    assert found is not None and found["assumption"] is None


def test_a_million_rows_make_a_small_document(tmp_path: Path) -> None:
    count = 1_000_000
    schema = streams.SCHEMAS["releases"]
    whole = [field for field in schema if field.type != pa.string()]
    values = {field.name: pa.array(np.zeros(count), field.type) for field in whole}
    values["release"] = pa.array(np.arange(count))
    values["time"] = pa.array(np.arange(count) * 1.0)
    size = np.full(count, 100)
    size[777_777] = 4321
    values["batch_size"] = pa.array(size)
    values["bound"] = pa.array(["some"] * count)
    table = pa.table({name: values[name] for name in schema.names}, schema=schema)
    (tmp_path / "scenario.yaml").write_text("name: long\npopulation: {clients: 10}\n")
    parts.write(tmp_path / "metrics", "releases", table, 0)
    document = documents.run(seen(tmp_path), counted())
    batches = panel(document, "batch-sizes")
    assert batches["rows"] == count and len(batches["data"][0]) <= 4 * MOST + 2
    assert 4321 in batches["data"][2]
    assert len(json.dumps(document)) < 2_000_000


def test_cells_of_a_heat_map_are_whole_hours() -> None:
    edges, unit, name = span(np.array([10 * DAY]))
    assert name == "days" and unit == DAY and edges[1] % 3600 == 0 and edges[-1] >= 10 * DAY
    edges, unit, name = span(np.array([0.0]))
    assert len(edges) == 2 and name == "seconds"


def test_streams_are_taken_away_whole(folder: Path, tmp_path: Path) -> None:
    for stream in ("releases", "ledger", "participation", "truth"):
        rows = seen(folder / "mean").table(stream)
        text = b"".join(as_csv(rows)).decode().splitlines()
        assert len(text) == 1 + rows.num_rows
        file = tmp_path / f"{stream}.parquet"
        file.write_bytes(b"".join(as_parquet(rows)))
        back = pq.read_table(file)
        assert back.equals(rows) and back.schema.field("release").metadata is not None
    assert back.schema.metadata[b"visibility"] == b"simulation-only"


def test_streams_of_a_run_that_has_none_are_empty(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "scenario.yaml").write_text("name: [broken\n")
    document = documents.run(seen(tmp_path), counted())
    assert document["panels"] == [] and document["done"] == 0 and document["spent"] is None
    table = seen(tmp_path).table("releases")
    assert table.num_rows == 0 and set(table.column_names) == set(columns.schema("releases").names)
