"""Files of the user's own: which columns, whose rows, which header, and what is refused."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raydp_sim import run
from raydp_sim.datasets.base import Hidden
from raydp_sim.datasets.delimited import has_header
from raydp_sim.datasets.file import File
from raydp_sim.errors import InputError
from raydp_sim.random import Stream
from raydp_sim.scenario import parse


def held(data: File) -> list[list[float]]:
    return data.values(np.arange(data.rows(), dtype=np.uint32), Stream(0)).tolist()


def written(folder: Path, content: str, name: str = "own.csv", **fields) -> File:
    (folder / name).write_text(content, encoding="utf-8")
    return File(path=name, **fields).located(folder)


def test_a_file_without_a_header_keeps_its_first_client(tmp_path):
    data = written(tmp_path, "0.5,1\n0.25,0\n")
    assert held(data) == [[0.5, 1.0], [0.25, 0.0]]
    assert "no header: line 1 (0.5, 1) is client 0 (detected)" in data.said()


def test_a_header_is_detected_and_said(tmp_path):
    data = written(tmp_path, "age;income\n0.5;1\n0.25;0\n")
    assert held(data) == [[0.5, 1.0], [0.25, 0.0]]
    assert data.names() == ("age", "income")
    assert "line 1 (age, income) is a header (detected)" in data.said()


@pytest.mark.parametrize(
    "rows,known,header",
    [
        ([["a", "b"], ["1", "2"]], (), True),
        ([["1", "2"], ["3", "4"]], (), False),
        ([["city", "3"], ["Rome", "4"]], (), False),
        ([["city", "3"], ["Rome", "4"]], ["city"], True),
        ([["yes"], ["no"], ["yes"]], (), False),
        ([["answer"], ["no"], ["yes"]], (), True),
        ([["1", "2"], ["3", "4"]], ["1"], False),
        ([["a", "b"]], (), True),
        ([["a", ""], ["", "1"]], (), True),
    ],
)
def test_which_first_lines_are_headers(rows, known, header):
    assert has_header(rows, known) is header


def test_the_scenario_has_the_last_word_on_the_header(tmp_path):
    assert written(tmp_path, "2019,2020\n1,2\n", header=True).names() == ("2019", "2020")
    assert written(tmp_path, "town\nRome\nOslo\n", header=False).rows() == 3


@pytest.mark.parametrize("columns", [["income", "age"], [2, 1], ["income", 1]])
def test_columns_are_chosen_by_name_or_position_in_that_order(columns, tmp_path):
    text = "id,age,income\n7,0.5,1\n3,0.25,0\n"
    data = written(tmp_path, text, columns=columns, id="id")
    assert held(data) == [[1.0, 0.5], [0.0, 0.25]]
    assert data.names() == ("income", "age")


def test_an_id_is_no_dimension(tmp_path):
    data = written(tmp_path, "id,age\nx,0.5\ny,0.25\n", id="id")
    assert held(data) == [[0.5], [0.25]]
    np.save(tmp_path / "own.npy", np.array([[4.0, 0.5], [9.0, 0.25]]))
    assert held(File(path="own.npy", id=0).located(tmp_path)) == [[0.5], [0.25]]


@pytest.mark.parametrize("fixed", [False, True])
def test_lists_of_parquet_are_coordinates(fixed, tmp_path):
    of = pa.list_(pa.float32(), 2) if fixed else pa.list_(pa.float32())
    table = pa.table({"v": pa.array([[0.5, 1.0], [0.25, 0.0]], of), "w": [1, 0]})
    pq.write_table(table, tmp_path / "own.parquet")
    data = File(path="own.parquet").located(tmp_path)
    assert held(data) == [[0.5, 1.0, 1.0], [0.25, 0.0, 0.0]]
    assert data.names() == ("v[0]", "v[1]", "w")


def test_texts_are_categories_with_names(tmp_path):
    texts = ["no", "yes", "no", "maybe"]
    lines = "\n".join(["answer", *texts])
    assert written(tmp_path, lines).names() == ("maybe", "no", "yes")
    pq.write_table(
        pa.table({"answer": pa.array(texts).dictionary_encode()}), tmp_path / "own.parquet"
    )
    np.save(tmp_path / "own.npy", np.array(texts))
    for name in ("own.csv", "own.parquet", "own.npy"):
        assert held(File(path=name).located(tmp_path)) == [[1.0], [2.0], [1.0], [0.0]]


def test_given_categories_are_numbered_as_given(tmp_path):
    data = written(tmp_path, "3\n10\n3\n", categories=["10", "3", "7"])
    assert held(data) == [[1.0], [0.0], [1.0]]
    assert data.names() == ("10", "3", "7")
    assert Hidden(of=data.shape(), called=data.names()).names() == data.names()


MANY = "\n".join(f"word{i}" for i in range(12))
RUNNING = "\n".join(f"{i},{i % 3}" for i in range(1, 13))
# Content, fields, and what the refusal says.
BAD = {
    "hole": ("a,b\n0,1\n,0\n", {}, ["client 1", "'a'", "line 3", "fill it in"]),
    "short line": ("a,b\n0,1\n2\n", {}, ["line 3 has 1 cells", "2"]),
    "text": ("a,b\n0,x\n", {}, ["'b'", "'x' in line 2", "columns: [a]", "categories"]),
    "slip": ("a\n1\n2\n3\n4o\n", {}, ["'a' has '4o' in line 5 among numbers"]),
    "id by name": ("user_id,b\n5,0\n9,1\n", {}, ["'user_id' names the clients", "id: user_id"]),
    "id by numbers": (RUNNING, {}, ["'0' names the clients", "columns, as [1]"]),
    "id twice": ("u,b\n5,0\n9,1\n5,0\n", {"id": "u"}, ["'u'", "'5' in line 2 and line 4"]),
    "no such id": ("u,b\n5,0\n", {"id": "w"}, ["data.id is 'w'", "the file has u, b"]),
    "no such column": ("age,b\n5,0\n", {"columns": ["aeg"]}, ["did you mean 'age'?"]),
    "column too far": ("a,b\n5,0\n", {"columns": [2]}, ["data.columns is 2", "a, b"]),
    "id as data": ("u,b\n5,0\n", {"id": "u", "columns": ["u"]}, ["leave it out of one"]),
    "nothing left": ("u\n5\n6\n", {"id": "u"}, ["no column is left"]),
    "same name": ("a,a\n5,0\n", {}, ["two columns are called 'a'"]),
    "names as categories": (MANY, {}, ["11 different texts in 11 rows"]),
    "unknown category": ("a\nyes\nyse\n", {"categories": ["yes"]}, ["'yse' in line 3", "'yes'?"]),
    "empty category": ('a,b\nyes,1\n"",2\n', {"columns": ["a"]}, ["'a' is empty in line 3"]),
    "categories of two": ("a,b\n1,2\n", {"categories": ["1"]}, ["of one column", "are 2"]),
    "dates": ("a,b\n2020-01-01,2\n", {}, ["'a' holds date", "columns"]),
    "nothing": ("", {}, ["it is empty"]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_refused_with_its_place(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, fields, words = BAD[case]
    with pytest.raises(InputError) as refusal:
        written(Path(), content, **fields).width()
    for word in ("population.data", *words):
        assert word in str(refusal.value)


def test_ragged_lists_and_latin_text_are_refused(tmp_path):
    pq.write_table(pa.table({"v": [[1.0], [1.0, 2.0]]}), tmp_path / "own.parquet")
    with pytest.raises(InputError, match="'v' has a list of 2 in row 1 and of 1 in row 0"):
        File(path="own.parquet").located(tmp_path).width()
    (tmp_path / "own.csv").write_bytes("a\nM\xfcnchen\n".encode("latin-1"))
    with pytest.raises(InputError, match="line 2 is not UTF-8"):
        File(path="own.csv").located(tmp_path).width()


def survey(folder: Path, clients: int, categories: int = 3) -> dict:
    (folder / "own.csv").write_text("answer\n" + "no\nyes\nno\nmaybe\n" * 25, encoding="utf-8")
    return {
        "name": "survey",
        "population": {
            "clients": clients,
            "data": {"kind": "file", "path": str(folder / "own.csv")},
        },
        "mechanism": {"kind": "krr", "categories": categories, "epsilon_local": 8.0},
        "placement": {"backend": "inline"},
    }


def test_a_survey_of_texts_plays(tmp_path):
    result = run(survey(tmp_path, 100), out=tmp_path / "run")
    # A report lies with probability 2 / (e^8 + 2) < 0.0007, and f lies move the histogram by at
    # most 2 (f / 100)^2: it takes 7 of 100, which is less likely than 1e-9.
    assert result.summary["metrics"]["squared_error_population"] < 0.01


def test_rows_and_categories_that_do_not_match_are_said_with_both_numbers(tmp_path):
    with pytest.raises(InputError, match=r"population.clients is 101; the data hold only 100 rows"):
        parse(survey(tmp_path, 101))
    with pytest.raises(InputError, match=r"mechanism.categories is 2; .* 3 categories \(maybe, no"):
        parse(survey(tmp_path, 100, categories=2))
