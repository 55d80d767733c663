"""Calls over local sockets: in order with Ray's own, of any size, and lost with the actor."""

import os
import signal
import time

import numpy as np
import pytest

from raydp_sim.actors import line, listening, together
from raydp_sim.actors.backend import Lost
from raydp_sim.actors.line import Reply
from raydp_sim.actors.listening import Listens
from raydp_sim.actors.packing import Packer, opened, packed
from raydp_sim.actors.together import Together
from raydp_sim.errors import InputError, RunError
from raydp_sim.mechanisms import make


class Hearing(Listens):
    """Notes what it hears."""

    def __init__(self):
        self.heard = []

    def hear(self, what, seconds=0.0):
        time.sleep(seconds)
        self.heard.append(what)
        return list(self.heard)

    def two(self):
        return np.arange(3), "b"

    def echo(self, array):
        return array + 1

    def fail(self, error):
        raise error

    def stubborn(self):
        class Local(Exception):
            pass

        raise Local("cannot be packed")

    def pid(self):
        return os.getpid()


@pytest.fixture
def backend(ray_session):
    return Together()


@pytest.fixture
def actor(backend):
    made = backend.spawn(Hearing, anywhere=True)
    backend.get(made.pid.remote())
    while backend._lines.of(made) is None:
        time.sleep(0.01)
    yield made
    backend.kill(made)


def called(backend, actor, method, *args, returns=1):
    return backend.call(actor, method, *args, returns=returns)


@pytest.mark.cluster
def test_answers_come_over_the_line(backend, actor):
    one, two = called(backend, actor, "two", returns=2)
    assert isinstance(one, Reply)
    assert backend.get(one).tolist() == [0, 1, 2] and backend.get(two) == "b"
    (first,), (second,) = (called(backend, actor, "hear", each) for each in "ab")
    assert list(backend.wait([second, first]))  # whichever is there
    assert backend.get(second) == ["a", "b"] and backend.get(first) == ["a"]


@pytest.mark.cluster
def test_rays_own_calls_keep_their_place_among_those_of_the_line(backend, actor, monkeypatch):
    monkeypatch.setattr(together, "_LONG", 1000)
    refs = []
    for turn in range(3):
        refs += called(backend, actor, "hear", (turn, "line"), 0.02)
        refs += called(backend, actor, "hear", (turn, "x" * 1000))
        refs += called(backend, actor, "hear", (turn, "again"))
    kinds = [isinstance(ref, Reply) for ref in refs]
    assert kinds == [True, False, True] * 3
    (whole,) = called(backend, actor, "hear", "end")
    heard = backend.get(whole)
    assert [each[0] for each in heard[:-1]] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [len(each[1]) for each in heard[:-1]] == [4, 1000, 5] * 3
    for place, ref in enumerate(refs):
        assert len(backend.get(ref)) == place + 1


@pytest.mark.cluster
def test_calls_that_nobody_told_the_line_of_are_let_through(backend, actor):
    backend.get(called(backend, actor, "hear", "a")[0])
    began = time.monotonic()
    assert backend.get(actor.hear.remote("b")) == ["a", "b"]
    assert time.monotonic() - began < 20.0
    time.sleep(3.0 * listening._IDLE_SECONDS)  # it has given up listening
    assert backend.get(called(backend, actor, "hear", "c")[0]) == ["a", "b", "c"]


@pytest.mark.cluster
@pytest.mark.parametrize("size", [0, 1, 10_000, 900_000])
def test_arrays_of_any_size_come_back(size, backend, actor):
    refs = [called(backend, actor, "echo", np.full(size, turn))[0] for turn in range(4)]
    assert all(isinstance(ref, Reply) for ref in refs)
    for turn, ref in enumerate(refs):
        assert np.array_equal(backend.get(ref), np.full(size, turn + 1))


@pytest.mark.cluster
def test_what_is_very_large_goes_by_ray(backend, actor):
    large = np.zeros(together._LONG // 8)
    (ref,) = called(backend, actor, "echo", large)
    assert not isinstance(ref, Reply)
    assert np.array_equal(backend.get(ref), large + 1.0)


@pytest.mark.cluster
def test_errors_come_back_as_what_they_were(backend, actor):
    for error, kind in ((InputError("no"), InputError), (RunError("gone"), RunError)):
        refs = called(backend, actor, "fail", error, returns=2)
        for ref in refs:
            with pytest.raises(kind, match=str(error)):
                backend.get(ref)
    with pytest.raises(OSError, match="full"):
        backend.get(called(backend, actor, "fail", OSError(28, "full"))[0])
    for method, args in (("fail", (ValueError("odd"),)), ("stubborn", ())):
        with pytest.raises(RunError, match="an actor failed"):
            backend.get(called(backend, actor, method, *args)[0])
    assert backend.get(called(backend, actor, "hear", "still there")[0])


@pytest.mark.cluster
def test_all_that_a_dead_actor_owes_is_lost(backend, actor):
    pid = backend.get(called(backend, actor, "pid")[0])
    owed = [called(backend, actor, "hear", each, 30.0)[0] for each in "ab"]
    os.kill(pid, signal.SIGKILL)
    for ref in owed:
        with pytest.raises(Lost, match="ended"):
            backend.get(ref)
    (ref,) = called(backend, actor, "hear", "c")
    with pytest.raises(Lost):
        backend.get(ref)


@pytest.mark.cluster
def test_an_actor_that_is_made_anew_is_dialled_anew(backend, actor):
    backend.get(called(backend, actor, "hear", "a")[0])
    backend.retire([actor])
    assert backend._lines.of(actor) is None
    again = backend.spawn(Hearing, anywhere=True)
    assert again is actor
    assert backend.get(called(backend, again, "hear", "b")[0]) == ["b"]


@pytest.mark.cluster
def test_whoever_is_elsewhere_is_called_by_ray(backend, actor):
    backend._lines.end(actor)
    backend._lines._path += "-that-is-not-here"
    backend._lines.dial(actor)
    backend.get(actor.pid.remote())
    (ref,) = called(backend, actor, "hear", "a")
    assert not isinstance(ref, Reply)
    assert backend.get(ref) == ["a"]


def test_a_path_too_long_for_a_socket_leaves_ray(tmp_path):
    assert line._door(str(tmp_path / ("x" * 200))) is None
    door = line._door(str(tmp_path / "x"))
    assert door is not None
    door.close()


def test_arguments_are_packed_once_for_those_called_alike():
    packer, mechanism = Packer(), make("rinf", epsilon_local=1.0, dimension=3, radius=1.0)
    args = ([1], {"theta": np.arange(4.0)}, mechanism)
    one = packer.arguments(args, args)
    assert packer.arguments(args, args) is one
    assert packer.arguments(([1], *args[1:]), args) is not one
    found = [opened(packer.arguments(([1], *args[1:]), args)) for _ in range(2)]
    # The same mechanism is not made twice: what it has worked out is kept.
    assert found[0][2] is found[1][2] and found[0][2] == mechanism
    assert found[0][0] == [1] and np.array_equal(found[0][1]["theta"], np.arange(4.0))
    (function,) = opened(packer.arguments(("f",), (lambda: 5,)))
    assert function() == 5


def test_packed_things_come_back():
    given = {"a": np.arange(5), "b": [np.zeros((2, 0)), "c"]}
    back = opened([bytes(part) for part in packed(given)])
    assert np.array_equal(back["a"], given["a"]) and back["b"][0].shape == (2, 0)
