"""Gradients are single floats; they are clipped without being widened first, to the same bits."""

import tracemalloc

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.domain import Admitted, Domain
from raydp_sim.mechanisms.parts.exact import exact_sum, unit
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.random import Stream


def same(domain, rows, **how):
    narrow = domain.admitted(rows, **how)
    wide = domain.admitted(rows.astype(np.float64), **how)
    assert narrow.values.dtype == np.float64
    assert narrow.values.tobytes() == wide.values.tobytes()
    assert (narrow.share is None) == (wide.share is None)
    if narrow.share is not None:
        assert narrow.share.tobytes() == wide.share.tobytes()
    return narrow


@pytest.mark.parametrize("width", [1, 7, 130, 5000])
@pytest.mark.parametrize("scale", [1e-6, 0.02, 1e6, 1e25])
@pytest.mark.parametrize(
    "norm,clip", [("l2", "clamp"), ("l2", "radial"), ("linf", "clamp"), ("linf", "radial")]
)
def test_single_floats_are_clipped_as_doubles_are(norm, clip, scale, width):
    rows = (np.random.default_rng(width).standard_normal((9, width)) * scale).astype(np.float32)
    rows[3] = 0.0
    found = same(Domain(norm, 1.0, width), rows, on_out_of_range="clip", clip=clip)
    sizes = np.sqrt((found.values**2).sum(axis=1)) if norm == "l2" else abs(found.values).max(1)
    assert (sizes <= 1.0 + 1e-12).all() and (found.values[3] == 0.0).all()
    assert not np.shares_memory(found.values, rows)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_refused_by_name(value):
    rows = np.ones((4, 300), np.float32)
    rows[2, 7] = value
    with pytest.raises(InputError, match=r"client 12 holds .* at index 7"):
        Domain("l2", 1.0, 300).admitted(rows, np.arange(10, 14), "clip")


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 1e6, 1e30])
def test_vectors_that_are_only_added_up_are_scaled_on_the_way_to_the_same_sum(scale):
    settings = {"epsilon": 1.0, "delta": 1e-6, "radius": 2.0, "on_out_of_range": "clip"}
    mechanism = make("central-gaussian", dimension=300, **settings)
    rows = (np.random.default_rng(1).standard_normal((131, 300)) * scale).astype(np.float32)
    rows[5] *= np.float32(0.01)  # some rows are inside where others are not
    stream = Stream(1).clients(np.arange(131, dtype=np.uint32))
    counts, clipped = [], []
    for adds in (False, True):
        randomizer = Randomizer(mechanism)
        sent = randomizer.send(rows, mechanism.admit(rows, stream.ids), stream, adds=adds)
        assert isinstance(sent.payload, Admitted) == adds
        counts.append(mechanism.fold(mechanism.zero(), np.zeros(131, np.int64), sent.payload))
        clipped.append((randomizer.clipped.rows, randomizer.clipped.cut.tolist()))
    assert (counts[0] == counts[1]).all() and counts[0][-1] == 131
    assert clipped[0] == clipped[1]


@pytest.mark.parametrize("name,more", [("rinf", {}), ("linf", {"blocks": "balanced"})])
@pytest.mark.parametrize("how", ["clamp", "radial"])
def test_coordinates_picked_of_single_floats_are_sent_as_those_of_doubles(name, more, how):
    given = {"epsilon_local": 2.0, "radius": 0.3, "on_out_of_range": "clip", "clip": how}
    mechanism = make(name, dimension=10, **given, **more)
    rows = np.random.default_rng(2).standard_normal((3000, 10)).astype(np.float32)
    stream = Stream(1).clients(np.arange(3000, dtype=np.uint32))
    sent = mechanism.messages_of(mechanism.admit(rows, stream.ids), stream).payload
    wide = mechanism.messages(mechanism.admit(rows, stream.ids).values, stream).payload
    assert mechanism.wire.picks and sent.tobytes() == wide.tobytes()
    other = mechanism.messages(np.zeros((3000, 10)), stream).payload
    assert sent.tobytes() != other.tobytes()


def test_what_was_clipped_is_counted_without_copies_of_the_block():
    """Blocks that are looked at and not copied are large."""
    mechanism = make("rinf", epsilon_local=2.0, dimension=64, radius=0.3, on_out_of_range="clip")
    rows = np.random.default_rng(2).standard_normal((40_000, 64))
    stream = Stream(1).clients(np.arange(40_000, dtype=np.uint32))
    admitted = mechanism.admit(rows, stream.ids)
    whole = exact_sum(rows - admitted.values, unit(0.3))
    tracemalloc.start()
    try:
        randomizer = Randomizer(mechanism)
        randomizer.send(rows, admitted, stream)
        assert tracemalloc.get_traced_memory()[1] < rows.nbytes / 4
    finally:
        tracemalloc.stop()
    assert randomizer.clipped.rows == 40_000
    np.testing.assert_array_equal(randomizer.clipped.cut, whole)
