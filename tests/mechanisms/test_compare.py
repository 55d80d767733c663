"""The catalogue of mechanisms: every kind is there, with numbers or a reason."""

import json
import math
from itertools import pairwise

import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import MECHANISMS, make
from raydp_sim.mechanisms.compare import Budget, built_with, catalogue

BUDGET = Budget(4, 1000, 1.0)


def test_every_kind_is_listed_with_numbers_or_a_reason() -> None:
    found = catalogue(BUDGET, shuffle=False)
    compared = {kind for kind, cls in MECHANISMS.kinds.items() if cls.compared}
    assert {entry.kind for entry in found} == compared
    for entry in found:
        assert (entry.own.mse is None) == bool(entry.own.why), entry.kind
        if entry.own.mse is not None:
            assert entry.domain and entry.source and entry.own.bits
            assert 0.0 < entry.own.mse < math.inf
            assert entry.own.mse_is in ("exact", "bound")
        if entry.trust == "local" and entry.own.mse is not None and entry.guarantee != "none":
            assert entry.own.epsilon_local == 1.0, "all at the same privacy"


def test_each_domain_is_together_and_sorted_by_error() -> None:
    found = catalogue(Budget(16, 1000, 2.0), shuffle=False)
    domains = [entry.domain for entry in found]
    assert len(list(dict.fromkeys(domains))) == sum(a != b for a, b in pairwise(domains)) + 1
    for before, after in pairwise(found):
        alike = (before.trust, before.guarantee == "none") == (
            after.trust,
            after.guarantee == "none",
        )
        if before.domain == after.domain and alike:
            assert (before.own.mse or math.inf) <= (after.own.mse or math.inf)


def test_the_error_is_that_of_the_mechanism() -> None:
    (entry,) = catalogue(BUDGET, ["laplace"], shuffle=False)
    assert entry.own.mse == pytest.approx(2.0 * 4 * 2.0**2 / 1000)
    assert (entry.domain, entry.dimension, entry.own.bits) == ("l1 ball", 4, 256)
    assert entry.unbiased


def test_of_one_number_every_ball_is_the_same_domain() -> None:
    found = catalogue(Budget(1, 1000, 1.0), ["laplace", "linf", "gaussian"], shuffle=False)
    assert {entry.domain for entry in found} == {"scalar"}


def test_behind_a_shuffler_the_error_falls() -> None:
    for entry in catalogue(BUDGET, ["2rr", "laplace", "linf", "rbin"]):
        assert entry.shuffled is not None and entry.shuffled.mse is not None
        assert entry.shuffled.mse < 0.3 * (entry.own.mse or 0.0)
        assert (entry.shuffled.epsilon_local or 0.0) > 1.0
        assert entry.shuffled.bound.startswith("pld-")


def test_central_noise_has_no_shuffle_and_no_local_guarantee() -> None:
    (entry,) = catalogue(BUDGET, ["central-gaussian"])
    assert entry.trust == "central" and entry.own.epsilon_local is None
    assert entry.shuffled is not None and "aggregator" in entry.shuffled.why


def test_a_document_has_the_promised_fields() -> None:
    for entry in catalogue(BUDGET, ["2rr", "central-laplace"]):
        made = json.loads(json.dumps(entry.document()))
        promised = "kind domain bits epsilon_local mse mse_is unbiased source shuffle"
        assert set(promised.split()) <= set(made)


def test_a_kind_that_cannot_be_built_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = MECHANISMS.kinds["linf"]
    with pytest.raises(InputError, match="coordinates"):
        built_with(cls, BUDGET, coordinates=50)
    monkeypatch.setattr(cls, "examples", ({"radius": 1.0},))
    (entry,) = catalogue(Budget(4, 1000, 1.0), ["linf"], shuffle=False)
    assert entry.own.mse is not None


def test_only_what_clips_is_biased() -> None:
    biased = {entry.kind: entry.bias for entry in catalogue(BUDGET, shuffle=False) if entry.bias}
    assert sorted(biased) == ["l2", "sqkr"] and "clipped" in biased["l2"]
    cls = MECHANISMS.kinds["l2"]
    assert built_with(cls, BUDGET, rotation="kashin").bias == biased["sqkr"]
    near = {"epsilon_local": 1.0, "dimension": 1, "radius": 2.0}
    assert make("projected-mean", **near).bias == ""
    assert "clipped" in make("projected-mean", **near, reach=1.0).bias
    assert "clipped" in make("projected-mean", **near, centre=0.5).bias


def test_a_kind_whose_coordinates_mean_something_else_is_calibrated_all_the_same() -> None:
    """'sqkr' sends as many as its privacy allows, so the recommended number is not for it."""
    (entry,) = catalogue(Budget(40, 1000, 1.0), ["sqkr"])
    assert entry.shuffled is not None and entry.shuffled.mse is not None
    assert entry.shuffled.mse < (entry.own.mse or 0.0)


def test_enough_messages_and_levels_for_a_shuffler() -> None:
    assert (BUDGET.messages, BUDGET.levels) == (4, 4)
    small = Budget(1000, 90, 0.1)
    assert (small.messages, small.levels) == (1, 1)


def test_the_reason_is_not_that_another_dimension_was_tried_first() -> None:
    """'split-and-mix' takes one number and no such epsilon: the latter is why."""
    (entry,) = catalogue(Budget(5, 100, 20.0), ["split-and-mix"], shuffle=False)
    assert entry.own.why and "dimension" not in entry.own.why
