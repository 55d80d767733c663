"""R_1, R_inf, Quan, R_2 and R_p: published numbers, laws by enumeration, and errors in print."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.lower_bounds import bits_lower_bound, privacy_lower_bound
from raydp_sim.mechanisms.parts.quantiser import _search, balls, kappa, quantiser_mse
from raydp_sim.random import Stream

from .support import ALPHA, SERVER, exact_moments, folded, inputs, losses, reports

MODES = ("iid", "seed", "simq")


def scale(epsilon: float) -> float:
    """K = (e^epsilon + 1) / (e^epsilon - 1)."""
    return 1.0 / math.tanh(epsilon / 2)


# R_1 and R_inf.


@pytest.mark.parametrize(("kind", "dimension"), [("r1", 1), ("r1", 4), ("r1", 6), ("rinf", 3)])
def test_the_ratio_is_e_to_the_epsilon_at_every_index_and_sign(kind, dimension):
    """The published proofs bound a ratio of sums over the index; needed is the ratio of every
    single (index, sign), which is exactly e^epsilon between opposite corners."""
    mechanism = make(kind, epsilon_local=1.7, dimension=dimension, radius=2.0)
    corner = np.full(dimension, 2.0) if kind == "rinf" else 2.0 * np.eye(dimension)[0]
    law = mechanism.laws(np.array([corner, -corner]))[0]
    assert np.abs(np.log(law[0] / law[1])) == pytest.approx(1.7, abs=1e-9)
    values = inputs(mechanism.domain)
    assert losses(mechanism.laws(values)).max() <= mechanism.event().epsilon <= 1.7


@pytest.mark.parametrize("dimension", [3, 5, 8])
def test_r1_sends_the_padded_transform_but_errs_in_the_true_dimension(dimension):
    mechanism = make("r1", epsilon_local=1.0, dimension=dimension, radius=2.0)
    padded = 1 << math.ceil(math.log2(dimension))
    assert mechanism.bits == math.log2(padded) + 1
    assert mechanism.worst_mse() == pytest.approx(4 * dimension * scale(1.0) ** 2)
    values = inputs(mechanism.domain)
    mean, variance = exact_moments(mechanism, values)
    assert mean == pytest.approx(values, abs=1e-9)
    assert variance == pytest.approx(4 * dimension * scale(1.0) ** 2 - (values**2).sum(axis=1))


def test_a_printed_scale_of_r1_is_biased():
    """Girgis 2023, section 3.4, prints (e^epsilon + 1) / epsilon for (e^epsilon + 1) /
    (e^epsilon - 1)."""
    mechanism = make("r1", epsilon_local=2.0, dimension=4, radius=1.0)
    value = np.array([[0.5, -0.25, 0.0, 0.125]])
    mean, _ = exact_moments(mechanism, value)
    assert mean == pytest.approx(value, abs=1e-12)
    printed = (math.exp(2.0) + 1) / 2.0
    assert mean * printed / scale(2.0) == pytest.approx(value * math.expm1(2.0) / 2.0)
    assert math.expm1(2.0) / 2.0 > 3.0


def test_rinf_is_linf_with_one_coordinate_and_a_centred_decoder():
    shape = {"epsilon_local": 1.5, "dimension": 6, "radius": 2.0}
    mechanism = make("rinf", **shape)
    centred = make("linf", coordinates=1, decoder="centred", **shape)
    values = inputs(mechanism.domain)
    assert np.array_equal(reports(mechanism, values), reports(centred, values))
    assert mechanism.mse(values) == pytest.approx(centred.mse(values))
    counts = folded(mechanism, reports(mechanism, values))
    assert mechanism.decode(counts, SERVER) == pytest.approx(centred.decode(counts, SERVER))
    # The other decoder of 'linf' errs differently on the same messages.
    q, v = (values + 2.0) / 4.0, 2 * math.sinh(0.75)
    expected = 16 * (5 * q.sum(axis=1) + (q * (1 - q)).sum(axis=1) + 36 / v**2)
    assert make("linf", coordinates=1, **shape).mse(values) == pytest.approx(expected)


@pytest.mark.parametrize("dimension", [4, 16, 64, 256])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_theorems_5_to_7_bound_the_errors(dimension, epsilon):
    shape = {"epsilon_local": epsilon, "dimension": dimension, "radius": 3.0}
    square = 9 * scale(epsilon) ** 2
    assert make("r1", **shape).worst_mse() == pytest.approx(square * dimension)
    assert make("rinf", **shape).worst_mse() == pytest.approx(square * dimension**2)
    for mode in MODES:
        assert make("r2", quantiser=mode, **shape).worst_mse() <= 6 * square * dimension


# Quan.


def histogram_law(y: np.ndarray, size: float, mode: str) -> dict[tuple[int, ...], float]:
    """P(signed histogram | y), by going through all throws of d balls."""
    d, total = len(y), np.abs(y).sum()
    bins = np.abs(y) / total if total > 0 else np.full(d, 1 / d)
    t = total / (size * math.sqrt(d))
    sign = np.where(y < 0, -1, 1)
    if mode == "simq":
        coins, shared = {1: t, 0: 1 - t}, False
    else:
        coins, shared = {1: (1 + t) / 2, -1: (1 - t) / 2}, mode == "seed"
    law: dict[tuple[int, ...], float] = {}
    for places in itertools.product(range(d), repeat=d):
        where = math.prod(bins[place] for place in places)
        for tossed in itertools.product(coins, repeat=1 if shared else d):
            counts = [0] * d
            for place, coin in zip(places, tossed * d if shared else tossed, strict=True):
                counts[place] += coin * sign[place]
            chance = where * math.prod(coins[coin] for coin in tossed)
            law[tuple(counts)] = law.get(tuple(counts), 0.0) + chance
    return law


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_quan_by_enumeration(dimension, mode):
    """Mean and error are exact; reports pass a chi-square test, false alarm 1e-8 per value."""
    clients = 20_000
    mechanism = make("quan", dimension=dimension, radius=2.0, quantiser=mode)
    values = inputs(mechanism.domain)[[0, 1, -3, -1]]
    for number, value in enumerate(values):
        law = histogram_law(value, 2.0, mode)
        chances = np.array(list(law.values()))
        decoded = 2.0 / math.sqrt(dimension) * np.array(list(law))
        assert chances.sum() == pytest.approx(1.0)
        assert chances @ decoded == pytest.approx(value, abs=1e-12)
        error = chances @ ((decoded - value) ** 2).sum(axis=1)
        assert mechanism.mse(value[None])[0] == pytest.approx(error, abs=1e-12)
        payload = reports(mechanism, np.tile(value, (clients, 1)), first=clients * number)
        sent, seen = np.unique(payload[:, 0], axis=0, return_counts=True)
        counted = dict(zip(map(tuple, sent.tolist()), seen.tolist(), strict=True))
        assert all(law.get(report, 0.0) > 0.0 for report in counted)
        large = [report for report, chance in law.items() if chance * clients >= 20]
        observed = np.array([counted.get(report, 0) for report in large] + [0])
        expected = np.array([law[report] * clients for report in large] + [0.0])
        observed[-1], expected[-1] = clients - observed.sum(), clients - expected.sum()
        kept = expected >= 20
        statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
        if kept.sum() > 1:
            assert stats.chi2.sf(statistic, kept.sum() - 1) > ALPHA


def test_one_sign_for_all_balls_breaks_lemma_4():
    """Girgis et al. 2021, Algorithm 5 as printed errs by A^2 (d - 1) at A e_1, above the 2 A^2 of
    Lemma 4; with a sign per ball the error is at most A^2."""
    value = np.array([[2.0, 0.0, 0.0, 0.0]])
    seed = make("quan", dimension=4, radius=2.0, quantiser="seed")
    law = histogram_law(value[0], 2.0, "seed")
    error = sum(p * ((np.array(z) - value[0]) ** 2).sum() for z, p in law.items())
    assert seed.mse(value)[0] == pytest.approx(error) and error == pytest.approx(4.0 * 3)
    assert error > 2 * 2.0**2
    assert seed.mse(1e-6 * value)[0] == pytest.approx(4.0 * 4)
    assert seed.worst_mse() == 16.0 and seed.worst_mse_is == "bound"
    assert make("quan", dimension=4, radius=2.0).worst_mse() == 4.0


def test_quan_has_no_epsilon():
    mechanism = make("quan", dimension=2, radius=1.0)
    assert math.isinf(mechanism.event().epsilon)
    with pytest.raises(ValueError, match="adds no noise and has no epsilon; use 'r2'"):
        mechanism.need_epsilon()
    with pytest.raises(ValueError, match="adds no noise"):
        make("quan", dimension=2, radius=1.0, epsilon_local=1.0)


def test_published_errors_of_simq():
    values = np.array([[1.0, 0.0], [0.6, 0.8]])
    errors = make("quan", dimension=2, radius=1.0, quantiser="simq").mse(values)
    assert errors == pytest.approx([0.207107, 0.489949], abs=1e-6)
    assert (errors <= make("quan", dimension=2, radius=1.0).mse(values)).all()


def test_quan_throws_balls_only_where_the_vector_is_not_zero():
    value = np.zeros((500, 40))
    value[:, 7], value[:, 33] = -0.6, 1e-12
    counts = balls(value, 1.0, "simq", Stream(0).clients(np.arange(500)))
    assert (counts[:, 7] <= 0).all() and counts[:, 7].sum() < 0
    assert np.abs(np.delete(counts, 7, axis=1)).sum() == 0
    # Too small to be distinguished from zeros: still d balls in all.
    tiny = balls(np.full((50, 4), 1e-300), 1.0, "seed", Stream(0).clients(np.arange(50)))
    assert (np.abs(tiny).sum(axis=1) == 4).all()
    for mode in MODES:
        assert quantiser_mse(np.full((1, 4), 1e-300), 1.0, mode) == pytest.approx(
            quantiser_mse(np.zeros((1, 4)), 1.0, mode)
        )
    assert quantiser_mse(np.array([[1e-200, 0.0]]), 1.0, "seed") == pytest.approx(2.0)


def test_bins_are_found_as_by_a_plain_search():
    random = np.random.default_rng(3)
    for trial in range(150):
        n, d = int(random.integers(1, 6)), int(random.integers(1, 50))
        # Zeros, ties and masses of all sizes; many ends share one cell.
        masses = random.random((n, d)) ** random.integers(1, 40) * (random.random((n, d)) < 0.6)
        masses[:, trial % d] += 1e-3
        ends = np.cumsum(masses, axis=1)
        points = random.random((n, 9)) * ends[:, -1:]
        points[:, 0] = 0.0
        points[:, 1] = np.nextafter(ends[:, -1], 0.0)
        points[:, 2] = np.where(ends[:, d // 2] < ends[:, -1], ends[:, d // 2], 0.0)
        found = _search(ends, points).reshape(n, 9) - d * np.arange(n)[:, None]
        plain = [np.searchsorted(e, p, side="right") for e, p in zip(ends, points, strict=True)]
        assert np.array_equal(found, plain)


# R_2.


def test_published_errors_of_r2():
    value = np.array([[0.6, 0, 0, 0, 0, 0, 0, 0]])
    shape = {"epsilon_local": 1.0, "dimension": 8, "radius": 1.0}
    assert make("r2", **shape).mse(value)[0] == pytest.approx(103.305, abs=5e-4)
    assert make("r2", quantiser="seed", **shape).mse(value)[0] == pytest.approx(127.9, abs=0.05)
    assert 6 * 8 * scale(1.0) ** 2 == pytest.approx(224.8, abs=0.05)


@pytest.mark.parametrize(
    ("dimension", "value", "digits"),
    [(1, 0.0, 12), (2, 2 / math.pi, 12), (4, 1.075, 3), (16, 1.445, 3), (64, 1.540, 2)],
)
def test_published_values_of_kappa(dimension, value, digits):
    assert kappa(dimension) == pytest.approx(value, abs=0.51 * 10.0**-digits)
    assert kappa(dimension) <= math.pi / 2


def test_kappa_by_a_second_way():
    # Three dimensions, in spherical coordinates; and the limit.
    def density(t: float, f: float) -> float:
        size = math.sin(t) * (math.cos(f) + math.sin(f)) + math.cos(t)
        return math.sin(t) / size**2

    octant = integrate.dblquad(density, 0, math.pi / 2, 0, math.pi / 2)[0]
    assert kappa(3) == pytest.approx(2 * octant / (math.pi / 2), rel=1e-8)
    assert kappa(10**6) == pytest.approx(math.pi / 2, rel=2e-6)


@pytest.mark.parametrize("mode", MODES)
def test_r2_in_the_plane_by_quadrature(mode):
    """The law of every report from that of the direction: the mean, the error and the loss."""
    epsilon, points = 1.0, 2400
    mechanism = make("r2", epsilon_local=epsilon, dimension=2, radius=1.0, quantiser=mode)
    angles = (np.arange(points) + 0.5) * (2 * math.pi / points)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    given = [histogram_law(u, 1.0, mode) for u in around]
    every = sorted(set().union(*given))
    table = np.array([[law.get(report, 0.0) for report in every] for law in given])
    values = np.array([[1.0, 0], [-1, 0], [0, 1], [0.6, 0.8], [-0.6, -0.8], [0.6, -0.8], [0, 0]])
    flip = 1 / (math.exp(epsilon) + 1)
    length = np.sqrt((values**2).sum(axis=1, keepdims=True))
    right = flip + (1 - 2 * flip) * (0.5 + length / 2)
    direction = np.where(values @ around.T > 0, right, 1 - right) * (2 / points)
    law = direction @ table
    decoded = mechanism.length / math.sqrt(2) * np.array(every)
    assert law[:-1] @ decoded == pytest.approx(values[:-1], abs=5e-3)
    error = law @ (decoded**2).sum(axis=1) - (values**2).sum(axis=1)
    assert error[:-1] == pytest.approx(mechanism.mse(values[:-1]), rel=1e-3)
    loss = (np.log(law)[:-1, None] - np.log(law)[None, :-1]).max()
    assert 0.5 < loss <= mechanism.event().epsilon + 1e-9


@pytest.mark.parametrize("mode", MODES)
def test_r2_errs_as_priv_and_quan_together(mode):
    """Priv's error plus Quan's, averaged over 40,000 directions. Chance of a false alarm, by the
    normal limit: 1e-8."""
    d = 6
    mechanism = make("r2", epsilon_local=1.0, dimension=d, radius=1.0, quantiser=mode)
    around = np.random.default_rng(0).normal(size=(40_000, d))
    around /= np.sqrt((around**2).sum(axis=1, keepdims=True))
    quantised = quantiser_mse(around, 1.0, mode)
    stated = mechanism.worst_mse() / mechanism.length**2 - 1.0
    far = stats.norm.isf(ALPHA / 2) * quantised.std() / math.sqrt(len(around))
    assert abs(quantised.mean() - stated) < far + 1e-12 and far < 0.02


def test_one_sign_for_all_balls_is_harmless_inside_r2():
    for d in (2, 8, 100, 10_000):
        shape = {"epsilon_local": 1.0, "dimension": d, "radius": 1.0, "quantiser": "seed"}
        assert make("r2", **shape).worst_mse() <= 6 * d * scale(1.0) ** 2


def test_bits_of_r2_need_no_encoding():
    mechanism = make("r2", epsilon_local=1.0, dimension=1000, radius=1.0)
    assert mechanism.bits == 2749 and mechanism.wire.naive_bits == 11_000
    assert make("r2", epsilon_local=1.0, dimension=10**6, radius=1.0).bits == pytest.approx(
        3 * (math.log2(3) - 2 / 3) * 10**6, rel=1e-4
    )


# R_p.


def test_the_lp_ball_is_not_inside_the_l1_ball():
    """Girgis 2023, Remark 3.4.1, takes B_p for a subset of B_1; it needs the radius d^(1 - 1/p)."""
    x = np.array([[1.0, 1.0]]) / math.sqrt(2)
    make("rp", epsilon_local=1.0, dimension=2, radius=1.0, power=2.0).domain.admit(x)
    with pytest.raises(ValueError, match="outside the l1 ball"):
        make("r1", epsilon_local=1.0, dimension=2, radius=1.0).domain.admit(x)
    for power in (1.0, 1.5, 2.0, 3.0, 10.0):
        mechanism = make("rp", epsilon_local=1.0, dimension=5, radius=2.0, power=power)
        values = inputs(mechanism.domain)
        mechanism.first.domain.admit(values)
        mechanism.second.domain.admit(values)
        # Neither ball is larger than it must be.
        assert np.abs(values).sum(axis=1).max() == pytest.approx(mechanism.first.radius)
        assert np.sqrt((values**2).sum(axis=1)).max() == pytest.approx(mechanism.second.radius)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("mixture", [0.0, 0.3, 1.0])
def test_the_error_of_rp_is_the_mixture(power, mixture):
    d, a = 6, 2.0
    shape = {"epsilon_local": 1.0, "dimension": d, "radius": a}
    mechanism = make("rp", power=power, mixture=mixture, **shape)
    a1, a2 = a * d ** (1 - 1 / power), a * max(d ** (0.5 - 1 / power), 1)
    length = make("priv", epsilon_local=1.0, dimension=d, radius=a2).length
    moment = mixture * a1**2 * d * scale(1.0) ** 2 + (1 - mixture) * length**2 * (2 - 1 / d)
    values = inputs(mechanism.domain)
    assert mechanism.mse(values) == pytest.approx(moment - (values**2).sum(axis=1))
    bound = mixture * d ** (3 - 2 / power) + (1 - mixture) * 6 * max(d ** (2 - 2 / power), d)
    assert mechanism.worst_mse() <= a**2 * scale(1.0) ** 2 * bound * (1 + 1e-9)
    symbol, histogram = 3 + 1, make("r2", **shape).bits
    assert mechanism.expected_bits == 1 + mixture * symbol + (1 - mixture) * histogram
    assert mechanism.bits == 1 + (symbol if mixture == 1.0 else histogram)


def test_rp_ends_in_r1_and_r2():
    shape = {"epsilon_local": 1.0, "dimension": 6, "radius": 2.0}
    one, two = (make("rp", power=p, mixture=2.0 - p, **shape) for p in (1.0, 2.0))
    first, second = make("r1", **shape), make("r2", **shape)
    values = inputs(first.domain)
    sent = reports(one, values)
    assert np.array_equal(sent[:, 0, 0] - 1, reports(first, values)[:, 0])
    assert one.mse(values) == pytest.approx(first.mse(values))
    received = first.decode(folded(first, reports(first, values)), SERVER)
    assert one.decode(folded(one, sent), SERVER) == pytest.approx(received)
    values = inputs(second.domain)
    assert np.array_equal(reports(two, values)[:, :, 1:], reports(second, values))
    assert two.mse(values) == pytest.approx(second.mse(values))


def test_a_power_must_be_finite_and_at_least_one():
    for power in (0.5, math.inf, math.nan):
        with pytest.raises(ValueError, match="power"):
            make("rp", epsilon_local=1.0, dimension=2, radius=1.0, power=power)


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "priv"},
        *({"kind": "r2", "quantiser": mode} for mode in MODES),
        {"kind": "rp", "power": 2.0},
        {"kind": "r1"},
        {"kind": "rinf"},
    ],
)
@pytest.mark.parametrize("dimension", [3, 70])
def test_the_value_decides_on_nothing_but_one_sign(parameters, dimension):
    """With the same draws every value gives one of two reports, which differ in a sign: that is
    what lets these mechanisms be accounted for as R^Bin."""
    mechanism = make(**parameters, epsilon_local=1.0, dimension=dimension, radius=1.0)
    assert mechanism.randomizer() == "rbin"
    corner = np.zeros(dimension)
    corner[0] = 1.0
    values = [0.0 * corner, corner, -corner, corner[::-1], 0.3 * corner]
    sent = [reports(mechanism, np.tile(value, (300, 1))) for value in values]
    if sent[0].ndim == 2:
        assert all(np.array_equal(one // 2, sent[0] // 2) for one in sent)
        assert not np.array_equal(sent[1], sent[2])
        return
    if parameters["kind"] == "rp":
        symbols = [(one[:, 0, 0] + 1) // 2 for one in sent]
        assert all(np.array_equal(one, symbols[0]) for one in symbols)
        sent = [one[..., 1:] for one in sent]
    for one in sent[1:]:
        same, opposite = ((one == side * sent[0]).all(axis=(1, 2)) for side in (1, -1))
        assert (same | opposite).all() and 0 < same.sum() < 300


# Lower bounds.


def test_the_printed_bound_on_few_bits_is_false():
    """Girgis et al. 2021, Theorem 4, prints max(1, d^(1 - 2/p)). In the cube of d = 4 one bit, the
    sign of x_1, decoded to e_1 / 2 or its opposite, errs by at most 3.25 < 4."""
    grid = np.array(list(itertools.product(np.linspace(-1, 1, 9), repeat=4)))
    decoded = np.where(grid[:, :1] < 0, -0.5, 0.5) * np.eye(4)[0]
    worst = ((grid - decoded) ** 2).sum(axis=1).max()
    assert worst == pytest.approx(3.25)
    assert max(1.0, 4.0 ** (1 - 2 / math.inf)) > worst
    assert bits_lower_bound(math.inf, 4, 1) <= worst
    assert bits_lower_bound(1.0, 4, 1, radius=2.0) == pytest.approx(4 / 4)
    assert bits_lower_bound(1.0, 4, 2) == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("kind", "power"), [("r1", 1.0), ("r2", 2.0), ("rinf", math.inf)])
def test_mechanisms_err_at_most_a_constant_above_the_lower_bounds(kind, power, epsilon):
    n, d = 10**6, 64
    mechanism = make(kind, epsilon_local=epsilon, dimension=d, radius=2.0)
    least = privacy_lower_bound(power, d, n, epsilon, radius=2.0)
    assert 1.0 < mechanism.worst_mse() / n / least < 14 * (1 + epsilon) ** 2
    assert privacy_lower_bound(power, d, n, 9.0) == 0.0
    assert privacy_lower_bound(power, d, 1, 0.01, radius=2.0) == 4.0 * (64 if power > 2 else 1)


def test_bad_arguments_of_the_lower_bounds_are_refused():
    with pytest.raises(ValueError, match=r"power is 0\.5"):
        privacy_lower_bound(0.5, 4, 10, 1.0)
    with pytest.raises(ValueError, match="dimension is 0"):
        bits_lower_bound(2.0, 0, 1)
