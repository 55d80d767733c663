"""Recorded stays: lookups against a plain reference, and every way a table can be wrong."""

import os
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.errors import InputError
from raydp_sim.population import intervals
from raydp_sim.population.availability.trace import Trace
from raydp_sim.population.intervals import Intervals, content, load
from raydp_sim.random import Stream
from raydp_sim.scenario import load as load_scenario

CLIENTS = 6


@st.composite
def tables(draw):
    """Sorted rows of a few clients; stays may touch, and some clients have none."""
    rows = []
    for client in draw(st.sets(st.integers(0, CLIENTS - 1), min_size=1)):
        cuts = sorted(draw(st.sets(st.integers(0, 40), min_size=2, max_size=9)))
        touching = draw(st.booleans())
        pairs = [*pairwise(cuts)][:: 1 if touching else 2]
        rows += [(client, on / 4, off / 4) for on, off in pairs]
    return sorted(rows)


def table(rows):
    columns = np.array(rows, float)
    return Intervals(columns[:, 0].astype(np.int64), columns[:, 1].copy(), columns[:, 2].copy())


@settings(max_examples=150, deadline=None)
@given(tables(), st.lists(st.tuples(st.integers(0, CLIENTS), st.integers(-4, 200)), min_size=1))
def test_a_lookup_equals_looking_at_every_row(rows, questions):
    ids = np.array([client for client, _ in questions], np.uint32)
    times = np.array([moment / 8 for _, moment in questions])
    found = table(rows).there(ids, times)
    for client, moment, answer in zip(ids, times, found, strict=True):
        assert answer == any(c == client and on <= moment < off for c, on, off in rows)


@settings(max_examples=20, deadline=None)
@given(rows=tables(), ending=st.sampled_from([".csv", ".parquet"]))
def test_a_table_is_read_back_as_written(rows, ending, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / f"t{ending}"
    path.write_bytes(content(table(rows), ending))
    back = load(path)
    assert np.array_equal(np.column_stack((back.client, back.on, back.off)), np.array(rows))


def written(folder, text, name="t.csv"):
    (folder / name).write_text(text)
    return str(folder / name)


GOOD = "client,on,off\n0,0,10\n0,20,30\n2,5,40\n"


def test_a_trace_is_random_access(tmp_path):
    trace, ids = Trace(path=written(tmp_path, GOOD)), np.array([0, 1, 2, 0], np.uint32)
    times = np.array([25.0, 5.0, 39.9, 10.0])
    assert trace.available(ids, times, Stream(1)).tolist() == [True, False, True, False]
    for row, there in enumerate(trace.available(ids, times, Stream(2))):
        one = trace.available(ids[row : row + 1], float(times[row]), Stream(1))
        assert one.tolist() == [there]


def test_without_repeat_everyone_is_gone_when_it_is_over(tmp_path):
    path, ids = written(tmp_path, GOOD), np.arange(3)
    assert not Trace(path=path).available(ids, 45.0, Stream(1)).any()
    again = Trace(path=path, repeat=True)
    assert again.available(ids, 45.0, Stream(1)).tolist() == [True, False, True]
    longer = Trace(path=path, repeat=True, length=50.0)
    assert longer.available(ids, 45.0, Stream(1)).tolist() == [False] * 3
    assert longer.available(ids, 50.0 * 7 + 5.0, Stream(1)).tolist() == [True, False, True]


def test_the_rate_is_the_share_of_time(tmp_path):
    path = written(tmp_path, GOOD)
    assert Trace(path=path).rate() == pytest.approx(55 / 120)
    assert Trace(path=path, repeat=True, length=50.0).rate() == pytest.approx(55 / 150)
    # Two rounds of it on a fine grid see the same share.
    times = np.arange(0.125, 100.0, 0.25)
    asked = np.repeat(np.arange(3), len(times)), np.tile(times, 3)
    again = Trace(path=path, repeat=True, length=50.0)
    assert again.available(*asked, Stream(1)).mean() == pytest.approx(55 / 150)


def test_a_file_is_read_once_until_it_changes(tmp_path, monkeypatch):
    path, reads = written(tmp_path, GOOD), []
    original = intervals._read
    monkeypatch.setattr(intervals, "_read", lambda path: reads.append(path) or original(path))
    trace = Trace(path=path)
    for _ in range(3):
        assert trace.available(np.array([2]), 5.0, Stream(1)).all()
    assert len(reads) == 1
    written(tmp_path, "client,on,off\n2,6,7\n")
    os.utime(path, ns=(1, 1))
    assert not trace.available(np.array([2]), 5.0, Stream(1)).any()
    assert len(reads) == 2


BAD = {
    "nothing at all": ("", ["it is empty"]),
    "only a header": ("client,on,off\n", ["it holds no interval", "add rows"]),
    "no off": ("client,on\n0,1\n", ["column off is missing", "client, on, off"]),
    "on twice": ("client,on,on,off\n0,1,1,2\n", ["column on is there 2 times"]),
    "words": ("client,on,off\n0,0,1\n0,soon,9\n", ["line 3", "on is 'soon'", "a number"]),
    "a hole": ("client,on,off\n0,0,1\n,2,3\n", ["line 3", "client is nan", "fill it in"]),
    "nan": ("client,on,off\n0,nan,1\n", ["line 2", "on is nan", "fill it in"]),
    "infinity": ("client,on,off\n0,0,inf\n", ["line 2", "off is inf", "finite"]),
    "half a client": ("client,on,off\n0.5,0,1\n", ["line 2", "client is 0.5", "renumber"]),
    "below the first": ("client,on,off\n-1,0,1\n", ["line 2", "client is -1", "renumber"]),
    "before time": ("client,on,off\n0,-3,1\n", ["line 2", "on is -3", "starts at 0"]),
    "backwards": ("client,on,off\n0,0,1\n1,5,4\n", ["line 3", "off is 4", "later than on"]),
    "no length": ("client,on,off\n0,5,5\n", ["line 2", "off is 5", "later than on"]),
    "clients unsorted": (
        "client,on,off\n1,0,1\n0,0,1\n",
        ["line 3", "client is 0", "sorted by client"],
    ),
    "stays unsorted": (
        "client,on,off\n0,8,9\n0,1,2\n",
        ["line 3", "on is 1", "sort them by client and on"],
    ),
    "overlap": ("client,on,off\n0,0,5\n0,4,9\n", ["line 3", "on is 4", "overlap", "join"]),
    "unknown client": (
        "client,on,off\n0,0,5\n3,4,9\n",
        ["line 3", "client is 3", "only 3 clients"],
    ),
    "blank lines count": ("client,on,off\n\n0,0,5\n\n\n0,4,9\n", ["line 6", "on is 4"]),
    "ragged": ("client,on,off\n0,0\n", ["it cannot be read", "Expected 3 columns"]),
}


def refusal(path, clients=3):
    said = Trace(path=path).check(clients)
    assert said is not None and "\n" not in said and said.startswith(f"path is {path!r}; ")
    return said


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_refused_by_line_column_and_value(case, tmp_path):
    text, words = BAD[case]
    said = refusal(written(tmp_path, text))
    for word in words:
        assert word in said, said


def test_a_good_table_is_taken(tmp_path):
    assert Trace(path=written(tmp_path, GOOD)).check(3) is None
    extra = "model,client,on,off\nx,0,0,1\ny,0,1,2\n"
    assert Trace(path=written(tmp_path, extra, "extra.csv")).check(3) is None


def test_rows_of_parquet_are_counted_from_one(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"client": [0, 0], "on": [0.0, 4.0], "off": [5.0, None]}
    pyarrow.parquet.write_table(pa.table(columns), path)
    assert "row 2: off is nan" in refusal(str(path))
    flags = {"client": [True, False], "on": [0.0, 4.0], "off": [5.0, 6.0]}
    pyarrow.parquet.write_table(pa.table(flags), path)
    assert "row 1: client is True" in refusal(str(path))


def test_files_that_are_no_tables_are_refused(tmp_path):
    assert "No such file" in refusal(str(tmp_path / "nowhere.csv"))
    assert "the ending must be .csv or .parquet" in refusal(written(tmp_path, GOOD, "t.txt"))
    assert "it cannot be read" in refusal(written(tmp_path, "not parquet", "t.parquet"))
    assert "it cannot be read" in refusal(str(_folder(tmp_path)))


def _folder(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    return tmp_path / "folder.csv"


def test_a_length_before_the_end_is_refused(tmp_path):
    said = Trace(path=written(tmp_path, GOOD), repeat=True, length=39.0).check(3)
    assert said.startswith("length is 39; ") and "ends at 40" in said


SCENARIO = """\
name: recorded
population:
  clients: {clients}
  data: {{kind: bernoulli, probability: 0.5}}
  availability: {{kind: trace, path: t.csv, repeat: true}}
mechanism: {{kind: 2rr, epsilon_local: 1.0}}
"""


def test_a_relative_path_starts_at_the_scenario_file(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    written(tmp_path / "deep", GOOD)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep" / "a.yaml").write_text(SCENARIO.format(clients=3))
    population = load_scenario("deep/a.yaml").population
    assert population.available(np.arange(3), 45.0, Stream(1)).tolist() == [True, False, True]
    (tmp_path / "deep" / "a.yaml").write_text(SCENARIO.format(clients=2))
    with pytest.raises(InputError) as caught:
        load_scenario("deep/a.yaml")
    for word in ("a.yaml: population.availability.path is ", "t.csv", "line 4", "client is 2"):
        assert word in str(caught.value)
