"""Categories whose distribution drifts."""

import numpy as np
import pytest
from pydantic import ValidationError

from raydp_sim.datasets.drifting import Drifting
from raydp_sim.random import Stream

DATA = Drifting(samples=5, first=[8, 1, 1], last=[0, 2, 8])


def test_shares_go_from_first_to_last_in_equal_steps():
    shares = np.array([DATA.shares(sample) for sample in range(5)])
    assert shares[0].tolist() == [0.8, 0.1, 0.1] and shares[-1].tolist() == [0.0, 0.2, 0.8]
    assert np.allclose(np.diff(shares, axis=0), np.diff(shares, axis=0)[0])


def test_samples_are_drawn_with_these_shares_and_by_client():
    ids = np.arange(20_000, dtype=np.uint32)
    values = DATA.values(ids, Stream(1))
    for sample in range(5):
        found = np.bincount(values[:, sample].astype(int), minlength=3) / len(ids)
        # Hoeffding: off by 0.03 with probability below 2 exp(-36) for each of 15 shares.
        assert np.abs(found - DATA.shares(sample)).max() < 0.03
    assert (values[:, -1] > 0).all()
    assert np.array_equal(DATA.values(ids[70:90], Stream(1)), values[70:90])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"last": [1, 1]}, "first has 3 shares and last 2"),
        ({"first": [0, 0, 0]}, "first adds up to 0"),
    ],
)
def test_shares_that_do_not_fit_are_refused(change, said):
    with pytest.raises(ValidationError, match=said):
        Drifting(**({"samples": 5, "first": [8, 1, 1], "last": [0, 2, 8]} | change))
