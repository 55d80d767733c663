"""Events refuse what cannot have happened, and survive the ledger's file."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from raydp_sim.privacy import events as ev

GOOD = [
    ev.Shuffle(1.0, 10, "rr2", 2),
    ev.SubsampledShuffle(1.0, 10, 5),
    ev.SelfSampledShuffle(1.0, 10, 0.5),
    ev.MultiMessageShuffle((1.0, 0.5), 10),
    ev.SubsampledMultiMessage((1.0, 0.5), 10, 5, "rbin"),
    ev.CldpRound(1.0, 10, 4, 5, 2),
    ev.GaussianRelease(1.0),
    ev.SubsampledGaussian(1.0, 0.1),
    ev.SubsampledGaussianRelease(1.0, 10, 5, 3, 2, unit="item"),
    ev.SelfSampledGaussianRelease(1.0, 10, 0.5),
    ev.LaplaceRelease(1.0),
    ev.ShuffledRelease(1.0, 1e-8, 10),
    ev.EnsembleRelease(1.0, 1e-8, "disjoint", "fixed"),
]


@pytest.mark.parametrize("event", GOOD, ids=lambda e: type(e).__name__)
def test_events_are_hashable_and_come_back_from_json(event):
    assert type(event)(**json.loads(json.dumps(asdict(event)))) == event
    assert len({event, event}) == 1


def test_numpy_numbers_become_plain_ones():
    event = ev.Shuffle(np.float64(1.0), np.int64(5))
    assert event == ev.Shuffle(1.0, 5) and json.dumps(asdict(event))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        *((lambda x=x: ev.Shuffle(x, 10), "epsilon0") for x in (-1.0, math.nan, math.inf, "1")),
        *((lambda x=x: ev.Shuffle(1.0, x), "n") for x in (0, -3, 2.5, 10.0, True, None)),
        *((lambda x=x: ev.SubsampledShuffle(1.0, 10, x), "sampled") for x in (0, 11, 2.5)),
        *(
            (lambda x=x: ev.SelfSampledShuffle(1.0, 10, x), "probability")
            for x in (0.0, -0.1, 1.1, math.nan)
        ),
        (lambda: ev.Shuffle(1.0, 10, "rr", 0), "alphabet"),
        (lambda: ev.MultiMessageShuffle((), 10), "losses"),
        (lambda: ev.MultiMessageShuffle((1.0, -1.0), 10), "losses"),
        (lambda: ev.CldpRound(1.0, 10, 4, 11, 2), "sampled_clients"),
        (lambda: ev.CldpRound(1.0, 10, 4, 5, 5), "sampled_points"),
        (lambda: ev.GaussianRelease(0.0), "noise_multiplier"),
        (lambda: ev.SubsampledGaussian(1.0, 0.0), "rate"),
        (lambda: ev.SubsampledGaussianRelease(0.0, 10, 5), "noise_multiplier"),
        (lambda: ev.SubsampledGaussianRelease(1.0, 10, 11), "sampled"),
        (lambda: ev.SubsampledGaussianRelease(1.0, 10, 5, 2, 3), "sampled_points"),
        (lambda: ev.SelfSampledGaussianRelease(1.0, 10, 0.0), "probability"),
        (lambda: ev.LaplaceRelease(-1.0), "epsilon"),
        (lambda: ev.ShuffledRelease(1.0, -1e-9, 10), "delta"),
        (lambda: ev.ShuffledRelease(1.0, 1e-9, 0), "n"),
        (lambda: ev.EnsembleRelease(-1.0), "epsilon"),
        (lambda: ev.EnsembleRelease(1.0, -1e-9), "delta"),
    ],
)
def test_bad_values_are_named(make, field):
    with pytest.raises(ValueError, match=f"^{field} is "):
        make()
