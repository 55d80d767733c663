"""How long work takes: quantiles, least and typical durations."""

import numpy as np
import pytest
from scipy.stats import kstest, lognorm, pareto

from raydp_sim.population.latency import LATENCY
from raydp_sim.population.latency.constant import Constant
from raydp_sim.population.latency.lognormal import Lognormal
from raydp_sim.population.latency.pareto import Pareto
from raydp_sim.random import Stream

ASK = Stream(5).at("ask", 3)
CASES = {
    "lognormal": (Lognormal(median=4.0, sigma=0.7), lognorm(s=0.7, scale=4.0)),
    "pareto": (Pareto(minimum=2.0, shape=1.1), pareto(b=1.1, scale=2.0)),
}


def test_every_latency_is_tested():
    assert sorted(LATENCY.kinds) == ["constant", *sorted(CASES)]


@pytest.mark.parametrize("kind", CASES)
def test_durations_follow_their_law(kind):
    """Kolmogorov-Smirnov over 50,000 clients; false alarm 1e-6."""
    model, law = CASES[kind]
    drawn = model.durations(ASK.clients(np.arange(50_000)))
    assert drawn.shape == (50_000,) and np.isfinite(drawn).all()
    assert kstest(drawn, law.cdf).pvalue > 1e-6
    assert model.typical() == pytest.approx(law.ppf(0.5), rel=1e-12)
    assert model.least() == pytest.approx(law.ppf(0.0), abs=1e-12) and drawn.min() >= model.least()
    assert not model.instant


@pytest.mark.parametrize("kind", CASES)
def test_a_duration_depends_on_its_client_and_its_ask_only(kind):
    model, _ = CASES[kind]
    whole = model.durations(ASK.clients(np.arange(1000)))
    assert np.array_equal(model.durations(ASK.clients(np.array([9, 3]))), whole[[9, 3]])
    other = model.durations(Stream(5).at("ask", 4).clients(np.arange(1000)))
    # Independent between asks: the rank correlation of 1000 pairs has error 0.032.
    ranks = [values.argsort().argsort() for values in (whole, other)]
    assert abs(np.corrcoef(*ranks)[0, 1]) < 0.18


def test_the_heaviest_tail_stays_finite():
    drawn = Pareto(minimum=1e12, shape=0.1).durations(ASK.clients(np.arange(200_000)))
    assert np.isfinite(drawn).all() and drawn.max() > 1e50


def test_constant_is_constant_and_instant_at_zero():
    assert Constant().instant and Constant().least() == Constant().typical() == 0.0
    assert not Constant(seconds=2.0).instant
    assert Constant(seconds=2.0).durations(ASK.clients(np.arange(3))).tolist() == [2.0] * 3
    assert Lognormal(median=3.0, sigma=0.0).least() == 3.0
