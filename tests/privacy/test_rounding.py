"""What rounding may cost is charged: values near cancellation and underflow against 40 digits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from raydp_sim.privacy.bound import find_rdp, run_bounds
from raydp_sim.privacy.bounds.closed_forms import _phi, balle, fmt_closed
from raydp_sim.privacy.bounds.self_sampling_dwork import SelfSamplingDwork
from raydp_sim.privacy.composition.conversion import dp_to_delta
from raydp_sim.privacy.composition.rounds import self_sampled_round, self_sampled_tail
from raydp_sim.privacy.composition.theorems import kov_exact
from raydp_sim.privacy.curves.binomials import log_binomial, log_binomial_at, rounding
from raydp_sim.privacy.curves.blanket import _buckets
from raydp_sim.privacy.curves.collusion import among_honest
from raydp_sim.privacy.curves.gaussian import gaussian_delta, gaussian_sigma
from raydp_sim.privacy.curves.local import local_rdp
from raydp_sim.privacy.curves.mixed import fewest
from raydp_sim.privacy.curves.numerics import log1p_exp
from raydp_sim.privacy.curves.shares import log_distance
from raydp_sim.privacy.curves.variation import blanket_of
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import (
    CldpRound,
    LaplaceRelease,
    SelfSampledShuffle,
    Shuffle,
    SubsampledGaussian,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.privacy.ledger.divergences import Divergences
from raydp_sim.privacy.ledger.filter import ORDERS, Filter
from tests.privacy import extended as full

mp = mpmath.mpf


def test_binomial_probabilities_err_by_less_than_is_charged():
    """The order of one sum made the error 7e-9 at 10^8 trials once."""
    draw = np.random.default_rng(1)
    for _ in range(400):
        n = int(10 ** draw.uniform(0.0, 10.0))
        p = float(draw.choice([0.5, math.exp(-(10 ** draw.uniform(-6, 1.3)))]))
        sd = math.sqrt(n * p * (1.0 - p))
        k = int(np.clip(round(n * p + sd * draw.uniform(-30, 30)), 0, n))
        exact = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        exact += k * mpmath.log(mp(p)) + (n - k) * mpmath.log1p(-mp(p))
        for found in (float(log_binomial(n, p, np.array(float(k)))), log_binomial_at(n, p, k)):
            far = 1e-15 * (abs(k - n * p) + abs(float(exact)))
            assert abs(mp(found) - exact) <= min(0.5 * rounding(n) + far, 2e-9 + far)


def test_one_message_is_exact_to_the_last_digits():
    draw = np.random.default_rng(2)
    for _ in range(200):
        e, a = float(10 ** draw.uniform(-9, 1.4)), 1.0 + float(10 ** draw.uniform(-2, 5))
        stays, flips = 1 / (1 + mpmath.exp(-mp(e))), 1 / (1 + mpmath.exp(mp(e)))
        moment = stays ** mp(a) * flips ** (1 - mp(a)) + flips ** mp(a) * stays ** (1 - mp(a))
        exact = mpmath.log(moment) / (mp(a) - 1)
        assert float(exact) * (1 - 1e-15) <= local_rdp(e, a) <= min(e, float(exact) * (1 + 1e-14))


def test_the_mass_that_hides_keeps_its_digits():
    """1 - tanh(epsilon0/2) had none left at epsilon0 = 38."""
    for e in (1e-9, 0.5, 20.0, 38.0, 60.0):
        exact = 2 / (1 + mpmath.exp(mp(e)))
        assert blanket_of("2rr", e).mass == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize("name", ["krr", "hadamard", "laplace"])
def test_buckets_of_the_blanket_keep_mass_and_mean_from_above(name):
    draw = np.random.default_rng(3)
    for _ in range(12):
        e, m = float(10 ** draw.uniform(-3, 0.7)), int(10 ** draw.uniform(0, 3.3))
        blanket = blanket_of(name, e, None if name == "laplace" else int(draw.integers(3, 40)))
        share, p = 2.0 * blanket.share, math.exp(e)
        inside = blanket.mass * blanket.share * (p + 1.0)
        outside = blanket.mass * blanket.neutral * (1.0 - share)
        assert inside + outside == pytest.approx(1.0, rel=1e-14)
        low, end, log_all, mean = _buckets(m, share, inside, outside, 20)
        law = np.exp(full.log_pmf(m, share))
        first = np.concatenate([[0.0], law]) * np.longdouble(inside)
        other = np.concatenate([law, [0.0]]) * np.longdouble(1.0 - inside)
        for i in range(len(low)):
            part = slice(int(low[i]), int(end[i]))
            mass = (first[part] + other[part]).sum()
            if mass > 1e-300:
                assert mean[i] >= float(first[part].sum() / mass) * (1 - 1e-15)
                assert log_all[i] >= float(np.log(mass)) - 1e-9
            if mass > 1e-200:
                assert mean[i] <= float(first[part].sum() / mass) * (1 + 1e-6)
                assert log_all[i] <= float(np.log(mass)) + 1e-9


def test_gaussian_noise_errs_towards_privacy():
    draw = np.random.default_rng(4)

    def exact(epsilon, sigma):
        ratio = 1 / mp(sigma)
        a, b = ratio / 2 - mp(epsilon) / ratio, -ratio / 2 - mp(epsilon) / ratio
        return mpmath.ncdf(a) - mpmath.exp(mp(epsilon)) * mpmath.ncdf(b)

    with mpmath.workdps(60):
        for _ in range(120):
            epsilon, sigma = float(10 ** draw.uniform(-9, 2)), float(10 ** draw.uniform(-1, 6))
            found, true = gaussian_delta(epsilon, sigma), exact(epsilon, sigma)
            assert found >= true * (1 - mp("1e-15"))
            delta = float(10 ** draw.uniform(-30, -1))
            assert exact(epsilon, gaussian_sigma(epsilon, delta)) <= delta


def test_pure_composition_at_the_corner_that_once_gave_zero():
    """epsilon0 1e-6, one message, 10^10 rounds, delta 1e-3: exactly 0.1975."""
    exact = kov_exact(1e-6, 10**10, 1e-3)
    assert exact == pytest.approx(0.1975, abs=5e-5)
    for bound in run_bounds():
        if bound.status != "proved" or bound.name.startswith("pld") or Shuffle not in bound.events:
            continue
        try:
            found = bound.epsilon([(Shuffle(1e-6, 1), 10**10)], 1e-3).epsilon
        except (NotApplicable, Unsupported):
            continue
        assert exact * (1 - 1e-8) <= found < math.inf, bound.name


CORNERS = [
    pytest.param(event, marks=[pytest.mark.long] if e == 3.0 else [], id=str(event))
    for e in (1e-6, 0.1, 3.0, 20.0)
    for event in (
        *(Shuffle(e, n) for n in (1, 2, 10**9)),
        *(SubsampledShuffle(e, 10**9, k) for k in (1, 10**6)),
        SelfSampledShuffle(e, 10**6, 1e-3),
        CldpRound(e, 10**6, 10, 1000, 3),
        SubsampledMultiMessage((e, e / 2), 10**6, 1000),
        LaplaceRelease(e),
    )
] + [
    pytest.param(e, id=str(e))
    for e in (SubsampledGaussian(1e4, 1e-6), SubsampledGaussian(1e-2, 1.0))
]


@pytest.mark.parametrize("event", CORNERS)
def test_no_corner_gives_nothing_or_nonsense(event):
    """Warnings are errors, so nothing overflows; a divergence is never rounded down to 0."""
    for bound in run_bounds():
        if bound.status != "proved" or bound.name.startswith("pld"):
            continue
        if type(event) not in bound.events:
            continue
        for times, delta in ((1, 1e-300), (10**10, 1e-300), (10**10, 0.5)):
            try:
                found = bound.epsilon([(event, times)], delta).epsilon
            except (NotApplicable, Unsupported):
                continue
            assert 0.0 <= found < math.inf, (bound.name, times, delta)
            assert found > 0.0 or delta > 1e-300, (bound.name, times, delta)


def test_what_underflows_is_rounded_up():
    assert log1p_exp(-1e6) > 0.0 and log1p_exp(-math.inf) == 0.0
    assert dp_to_delta(0.5, 100.0, 1e5) > 0.0
    assert gaussian_delta(1000.0, 1.0) > 0.0


def test_the_delta_of_too_few_who_join_is_not_lost_in_a_difference():
    """2 e^(epsilon0 - qn/12) = 7e-37 was lost beside half the probability of joining."""
    event = SelfSampledShuffle(1.0, 1000, 0.99)
    tail = self_sampled_tail(event)
    assert tail == pytest.approx(2.0 * math.exp(1.0 - 82.5), rel=1e-12)
    with pytest.raises(NotApplicable, match="too few"):
        SelfSamplingDwork().epsilon([(event, 1)], 1e-36)
    assert SelfSamplingDwork().epsilon([(event, 1)], 1e-30).epsilon > 0.0
    assert self_sampled_round(event, 1e-40, lambda *_: 0.5)[1] >= tail


def test_the_geometric_mean_of_many_kinds_is_rounded_down():
    draw = np.random.default_rng(5)
    pairs = zip(draw.uniform(0.4, 0.6, 5000), [3, 7] * 2500, strict=True)
    coins = [(float(g), int(c)) for g, c in pairs]
    count, mean = fewest(coins)
    used = sorted(coins, reverse=True)
    total, logs = 0, mp(0)
    for g, number in used:
        if total + number > count:
            break
        total, logs = total + number, logs + number * mpmath.log(mp(g))
    assert total == count
    exact = mpmath.exp(logs / total)
    assert exact * (1 - mp("1e-10")) <= mean <= exact


def test_colluding_samples_are_rounded_towards_larger_rates():
    draw = np.random.default_rng(6)
    for _ in range(300):
        clients = int(10 ** draw.uniform(0.5, 12))
        event = SubsampledShuffle(1.0, clients, int(draw.integers(1, clients + 1)))
        times, delta = int(10 ** draw.uniform(0, 10)), float(10 ** draw.uniform(-300, -1))
        found, left = among_honest(event, float(draw.choice([0.5, 0.9, 0.3])), times, delta)
        honest = among_honest(Shuffle(1.0, clients), 0.5, 1, delta)[0].n
        assert left <= delta and 1 <= found.sampled <= found.clients <= clients and honest
    half = SubsampledShuffle(1.0, 10**12, 10**9)
    found, _ = among_honest(half, 0.5, 10**10, 1e-300)
    mean, log = Fraction(10**9, 2), mpmath.log(2 * 10**10 / mp("0.01") / mp("1e-300"))
    spread = mpmath.sqrt(mp(10**9) / 2 * log)
    largest = int(mpmath.floor(mp(mean.numerator) / mean.denominator + spread))
    assert found.sampled <= mp(10**9) / 2 - spread + 1
    assert Fraction(found.sampled, found.clients) >= Fraction(largest, 5 * 10**11)


def test_the_exponent_of_bennett_is_from_below():
    for u in (*np.geomspace(1e-12, 50.0, 300), 0.00999999, 0.01000001):
        exact = (1 + mp(u)) * mpmath.log1p(mp(u)) - mp(u)
        assert exact * (1 - mp("1e-11")) <= _phi(float(u)) <= exact * (1 + mp("1e-13"))


@pytest.mark.parametrize("bound", [balle, fmt_closed])
def test_closed_forms_hold_at_extreme_deltas(bound):
    for e, n, delta in ((0.1, 10**9, 1e-300), (1e-6, 10**9, 1e-300), (5.0, 10**9, 1e-100)):
        assert 0.0 < bound(e, n, delta) < e


def test_mixed_shares_err_upwards():
    for n, k, q in ((2, 2, 7), (5, 2, 100), (9, 4, 2**20), (40, 3, 2**30)):
        factor = mp(4) if k == 2 else mp("2.5")
        total = mp(0)
        for c in range(2, n + 1):
            term = (factor * q) ** (c - 1) / mpmath.factorial(c)
            for i in range(n - c + 2, n + 1):
                term *= mp(i) / mpmath.binomial(i * k, k)
            total += term
        exact = min(mp(0), mpmath.log(total) / 2 - mpmath.log(2))
        found = log_distance(n, k + 1, math.log(q))
        assert exact <= found <= exact + n * mp("1.1e-5")


def test_many_small_charges_do_not_slip_through_the_filter():
    """A million equal charges, added one by one, against their exact sum."""
    budget = Filter(1.0, 1e-6)
    place = int(np.argmax(budget.limits))
    cost = float(budget.limits[place]) / 300_000.3
    spent, times = 0.0, 0
    while spent <= budget.limits[place] - cost:
        spent, times = spent + cost, times + 1
    alpha, log_delta = mp(ORDERS[place]), mpmath.log(mp(1e-6) / np.isfinite(budget.limits).sum())
    exact = times * mp(cost) + mpmath.log1p(-1 / alpha)
    exact -= (log_delta + mpmath.log(alpha)) / (alpha - 1)
    assert mp("0.99999") <= exact <= 1
    account = Divergences(1, 1e-6)
    for _ in range(20_000):
        account.add(0.1 * ORDERS, math.inf)
    truth = min(
        20_000 * mp(0.1 * a)
        + mpmath.log1p(-1 / mp(a))
        - (mpmath.log(mp(1e-6)) + mpmath.log(mp(a))) / (mp(a) - 1)
        for a in ORDERS
    )
    assert truth <= account.worst <= truth * (1 + mp("1e-9"))


def test_whole_order_sums_are_above_forty_digits():
    """`upper1` and the sampled Gaussian at orders where log-gammas have lost digits."""
    e, n, order = 0.3, 10**5, 3000
    E = mpmath.exp(mp(e))
    left, s2 = int((n - 1) / (2 * E)) + 1, (E - 1 / E) ** 2
    bracket = mpmath.fsum(
        mpmath.binomial(order, i) * i * mpmath.gamma(mp(i) / 2) * (s2 / (2 * left)) ** (mp(i) / 2)
        for i in range(3, order + 1)
    )
    bracket += mpmath.binomial(order, 2) * (E - 1) ** 2 / E / left
    bracket += mpmath.exp(mp(e) * order - (n - 1) / (8 * E))
    exact = mpmath.log1p(bracket) / (order - 1)
    event = Shuffle(e, n)
    assert exact <= find_rdp("upper1", event).rdp(event, order) <= exact * (1 + mp("1e-9"))
    sigma, q = 30.0, 0.01
    bracket = mpmath.fsum(
        mpmath.binomial(order, k) * mp(q) ** k * (1 - mp(q)) ** (order - k)
        * mpmath.expm1((mp(k) * k - k) / (2 * mp(sigma) ** 2))
        for k in range(2, order + 1)
    )  # fmt: skip
    exact = mpmath.log1p(bracket) / (order - 1)
    noise = SubsampledGaussian(sigma, q)
    found = find_rdp("subsampled_gaussian", noise).rdp(noise, order)
    assert exact <= found <= exact * (1 + mp("1e-9"))
