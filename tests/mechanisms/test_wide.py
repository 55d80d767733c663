"""Reports wider than NumPy's buffer, where one row may be summed otherwise than many."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.parts.kashin import Kashin
from raydp_sim.mechanisms.parts.rowwise import dots
from raydp_sim.random import Stream

ROWS = 5
WIDTHS = (13_706, 20_000)


def cases():
    """Every mechanism that takes vectors of any length, once for each choice of its named options.

    A Haar rotation of this width is a dense matrix of gigabytes, so it is left out.
    """
    for kind, cls in MECHANISMS.kinds.items():
        options = {tuple(v for v in e.values() if isinstance(v, str)): e for e in cls.examples}
        for chosen, example in options.items():
            for width in WIDTHS if "haar" not in chosen else ():
                try:
                    mechanism = cls.model_validate({**example, "dimension": width})
                except ValueError:
                    continue
                domain = mechanism.domain
                if domain.width == width and domain.norm != "category":
                    yield pytest.param(mechanism, id="-".join([kind, *chosen, str(width)]))


CASES = list(cases())


def test_the_wide_mechanisms_are_found():
    kinds = {case.values[0].kind for case in CASES}
    assert {"priv", "privunit", "r2", "rp", "sqkr", "l2", "linf", "gaussian", "vqsgd"} <= kinds


@pytest.mark.parametrize("mechanism", CASES)
def test_wide_reports_do_not_depend_on_who_shares_the_call(mechanism):
    random = np.random.default_rng(6).normal(size=(ROWS, mechanism.domain.width))
    values = mechanism.domain.admit(random, on_out_of_range="clip")
    stream = Stream(4).at("randomize", 2).clients(np.arange(ROWS))
    whole = mechanism.randomize(values, stream).payload
    for size in (1, 2, 3):
        rows = [slice(first, first + size) for first in range(0, ROWS, size)]
        parts = [mechanism.randomize(values[part], stream.take(part)).payload for part in rows]
        assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("width", [1, 8191, 8192, 8193, *WIDTHS, 65_536])
def test_a_dot_product_is_the_same_in_any_company_and_place(width):
    one, other = np.random.default_rng(width).normal(size=(2, 7, width))
    whole = dots(one, other)
    assert whole == pytest.approx((one * other).sum(axis=1), rel=1e-9, abs=1e-9)
    for size in (1, 2, 3):
        # Shifted by one double, so that no vector instruction finds the rows aligned as before.
        moved = np.empty(size * width + 1)[1:].reshape(size, width)
        for first in range(0, 7 - size, size):
            rows = slice(first, first + size)
            moved[:] = one[rows]
            assert np.array_equal(dots(moved, other[rows]), whole[rows])
    assert dots(one[:0], other[:0]).shape == (0,)


def test_a_wide_frame_gives_a_client_its_coefficients_in_any_company():
    """A frame of 16,384 vectors, four clients to a block."""
    frame = Kashin(5000, 16_384, 0)
    x = np.random.default_rng(7).normal(size=(ROWS, 5000))
    whole = frame.rotate(x)
    for row in range(ROWS):
        assert np.array_equal(frame.rotate(x[row : row + 1])[0], whole[row])


def test_a_dot_product_does_not_depend_on_the_number_of_threads():
    """A client actor of Ray has one thread, the inline process as many as there are cores."""
    code = (
        "import numpy as np; from raydp_sim.mechanisms.parts.rowwise import dots; "
        "x, y = np.random.default_rng(0).normal(size=(2, 3, 200_000)); print(dots(x, y).tolist())"
    )
    here = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS")
    threads = "2" if here == "1" else "1"
    there = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=there, capture_output=True, text=True, check=True)
    x, y = np.random.default_rng(0).normal(size=(2, 3, 200_000))
    assert json.loads(done.stdout) == dots(x, y).tolist()
