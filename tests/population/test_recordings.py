"""Public recordings: FedScale's and FLASH's layouts, and pickles that are not to be trusted."""

import collections
import json
import os
import pickle
import sys

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.population.traces import convert, parse, read

# The shape of FedScale's records, with numbers of its documentation's kind.
PHONE = {
    "duration": 211625,
    "inactive": [65881, 133574, 208292],
    "finish_time": 518400,
    "active": [12788, 100044, 188992],
    "model": "CPH1801",
}
OTHER = {**PHONE, "active": [5], "inactive": [9]}


def rows(made):
    stays = made.stays
    return np.column_stack((stays.client, stays.on, stays.off)).tolist()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_fedscale_pickles_are_read(protocol):
    made = convert(parse(pickle.dumps({3834: PHONE, 12: OTHER}, protocol)))
    assert rows(made) == [
        [0, 5, 9],
        [1, 12788, 65881],
        [1, 100044, 133574],
        [1, 188992, 208292],
    ]
    assert (made.clients, made.length, made.notes) == (2, 518400.0, ())


def test_json_gives_the_same_as_the_pickle():
    document = {"3834": PHONE, "12": OTHER}
    assert rows(convert(parse(json.dumps(document).encode()))) == rows(
        convert(parse(pickle.dumps({3834: PHONE, 12: OTHER})))
    )


def test_clients_are_numbered_in_order_and_cut():
    document = {str(name): {**OTHER, "active": [name]} for name in (5, 4, 100, 20)}
    document = {name: {**one, "inactive": [1000]} for name, one in document.items()}
    assert [on for _, on, _ in rows(convert(document))] == [4.0, 5.0, 20.0, 100.0]
    named = {f"c{name}": one for name, one in document.items()}
    assert [on for _, on, _ in rows(convert(named))] == [100.0, 20.0, 4.0, 5.0]
    made = convert(document, clients=2)
    assert made.clients == 2 and [client for client, _, _ in rows(made)] == [0, 1]
    with pytest.raises(InputError, match="--clients is 5; recording has only 4 clients"):
        convert(document, clients=5)


def test_what_was_changed_is_told():
    messy = {
        "active": [30, 0, 5, 10, 50, 70, 60],
        "inactive": [90, 6, 8, 10, 55, 200, 62],
        "finish_time": 100,
    }
    never = {"active": [], "inactive": [], "finish_time": 80}
    made = convert({"1": messy, "2": never})
    assert rows(made) == [[0, 0, 8], [0, 30, 100]] and made.clients == 2
    text = " / ".join(made.notes)
    for words in ("4 overlapping or touching", "1 stays were cut", "1 of the clients are never"):
        assert words in text
    assert "80 to 100 seconds" in text


def test_flash_timers_are_read_from_the_first_start():
    document = {
        "b": {
            "isSuccess": True,
            "trace_start": 100.0,
            "trace_end": 900.0,
            "ready_time": [[150.0, 200.0], [300.0, 350.0]],
        },
        "a": {"isSuccess": True, "trace_start": 50, "trace_end": 700, "ready_time": [[60, 61]]},
        "c": {"isSuccess": False, "trace_start": None, "trace_end": None, "ready_time": []},
    }
    made = convert(document)
    assert rows(made) == [[0, 10, 11], [1, 100, 150], [1, 250, 300]]
    assert (made.clients, made.length) == (3, 850.0)


def test_flash_state_traces_are_followed():
    states = [
        ("2020-02-01 00:00:00", "screen_lock"),
        ("2020-02-01 00:00:10", "wifi"),
        ("2020-02-01 00:00:20", "battery_charged_on"),
        ("2020-02-01 00:00:20", "83.0%"),
        ("2020-02-01 00:01:20", "Screen_On"),
        ("2020-02-01 00:02:00", "screen_unlock"),
        ("2020-02-01 00:03:00", "screen_lock"),
        ("2020-02-01 00:04:00", "4G"),
        ("2020-02-01 23:59:00", "wifi"),
        ("2020-02-02 00:00:00", "95%"),
    ]
    messages = "\n".join(f"{when}\t{state}" for when, state in states) + "\n\n"
    made = convert({"guid": {"guid": "guid", "model": "x", "messages": messages}})
    assert rows(made) == [[0, 20, 120], [0, 180, 240], [0, 86340, 86400]]
    assert made.length == 86400.0


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], ["must be a mapping"]),
        ({}, ["must be a mapping"]),
        ({"1": [1, 2]}, ["client '1'", "active, ready_time, messages"]),
        ({"1": {"active": [1]}}, ["client '1'", "inactive must be a list"]),
        ({"1": {**PHONE, "active": [1]}}, ["active has 1 instants and inactive 3"]),
        ({"1": {**OTHER, "active": ["x"]}}, ["client '1': active is 'x'"]),
        ({"1": {**OTHER, "active": [True]}}, ["active is True"]),
        ({"1": {**OTHER, "active": [float("nan")]}}, ["active is nan"]),
        ({"1": {**OTHER, "inactive": [10**400]}}, ["inactive is 1000", "below 1e+12"]),
        ({"1": {**OTHER, "finish_time": None}}, ["finish_time is None"]),
        ({"1": {**OTHER, "finish_time": 0}}, ["no length"]),
        ({"1": {**OTHER, "active": [20]}}, ["begins at 20 and ends at 9"]),
        ({"1": {**OTHER, "active": [-2]}}, ["begins at -2, before the recording"]),
        ({"1": {**OTHER, "active": [], "inactive": []}}, ["nobody is ever there"]),
        ({"1": {"ready_time": [1, 2]}}, ["ready_time must be a list of pairs"]),
        ({"1": {"ready_time": [[1, 2]]}}, ["trace_start and trace_end is None"]),
        ({"1": {"messages": "yesterday\twifi"}}, ["line 1 of messages", "'yesterday\\twifi'"]),
        ({"1": {"messages": "2020-01-01 00:00:00\tasleep"}}, ["line 1", "'asleep'"]),
        (
            {"1": {"messages": "2020-01-02 00:00:00\twifi\n2020-01-01 00:00:00\t4g"}},
            ["line 2", "earlier"],
        ),
    ],
)
def test_bad_recordings_are_refused(document, words):
    with pytest.raises(InputError) as caught:
        convert(document, "x.json")
    for word in ("x.json", *words):
        assert word in str(caught.value)


class Evil:
    def __reduce__(self):
        return os.system, ("echo pwned > pwned.txt",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_is_refused_and_does_nothing(protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for document in (Evil(), {1: {**PHONE, "model": Evil()}}, {Evil(): 1}, [Evil()]):
        (tmp_path / "evil").write_bytes(pickle.dumps(document, protocol))
        with pytest.raises(InputError, match=r"evil: the pickle asks for \w+\.system; only dicts"):
            read(tmp_path / "evil")
    assert not (tmp_path / "pwned.txt").exists()


@pytest.mark.parametrize(
    "thing",
    [
        np.arange(3),
        np.float64(1.0),
        collections.OrderedDict(a=1),
        1j,
        len,
        sys.exit,
        collections.Counter,
        ValueError("x"),
    ],
)
def test_no_class_or_function_is_ever_looked_up(thing):
    with pytest.raises(InputError, match="the pickle asks for"):
        parse(pickle.dumps({1: thing}))


@pytest.mark.parametrize(
    "content",
    [b"\x80\x04garbage", b"words", b"\x00" * 40, b"cos\nsystem\n", b"P1\n.", b"\x82\x01."],
)
def test_garbage_is_refused(content):
    with pytest.raises(InputError):
        parse(content)


def test_what_is_neither_is_refused(tmp_path):
    with pytest.raises(InputError, match="it is empty"):
        parse(b"  \n")
    with pytest.raises(InputError, match=r"not valid JSON .*; mend it"):
        parse(b'{"a": ')
    with pytest.raises(InputError, match="not valid JSON"):
        parse(b"[" * 100_000)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "nowhere")


def test_a_table_can_be_cut(tmp_path):
    (tmp_path / "t.csv").write_text("client,on,off\n0,0,1\n1,0,2\n5,0,9\n")
    assert rows(read(tmp_path / "t.csv", 2)) == [[0, 0, 1], [1, 0, 2]]
    (tmp_path / "u.csv").write_text("client,on,off\n5,0,9\n")
    with pytest.raises(InputError, match="none of the first 2 clients"):
        read(tmp_path / "u.csv", 2)
