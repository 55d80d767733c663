"""The cost of shuffled gradients against the text's tables and exact divergences."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.integrate import quad

from raydp_sim.errors import InputError
from raydp_sim.tasks.shuffled_gradients.accounting import (
    check_step,
    divergence,
    epsilon,
    secret_divergence,
    secret_epsilon,
    secret_sigma_for,
    sigma_for,
)
from raydp_sim.tasks.shuffled_gradients.plan import epochs, private_epochs, tail

TABLE = {
    1.0: (756.6014, 534.9980, 33.8025, 27.6088, 47.7563, 75.2847, 23.3159, 84.0668),
    5.0: (161.0921, 113.9093, 7.1971, 5.8783, 10.1680, 16.0293, 4.9643, 17.8991),
    10.0: (85.9704, 60.7902, 3.8409, 3.1371, 5.4264, 8.5544, 2.6493, 9.5523),
}


@pytest.mark.parametrize("target", TABLE)
def test_noise_of_the_table(target: float) -> None:
    settings = [
        ("private", 1000, 1.0),
        ("priv-pub", 1000, 0.5),
        ("interleaved", 1000, 0.5),
        ("interleaved", 1000, 0.25),
        ("interleaved", 1000, 0.75),
        ("interleaved", 200, 0.5),
        ("interleaved", 2103, 0.5),
        ("interleaved", 159, 0.5),
    ]
    for (algorithm, records, share), value in zip(settings, TABLE[target], strict=True):
        plan = epochs(algorithm, 50, records, share)  # type: ignore[arg-type]
        used, left = private_epochs(plan), tail(plan, records)
        sigma = sigma_for(target, 1e-6, 10.0, used, left)
        assert round(sigma, 4) == value
        assert epsilon(divergence(10.0, sigma, used, left), 1e-6) == pytest.approx(target)
    quarters = {("priv-pub", 0.25): 78.9187, ("pub-priv", 0.25): 82.1412}
    for (algorithm, share), value in quarters.items():
        plan = epochs(algorithm, 50, 1000, share)  # type: ignore[arg-type]
        assert round(sigma_for(5.0, 1e-6, 10.0, private_epochs(plan), 1), 4) == value


def test_the_printed_order_certifies_less() -> None:
    for target, printed in {1.0: 1.0006, 5.0: 5.077, 10.0: 10.616}.items():
        sigma = sigma_for(target, 1e-6, 10.0, 50, 1)
        log_inverse = math.log(1e6)
        order = sigma * math.sqrt(log_inverse) / (10.0 * math.sqrt(100.0))
        c = divergence(10.0, sigma, 50, 1)
        assert c * order + log_inverse / (order - 1.0) == pytest.approx(printed, abs=6e-4)
        best = order + 1.0
        assert c * best + log_inverse / (best - 1.0) == pytest.approx(target)


def test_noise_with_secret_orders() -> None:
    for target, value in {1.0: 130.24, 5.0: 28.75, 10.0: 15.89}.items():
        assert secret_sigma_for(target, 1e-6, 10.0, 1000, 1000, 50) == pytest.approx(
            value, abs=0.006
        )
    for target, value in {1.0: 21.13, 5.0: 4.525, 10.0: 2.430}.items():
        sigma = secret_sigma_for(target, 1e-6, 10.0, 1000, 500, 50)
        assert sigma == pytest.approx(value, abs=0.006)
        assert secret_epsilon(1e-6, 10.0, sigma, 1000, 500, 50) <= target
    # "Only marginally": the text's approximation at its own setting, and what it stands for.
    assert secret_divergence(6.0, 10.0, 161.0, 1000, 1000) == pytest.approx(0.000356, abs=1e-6)
    assert 2.0 * 6.0 * 100.0 / 161.0**2 == pytest.approx(0.0463, abs=1e-4)
    # Large exponents: the worst place decides, at - log n/(alpha - 1).
    large = secret_divergence(40.0, 10.0, 1.0, 50, 50)
    assert large == pytest.approx(2 * 40 * 100 - math.log(50) / 39, rel=1e-9)
    assert large <= secret_divergence(40.0, 10.0, 0.999, 50, 50)


def gaussian_mixture_divergence(
    order: float, means: tuple[list[float], list[float]], sd: float
) -> float:
    """Return the Renyi divergence of two mixtures of normals with equal weights, by quadrature."""

    def density(x: float, centres: list[float]) -> float:
        terms = [math.exp(-0.5 * ((x - c) / sd) ** 2) for c in centres]
        return math.fsum(terms) / (len(centres) * sd * math.sqrt(2.0 * math.pi))

    def integrand(x: float) -> float:
        p, q = density(x, means[0]), density(x, means[1])
        return p * (p / q) ** (order - 1.0) if q > 0.0 else 0.0

    reach = 12.0 * sd
    low, high = min(map(min, means)) - reach, max(map(max, means)) + reach
    value, _ = quad(integrand, low, high, limit=400, epsabs=0.0, epsrel=1e-10)
    return math.log(value) / (order - 1.0)


@pytest.mark.parametrize("order", [1.5, 4.0, 8.0])
@pytest.mark.parametrize("step", [0.2, 1.0])
def test_one_epoch_of_a_quadratic_costs_no_more_than_is_charged(order: float, step: float) -> None:
    """f = (x - q)^2/2 with records in [-1, 1] around 0, G = 1: the iterate is a normal variable."""
    sigma, n = 2.0, 3
    records, other = [1.0, 0.3, -0.2], [-1.0, 0.3, -0.2]

    def last(order_of: tuple[int, ...], rows: list[float]) -> float:
        x = 0.0
        for i in order_of:
            x -= step * (x - rows[i])
        return x

    sd = math.sqrt(sum((step * sigma) ** 2 * (1.0 - step) ** (2 * j) for j in range(n)))
    for place in range(n):
        rest = [1, 2]
        sequence = (*rest[:place], 0, *rest[place:])
        exact = gaussian_mixture_divergence(
            order, ([last(sequence, records)], [last(sequence, other)]), sd
        )
        # The record moves its own gradient by 2 = 2 G, in step place + 1.
        assert exact <= order * divergence(1.0, sigma, 1, n - place) * (1.0 + 1e-9)
    orders = list(permutations(range(n)))
    mixed = gaussian_mixture_divergence(
        order, ([last(o, records) for o in orders], [last(o, other) for o in orders]), sd
    )
    assert mixed <= secret_divergence(order, 1.0, sigma, n, n) * (1.0 + 1e-9)
    assert secret_divergence(order, 1.0, sigma, n, n) < order * divergence(1.0, sigma, 1, 1)


def test_the_bound_fails_beyond_the_step_that_is_refused() -> None:
    """A quadratic with eta = 2.5: steps expand, and the first record weighs more than the last."""
    step, sigma, n = 2.5, 1.0, 3
    growth = abs(1.0 - step)
    variance = sum((step * sigma * growth**j) ** 2 for j in range(n))
    apart = 2.0 * step * growth ** (n - 1)
    exact = apart**2 / (2.0 * variance)  # per unit of the order
    assert exact > divergence(1.0, sigma, 1, n) * 1.5
    with pytest.raises(InputError, match=r"step_size is 2\.5"):
        check_step(step, 1.0)
    check_step(2.0, 1.0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: epochs("other", 5, 10), "algorithm is 'other'"),  # type: ignore[arg-type]
        (lambda: epochs("priv-pub", 2, 10, 0.3), "share is 0.3"),
        (lambda: epochs("pub-priv", 1, 10, 0.5), "share is 0.5"),
        (lambda: epochs("interleaved", 5, 10, 0.01), "share is 0.01"),
        (lambda: epochs("private", 0, 10), "epochs is 0"),
        (lambda: sigma_for(0.0, 1e-6, 1.0, 1, 1), "epsilon is 0"),
        (lambda: sigma_for(1.0, 1.0, 1.0, 1, 1), "delta is 1"),
    ],
)
def test_bad_input_is_refused_by_name(call, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=says):
        call()


def test_interleaved_needs_less_noise_the_more_public_steps_follow() -> None:
    shares = np.linspace(0.1, 1.0, 10)
    found = [
        sigma_for(1.0, 1e-6, 1.0, 50, tail(epochs("interleaved", 50, 1000, float(p)), 1000))
        for p in shares
    ]
    assert (np.diff(found) > 0.0).all()
    # (n + 1 - n_d), not (n - 1 + n_d) as section 4.6.5 prints, which would fall instead.
    assert found[-1] == pytest.approx(sigma_for(1.0, 1e-6, 1.0, 50, 1))
