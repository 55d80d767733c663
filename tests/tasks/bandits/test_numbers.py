"""Schedule, radii and tails against the numbers of the specification and exact integrals."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from raydp_sim.errors import InputError
from raydp_sim.tasks.bandits.certificate import regret_certificate
from raydp_sim.tasks.bandits.radii import confidence_radius, laplace_tail
from raydp_sim.tasks.bandits.schedule import batch_slots, growth, most_batches

SCHEDULE = {
    10**4: (2.9307474676754035, 8, None),
    10**5: (2.886965640435385, 10, None),
    10**6: (2.8581417215487104, 12, 457097.218),
    10**7: (2.837729569526533, 15, 9621757.718),
}


@pytest.mark.parametrize("horizon", SCHEDULE)
def test_the_schedule(horizon: int) -> None:
    q, batches, total = SCHEDULE[horizon]
    assert growth(horizon) == pytest.approx(q, rel=1e-15)
    assert most_batches(horizon) == batches
    if total is not None:
        assert sum(q**i for i in range(1, batches + 1)) == pytest.approx(total, abs=6e-4)


def test_batches_may_exceed_the_horizon() -> None:
    q = growth(162_755)
    assert most_batches(162_755) == 11
    assert sum(q**i for i in range(1, 12)) == pytest.approx(173_149, abs=1)
    assert [most_batches(horizon) for horizon in (3, 7, 21)] == [1, 1, 2]
    assert all(math.e <= growth(horizon) <= math.e**2 for horizon in (3, 10, 10**9))


@pytest.mark.parametrize("horizon", [2, 0, -1, 2.5, True])
def test_a_horizon_without_batches_is_refused(horizon: int) -> None:
    with pytest.raises(InputError, match=f"horizon is {horizon}"):
        growth(horizon)


def test_slots_are_rounded_up() -> None:
    assert batch_slots(np.array([1 / 3] * 3), 3.0 + 1e-15).tolist() == [1, 1, 1]
    assert batch_slots(np.array([0.3, 0.7]), 10.0).tolist() == [3, 7]
    assert batch_slots(np.array([0.301, 0.699]), 10.0).tolist() == [4, 7]


# T = 10^6, d = 2, |A_i| = 10, |C_i| = 2: kind, noise on, scale and gamma at i = 12 and i = 6.
RADII = [
    ("paper", "nothing", 0.0, 0.029037058758, 0.677959736),
    ("paper", "sums", 1.0, 0.029485554757, 0.922449753),
    ("paper", "reports", 1.0, 0.070101792132, 1.638379933),
    ("corrected", "sums", 2.0, 0.030305597007, 1.369481932),
    ("corrected", "reports", 2.0, 0.145185293791, 3.389798682),
]


@pytest.mark.parametrize(("kind", "noise_on", "scale", "late", "early"), RADII)
def test_confidence_radii(
    kind: str, noise_on: str, scale: float, late: float, early: float
) -> None:
    q = growth(10**6)
    for i, reports, printed in ((12, 297_172, late), (6, 547, early)):
        found = confidence_radius(
            kind,  # type: ignore[arg-type]
            noise_on,  # type: ignore[arg-type]
            2 * 2 / q**i,
            10,
            10**6,
            2,
            reports,
            scale,
        )
        assert found == pytest.approx(printed, abs=6e-13 if i == 12 else 6e-10)


def exact_tail(n: int, t: float) -> float:
    """Return P(sum of n standard Laplace variables > t), the difference of two gamma variables."""
    found, _ = integrate.quad(
        lambda g: stats.gamma.pdf(g, n) * stats.gamma.sf(t + g, n), 0.0, 6.0 * n + 60.0, limit=200
    )
    return float(found)


def test_the_printed_tail_is_false_and_ours_is_not() -> None:
    assert exact_tail(20, 20.0) == pytest.approx(1.14e-3, rel=5e-3)
    assert math.exp(-(20.0**2) / (2 * 20)) == pytest.approx(4.54e-5, rel=1e-3)
    assert exact_tail(50, 50.0) == pytest.approx(8.7e-7, rel=1e-2)
    for n in (1, 2, 5, 20, 100):
        for log_inverse in (0.5, 1.0, 3.0, 10.0, 25.0):
            t = laplace_tail(1.0, float(n), 1.0, log_inverse)
            assert exact_tail(n, t) <= math.exp(-log_inverse)
            assert laplace_tail(3.0, float(n), 1.0, log_inverse) == pytest.approx(3.0 * t)


def test_the_tail_is_continuous_where_its_form_changes() -> None:
    below, above = (laplace_tail(1.0, 8.0, 2.0, 2.0 + side) for side in (-1e-9, 1e-9))
    assert below == pytest.approx(above, rel=1e-6)


def test_the_certificate_by_hand() -> None:
    nan = math.nan
    slots = np.array([[10.0, 30.0, 0.0], [10.0, 30.0, 30.0], [0.0, 0.0, 0.0]])
    radii = np.array([[0.4, 0.1, nan], [0.4, nan, 0.01], [nan, nan, nan]])
    found = regret_certificate(slots, radii, 100)
    by_hand = [
        10 * 2 + 30 * 1.6 + 60 * 0.2,
        10 * 2 + (30 + 30) * 1.6 + 30 * 0.02,  # the void batch is paid for at the gap before it
        200.0,
    ]
    assert found == pytest.approx(by_hand)
