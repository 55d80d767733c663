"""Pieces remember what follows from their fields, and copies with other fields do not."""

import copy
import pickle

import numpy as np

from raydp_sim.mechanisms import make
from raydp_sim.models.torch_module import TorchModule
from raydp_sim.random import Stream


def met(**fields):
    """Return a mechanism that has worked out what it remembers."""
    given = {"epsilon_local": 2.0, "dimension": 4, "radius": 1.0, "on_out_of_range": "clip"}
    mechanism = make("rinf", **(given | fields))
    sent(mechanism)
    return mechanism


def sent(mechanism):
    rows = np.random.default_rng(1).standard_normal((2000, mechanism.dimension))
    stream = Stream(1).clients(np.arange(2000))
    messages = mechanism.messages_of(mechanism.admit(rows, stream.ids), stream)
    return messages.payload.tobytes()


def test_a_copy_with_other_fields_randomizes_and_costs_as_if_it_were_made_with_them():
    """Else a copy with a smaller epsilon sends what has the larger loss."""
    for changed in ({"radius": 0.25}, {"epsilon_local": 0.5}, {"dimension": 7, "radius": 3.0}):
        copied, anew = met().model_copy(update=changed), met(**changed)
        assert (copied.domain, copied.wire) == (anew.domain, anew.wire)
        assert sent(copied) == sent(anew) and copied.event() == anew.event()
        assert copied == anew


def test_a_model_with_other_fields_is_known_by_them():
    model = TorchModule(module="torch.nn:Linear", arguments={"in_features": 5})
    assert "torch.nn:Linear" in model.written
    assert "nets:Own" in model.model_copy(update={"module": "nets:Own"}).written


def test_what_is_remembered_may_travel_and_is_no_part_of_what_a_piece_is():
    mechanism = met()
    fresh = make("rinf", **mechanism.model_dump(exclude_none=True))
    for again in (pickle.loads(pickle.dumps(mechanism)), copy.deepcopy(mechanism)):
        assert again == fresh == mechanism and hash(again) == hash(fresh)
        assert sent(again) == sent(fresh)
    assert mechanism.model_copy().wire is mechanism.wire
