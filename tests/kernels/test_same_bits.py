"""Compiled kernels give NumPy's bits on every instruction set of the machine, or refuse."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from raydp_sim import kernels
from raydp_sim.kernels import plain
from raydp_sim.kernels.choice import VARIABLE, Choice, choose
from tests.kernels.cases import CASES, KEY, played
from tests.kernels.examples import all_digests

compiled = pytest.importorskip("raydp_sim.kernels.compiled", exc_type=ImportError)

SETS = ("baseline", "avx2", "avx512")


@pytest.fixture
def use():
    """Let a test choose the instruction set; what was chosen before comes back."""

    def choose(name):
        if name not in compiled.sets():
            pytest.skip(f"this machine has no {name}")
        compiled.use(name)

    yield choose
    compiled.use(compiled.sets()[-1] if kernels.CHOICE.name == "numpy" else kernels.CHOICE.name)


@cache
def expected(name):
    return played(plain, name)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("instructions", SETS)
def test_every_kernel_gives_the_same_bits(instructions, name, use):
    use(instructions)
    assert played(compiled, name) == expected(name)


@pytest.fixture(scope="module")
def without():
    """What mechanisms do in their examples where NumPy's kernels are used."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.examples"],
        env={**os.environ, VARIABLE: "numpy"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("instructions", SETS)
def test_every_mechanism_sends_and_learns_the_same_in_its_examples(instructions, use, without):
    if kernels.CHOICE.name == "numpy":
        pytest.skip("this process uses NumPy's kernels")
    use(instructions)
    assert all_digests() == without


def test_both_have_the_same_kernels():
    names = {name for name in plain.__all__}
    assert names <= set(dir(compiled)) and names | {"CHOICE"} == set(kernels.__all__)


N = 6
GOOD = {
    "words": (KEY, np.zeros(N, np.uint32), 2),
    "sample": (KEY, np.zeros(N, np.uint32), np.ones(2)),
    "normals": (KEY, np.zeros(N, np.uint32), 2),
    "dealt": (KEY, range(3), 2, False, np.dtype(np.uint8)),
    "hadamard": (np.zeros((N, 8)),),
    "dots": (np.zeros((N, 8)), np.zeros((N, 8))),
    "largest": (np.zeros((N, 8)),),
    "gathered": (np.zeros((N, 8), np.uint8), np.zeros(3, np.int64), 1.0),
    "squares": (np.zeros((N, 8), np.float32),),
    "softmax": (
        np.zeros((N, 8), np.uint8),
        np.zeros((2, 3), np.int64),
        1.0,
        np.zeros((2, 3), np.int64),
        np.zeros((2, 3), np.float32),
        np.zeros(18, np.float32),
        np.zeros((2, 18), np.float32),
    ),
    "steps": (np.zeros((N, 16), np.float32), 1.0, 1.0, np.ones(N)),
    "toss": (KEY, np.zeros(N, np.uint32), None, *np.zeros((1, N, 2)), *np.zeros((2, 2))),
    "group": (np.zeros(N, np.uint8), 1),
    "mark": (np.zeros((N, 2), np.uint8), np.zeros(N, np.int64)),
    "merge": ([np.zeros(2, np.uint8), np.zeros(3, np.uint8)], np.array([[1, 1], [0, 3]])),
    "entries": (np.zeros((N, 8)), np.zeros(8), np.zeros((N, 2), np.int64)),
    "coefficients": (np.zeros((N, 8)), 2, 1.0, np.zeros(8)),
}
GOOD["toss"] += (np.dtype(np.uint8),)
BAD = {
    "ids of another type": ("words", 1, np.zeros(N, np.int64)),
    "ids in a table": ("words", 1, np.zeros((N, 1), np.uint32)),
    "ids in a list": ("normals", 1, [1, 2]),
    "fewer draws than none": ("words", 2, -1),
    "no messages to deal": ("dealt", 2, 0),
    "more messages than a report can have": ("dealt", 2, (1 << 16) + 1),
    "high of another type": ("sample", 2, np.ones(2, np.float32)),
    "whole numbers to transform": ("hadamard", 0, np.zeros((N, 8), np.int64)),
    "a length that is no power of two": ("hadamard", 0, np.zeros((N, 6))),
    "rows of other lengths": ("dots", 1, np.zeros((N, 7))),
    "the largest of whole numbers": ("largest", 0, np.zeros((N, 8), np.int64)),
    "a row beyond the pool": ("gathered", 1, np.array([0, N])),
    "a row before the pool": ("gathered", 1, np.array([0, -1])),
    "a sample beyond the pool": ("softmax", 1, np.full((2, 3), N)),
    "a sample before the pool": ("softmax", 1, np.full((2, 3), -1)),
    "a class that is none": ("softmax", 3, np.full((2, 3), 2)),
    "labels of fewer samples": ("softmax", 3, np.zeros((2, 2), np.int64)),
    "weights as doubles": ("softmax", 4, np.zeros((2, 3))),
    "fewer parameters": ("softmax", 5, np.zeros(17, np.float32)),
    "parameters of more clients": ("softmax", 5, np.zeros((3, 18), np.float32)),
    "gradients of more clients": ("softmax", 6, np.zeros((3, 18), np.float32)),
    "gradients as doubles": ("softmax", 6, np.zeros((2, 18))),
    "factors of fewer rows": ("steps", 3, np.ones(N - 1)),
    "factors of single floats": ("steps", 3, np.ones(N, np.float32)),
    "squares of whole numbers": ("squares", 0, np.zeros((N, 8), np.int64)),
    "chances for another number of clients": ("toss", 3, np.zeros((N + 1, 2))),
    "fewer gaps": ("toss", 5, np.zeros(1)),
    "a key beyond the groups": ("group", 0, np.full(N, 1, np.uint8)),
    "a bit beyond the row": ("mark", 1, np.full(N, 16)),
    "a bit before the row": ("mark", 1, np.full(N, -1)),
    "fewer items than their groups have": ("merge", 1, np.array([[1, 1], [1, 3]])),
    "more items than their groups have": ("merge", 1, np.array([[1, 0], [0, 3]])),
    "groups of less than nothing": ("merge", 1, np.array([[3, -1], [0, 3]])),
    "sizes of fewer parts": ("merge", 1, np.array([[1, 1]])),
    "parts of different types": ("merge", 0, [np.zeros(2, np.uint8), np.zeros(3, np.uint16)]),
    "an entry beyond the transform": ("entries", 2, np.full((N, 2), 8)),
    "a frame of another length": ("coefficients", 3, np.zeros(4)),
}


@pytest.mark.parametrize("name", GOOD)
def test_fitting_arguments_are_taken(name):
    getattr(compiled, name)(*GOOD[name])


@pytest.mark.parametrize("what", BAD)
def test_what_does_not_fit_is_refused_before_c_reads_it(what):
    name, position, value = BAD[what]
    arguments = list(GOOD[name])
    arguments[position] = value
    with pytest.raises((TypeError, ValueError)):
        getattr(compiled, name)(*arguments)


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("kernels", [plain, compiled], ids=["plain", "compiled"])
def test_the_largest_entry_tells_what_is_no_number(kernels, kind, value):
    x = np.ones((3, 40), kind)
    x[1, 33], x[1, 5] = value, np.inf
    found = kernels.largest(x)
    assert found[0] == found[2] == 1.0
    assert np.isnan(found[1]) if np.isnan(value) else found[1] == np.inf


@pytest.mark.parametrize("kernels", [plain, compiled], ids=["plain", "compiled"])
def test_a_histogram_refuses_an_index_that_would_count_symbols_several_times(kernels):
    with pytest.raises(ValueError, match="broadcast"):
        kernels.tally(np.zeros((3, 1), np.uint8), 2, np.zeros(3, np.int64), 1)


def test_a_histogram_refuses_symbols_beyond_its_alphabet():
    with pytest.raises(ValueError, match="do not fit"):
        compiled.tally(np.array([0, 3], np.uint8), 3)


@pytest.mark.parametrize("lengths", [[3, 4], [-1, 2], [7, 0]])
def test_groups_to_shuffle_lie_inside_of_the_items(lengths):
    with pytest.raises(ValueError, match="do not fit"):
        starts, seeds = np.array([0, 3]), np.zeros((2, 3), np.uint64)
        compiled.shuffle(np.arange(6), starts, np.array(lengths), seeds)


def test_what_is_changed_in_place_is_never_a_copy():
    with pytest.raises(ValueError, match="in place"):
        nothing = np.zeros(0, np.int64)
        compiled.shuffle(np.arange(6)[::2], nothing, nothing, np.zeros((0, 3), np.uint64))
    with pytest.raises(TypeError, match="in place"):
        compiled.mark(np.zeros((4, 4), np.uint8)[:, ::2], np.zeros(4, np.int64))


def test_inputs_that_are_not_contiguous_are_copied():
    ids = np.arange(20, dtype=np.uint32)
    assert np.array_equal(
        compiled.uniforms(KEY, ids[::2], 3), compiled.uniforms(KEY, ids[::2].copy(), 3)
    )
    x = np.random.default_rng(1).standard_normal((8, 16))
    assert np.array_equal(compiled.hadamard(x.T), plain.hadamard(x.T.copy()))
    assert np.array_equal(compiled.dots(x[::2], x[1::2]), plain.dots(x[::2], x[1::2]))


def test_the_variable_chooses(use):
    use("baseline")  # so that what was chosen comes back afterwards
    assert choose("numpy") == Choice("numpy")
    assert choose("baseline") == Choice("baseline")
    assert choose("") == Choice(compiled.sets()[-1])
    assert choose("sse9").refused.startswith("RAYDP_SIM_KERNELS is sse9; this machine has numpy, ")


def test_another_numpy_is_noticed(monkeypatch):
    def other(one, two):
        return np.nextafter(np.einsum("ij,ij->i", one, two), np.inf)

    monkeypatch.setattr(plain, "dots", other)
    compiled.agrees.cache_clear()
    found = choose("")
    compiled.agrees.cache_clear()
    assert found.name == "numpy" and "in another order" in found.notice


def test_without_the_extension_numpy_does_the_work():
    code = """
import os, sys
os.environ.pop("RAYDP_SIM_KERNELS", None)
sys.modules["raydp_sim.kernels._compiled"] = None
from raydp_sim import kernels
print(*kernels.CHOICE[:2])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("numpy kernels: NumPy's, since none are compiled"), done.stderr
