"""Standard errors: what a mechanism says of each coordinate is what its total error says."""

import numpy as np
import pytest
from scipy import stats

from raydp_sim.mechanisms import MECHANISMS, make
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.random import Stream

MEANS = {kind: cls for kind, cls in MECHANISMS.kinds.items() if cls.tells == "mean"}
CASES = [(kind, n) for kind, cls in MEANS.items() for n in range(len(cls.examples))]
EXACT = {"krr", "rappor", "hadamard-bit", "hadamard-response", "2rr", "rbin"}
EXACT |= {"laplace", "gaussian", "central-laplace", "central-gaussian"}


def values_of(mechanism: Mechanism, clients: int) -> np.ndarray:
    domain, draw = mechanism.domain, np.random.default_rng(3)
    if domain.norm == "category":
        return draw.integers(0, domain.choices, (clients, domain.width)).astype(float)
    if domain.norm == "binary":
        return draw.integers(0, 2, (clients, domain.dimension)).astype(float)
    return domain.admit(draw.normal(0.2, 0.4, (clients, domain.dimension)), None, "clip", "radial")


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_the_variances_add_up_to_the_error_or_more(kind: str, number: int) -> None:
    mechanism = make(kind, **MECHANISMS.kinds[kind].examples[number])
    values = values_of(mechanism, 50)
    mean = mechanism.domain.embed(values).mean(axis=0)
    found = mechanism.variance(mean, len(values))
    assert found.shape == mean.shape and (found >= 0.0).all()
    error = float(mechanism.mse(values).sum()) / len(values) ** 2
    if kind in EXACT:
        assert found.sum() == pytest.approx(error, rel=1e-9)
    else:
        assert found.sum() >= error * (1.0 - 1e-9)


@pytest.mark.parametrize("kind", ["krr", "hadamard-bit", "hadamard-response", "rappor"])
def test_each_category_has_its_own_variance(kind: str) -> None:
    """Squares of 1500 standardised errors per category: chi-squared, or nearly, being means of 400.

    Each of 4 x 5 sums leaves the central interval with probability 1e-8, so a false alarm has 2e-7.
    """
    mechanism = make(kind, epsilon_local=3.0, categories=5)
    clients, times = 400, 1500
    values = np.repeat([0.0, 1.0, 2.0, 3.0], [280, 80, 30, 10])[:, None]
    share = mechanism.domain.embed(values).mean(axis=0)
    squares = np.zeros(5)
    for time in range(times):
        stream = Stream(8).at(kind, time)
        sent = mechanism.randomize(values, stream.clients(np.arange(clients, dtype=np.uint32)))
        counts = mechanism.fold(mechanism.zero(), np.zeros(clients, int), sent.payload[:, 0])
        squares += (mechanism.decode(counts, stream) - share) ** 2
    standardised = squares / mechanism.variance(share, clients)
    low, high = stats.chi2.interval(1.0 - 1e-8, times)
    assert ((low < standardised) & (standardised < high)).all(), standardised / times


def test_shares_of_delta_never_add_up_to_more_than_the_target() -> None:
    for rounds in range(1, 200):
        target = {"epsilon": 1.0, "delta": 1e-5}
        mechanism = make("central-gaussian", target=target, dimension=1, radius=1.0)
        assert mechanism.calibrated(rounds).need_delta() * rounds <= 1e-5
