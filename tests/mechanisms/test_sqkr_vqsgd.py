"""SQKR by enumeration of its whole report, and vqSGD's exact loss on the ball."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from raydp_sim.mechanisms import make

from .support import ALPHA, SERVER, exact_moments, folded, inputs, losses, reports


def every_report(mechanism):
    """All pairs of a set of coordinates and its signs, as payloads."""
    full, count = mechanism.wire.full, mechanism.wire.count
    return [
        np.array([[[2 * c + s for c, s in zip(chosen, signs, strict=True)]]])
        for chosen in itertools.combinations(range(full), count)
        for signs in itertools.product((0, 1), repeat=count)
    ]


def law_of_sqkr(mechanism, values):
    """Probabilities of `every_report`: the definition, on sets instead of the sampled order."""
    full, count = mechanism.wire.full, mechanism.wire.count
    a = np.clip(mechanism.frame.rotate(values), -mechanism.bound, mechanism.bound)
    up = (a / mechanism.bound + 1.0) / 2.0
    law = []
    for report in every_report(mechanism):
        chosen, signs = np.divmod(report.ravel(), 2)
        told = np.where(signs == 1, up[:, chosen], 1.0 - up[:, chosen]).prod(axis=1)
        law.append((1.0 - mechanism.lie) * told + mechanism.lie / 2**count)
    return np.stack(law, axis=1) / math.comb(full, count)


SQKR = [
    {"epsilon_local": 0.3, "dimension": 1},
    {"epsilon_local": 1.0, "dimension": 3},
    {"epsilon_local": 2.0, "dimension": 3},
    {"epsilon_local": 6.0, "dimension": 4, "coordinates": 3},
    {"epsilon_local": 2.5, "dimension": 4, "level": 0.8},
]


@pytest.mark.parametrize("parameters", SQKR)
def test_sqkr_is_unbiased_private_and_errs_as_stated(parameters):
    mechanism = make("sqkr", radius=2.0, **parameters)
    values = inputs(mechanism.domain)
    law = law_of_sqkr(mechanism, values)
    assert law.sum(axis=1) == pytest.approx(1.0)
    decoded = np.array(
        [mechanism.decode(folded(mechanism, r), SERVER) for r in every_report(mechanism)]
    )
    mean = law @ decoded
    biased = "level" in parameters
    assert (
        (np.abs(mean - values).max() > 1e-3) if biased else mean == pytest.approx(values, abs=1e-9)
    )
    error = (law * ((decoded[None] - values[:, None]) ** 2).sum(axis=2)).sum(axis=1)
    assert error == pytest.approx(mechanism.mse(values), rel=1e-9)
    if not biased:
        assert error.max() <= mechanism.worst_mse() * (1 + 1e-12)
        if mechanism.worst_mse_is == "exact":
            assert error[0] == pytest.approx(mechanism.worst_mse(), rel=1e-12)
    assert losses([law]).max() <= mechanism.event().epsilon <= parameters["epsilon_local"]
    # A level that cuts lets inputs reach all signs: then the loss is attained.
    if biased:
        assert losses([law]).max() > 0.5 * mechanism.event().epsilon
    # The second moment of the coefficients before F, as published.
    n, k = mechanism.wire.full, mechanism.wire.count
    growth = math.exp(parameters["epsilon_local"])
    c = (growth + 2**k - 1) / (growth - 1)
    assert 1.0 / (1.0 - mechanism.lie) == pytest.approx(c, rel=1e-9)
    moment = k * (mechanism.bound * c * n / k) ** 2
    assert moment == pytest.approx(n**2 * mechanism.bound**2 * c**2 / k)
    assert mechanism.mse(np.zeros((1, mechanism.dimension)))[0] == pytest.approx(
        moment * mechanism.dimension / n
    )


@pytest.mark.parametrize("parameters", SQKR[2:])
def test_sqkr_reports_follow_their_law(parameters):
    """Chi-square of 60,000 reports of one value: false alarm 1e-8."""
    mechanism = make("sqkr", radius=2.0, **parameters)
    value = inputs(mechanism.domain)[-3:-2]
    sent = np.sort(reports(mechanism, np.repeat(value, 60_000, axis=0))[:, 0].astype(int), axis=1)
    assert (np.diff(sent // 2, axis=1) > 0).all()
    base = 2 * mechanism.wire.full
    weight = base ** np.arange(mechanism.wire.count)
    codes = [int((np.sort(report.ravel()) * weight).sum()) for report in every_report(mechanism)]
    seen = np.bincount((sent * weight).sum(axis=1), minlength=max(codes) + 1)
    assert seen.sum() == seen[codes].sum()
    expected = law_of_sqkr(mechanism, value)[0] * 60_000
    assert stats.chisquare(seen[codes], expected).pvalue > ALPHA


def test_sqkr_carries_its_coordinates():
    for epsilon, signs in ((0.5, 1), (1.0, 1), (4.0, 4), (7.5, 8)):
        mechanism = make("sqkr", epsilon_local=epsilon, dimension=1000, radius=1.0)
        assert mechanism.bits == signs * (11 + 1)
    assert make("sqkr", epsilon_local=9.0, dimension=1, radius=1.0).wire.count == 2
    assert make("sqkr", epsilon_local=500.0, dimension=64, radius=1.0).wire.count == 24


def test_one_sign_is_a_message_of_rbin_and_more_are_a_response_over_all_signs():
    one, more = (
        make("sqkr", epsilon_local=2.0, dimension=4, radius=1.0, coordinates=k) for k in (1, 2)
    )
    assert (one.randomizer(), one.alphabet()) == ("rbin", 16)
    assert (more.randomizer(), more.alphabet()) == ("krr", 4)
    # Every symbol has the blanket's probability or e^epsilon times that, one of four the latter.
    ratios = law_of_sqkr(more, inputs(more.domain)) * math.comb(8, 2) * (math.exp(2.0) + 3.0)
    assert ratios.min() >= 1.0 - 1e-9 and ratios.max() <= math.exp(2.0) * (1 + 1e-9)
    # Every symbol has at least the blanket's probability, 1/(a (e^epsilon + 1)).
    law = law_of_sqkr(one, inputs(one.domain))
    assert law.min() >= 1.0 / (8 * (math.exp(2.0) + 1.0)) * (1 - 1e-9)


def test_sqkr_refuses_what_cannot_be_told():
    with pytest.raises(ValueError, match="never be sent as they are"):
        make("sqkr", epsilon_local=1e-9, dimension=64, radius=1.0, coordinates=24)
    with pytest.raises(ValueError, match="coordinates is 9"):
        make("sqkr", epsilon_local=1.0, dimension=3, radius=1.0, coordinates=9)
    assert make("sqkr", epsilon_local=26.0, dimension=3, radius=1.0).event().epsilon == math.inf


@pytest.mark.parametrize("d", [1, 2, 5, 100])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_published_error_and_bits_of_vqsgd(d, epsilon):
    mechanism = make("vqsgd", epsilon_local=epsilon, dimension=d, radius=3.0)
    c = (math.exp(epsilon) + 2 * d - 1) / (math.exp(epsilon) - 1)
    x = inputs(mechanism.domain)
    assert mechanism.mse(x) == pytest.approx(9.0 * d * c**2 - (x**2).sum(axis=1), rel=1e-9)
    assert mechanism.bits == max(1, math.ceil(math.log2(2 * d)))
    mean, variance = exact_moments(mechanism, x)
    assert mean == pytest.approx(x, abs=1e-8)
    assert variance == pytest.approx(mechanism.mse(x), rel=1e-9)


@pytest.mark.parametrize("calibration", ["seed", "tight"])
def test_the_loss_of_vqsgd_is_the_largest_over_the_whole_disc(calibration):
    mechanism = make("vqsgd", epsilon_local=3.0, dimension=2, radius=1.0, calibration=calibration)
    angle, size = np.meshgrid(np.linspace(0, 2 * np.pi, 73), [0.0, 0.3, 0.7, 1.0])
    disc = np.stack([size * np.cos(angle), size * np.sin(angle)], axis=-1).reshape(-1, 2)
    loss = losses(mechanism.laws(disc)).max()
    assert loss <= mechanism.event().epsilon
    assert loss == pytest.approx(mechanism.event().epsilon, abs=1e-9)
    # As published the response alone has the whole loss, which no two vectors of the ball attain:
    # a corner has at most the probability 3 sqrt(2)/8 + 1/4.
    most = math.log1p((3 * math.sqrt(2) / 8 + 0.25) * math.expm1(3.0))
    assert most < 2.77
    assert loss == pytest.approx(most if calibration == "seed" else 3.0, abs=1e-9)


def test_tight_calibration_drops_the_error_of_vqsgd_by_its_dimension():
    settings = {"epsilon_local": 0.1, "dimension": 1000, "radius": 1.0}
    seed, tight = (make("vqsgd", calibration=c, **settings) for c in ("seed", "tight"))
    assert seed.worst_mse() / tight.worst_mse() == pytest.approx(1000, rel=0.05)
    line = {"epsilon_local": 1.0, "dimension": 1, "radius": 1.0}
    assert make("vqsgd", **line).event() == make("vqsgd", calibration="tight", **line).event()


def test_vqsgd_names_its_law_with_the_loss_on_the_ball():
    settings = {"epsilon_local": 1.0, "dimension": 5, "radius": 1.0}
    seed, tight = (make("vqsgd", calibration=c, **settings) for c in ("seed", "tight"))
    for one in (seed, tight):
        assert (one.randomizer(), one.alphabet()) == ("vqsgd", 10)
        assert one.losses() == (one.event().epsilon,)
    assert seed.losses()[0] < 0.7 < tight.losses()[0] == 1.0


def test_vqsgd_never_draws_a_corner_of_a_zero_coordinate():
    """With almost all mass on own corners, 1000 reports hold hardly any other."""
    mechanism = make("vqsgd", epsilon_local=30.0, dimension=4, radius=1.0)
    sent = reports(mechanism, np.tile([0.5, 0.0, -0.5, 0.0], (1000, 1)) * math.sqrt(2))[:, 0]
    own = mechanism.laws(np.array([[0.5, 0.0, -0.5, 0.0]]) * math.sqrt(2))[0][0]
    others = np.isin(sent, (1, 2, 3, 4, 6, 7)).sum()
    share = own[[1, 2, 3, 4, 6, 7]].sum()
    assert stats.binomtest(int(others), 1000, share).pvalue > ALPHA
    assert mechanism.event().epsilon == math.inf
