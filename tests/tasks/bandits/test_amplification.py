"""Local losses behind a shuffler: reference values, and exact laws of small batches with slots."""

import itertools
import math

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.curves.clones import clones_delta
from raydp_sim.privacy.events import Shuffle
from raydp_sim.tasks.bandits.amplification import (
    batch_epsilon,
    closed_epsilon,
    epsilon0_for_batch,
)
from raydp_sim.tasks.bandits.checks import Floats

CLOSED = [
    (0.5, 1000, 1e-5, 0.253841820341),
    (1.0, 1000, 1e-5, 0.531987441360),
    (1.0, 10**5, 1e-6, 0.072554924887),
    (3.0, 10**6, 1e-6, 0.119272632055),
]
INVERSE = [
    (0.1, 10**4, 0.528080767379),
    (1.0, 10**4, 3.503713848581),
    (0.1, 10**5, 1.274315379414),
    (0.01, 10**6, 0.509980440736),
    (0.5, 500, 0.677200529794),
    (0.5, 100, 0.5),
]


@pytest.mark.parametrize(("epsilon0", "n", "delta", "printed"), CLOSED)
def test_the_closed_form(epsilon0: float, n: int, delta: float, printed: float) -> None:
    assert closed_epsilon(epsilon0, n, delta) == pytest.approx(printed, abs=6e-13)


@pytest.mark.parametrize(("epsilon", "n", "printed"), INVERSE)
def test_the_inverse_of_the_closed_form(epsilon: float, n: int, printed: float) -> None:
    found = epsilon0_for_batch(epsilon, n, 1e-6, "closed")
    assert found == pytest.approx(printed, abs=6e-12)
    assert closed_epsilon(found, n, 1e-6) <= epsilon


def test_the_closed_form_is_not_used_where_it_is_false() -> None:
    """At n = 20 it would say 5.707 for epsilon0 = 6, but binary response there has delta 0.24."""
    assert closed_epsilon(6.0, 20, 1e-6) == 6.0
    assert clones_delta(6.0, 20, 5.707) >= 0.2417
    for n in (1, 20, 231):
        assert epsilon0_for_batch(0.5, n, 1e-6, "closed") == 0.5


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("n", [1, 3, 24, 1000, 10**5])
def test_clones_allow_more_and_keep_the_target(epsilon: float, n: int) -> None:
    found = epsilon0_for_batch(epsilon, n, 1e-6)
    assert found >= epsilon0_for_batch(epsilon, n, 1e-6, "closed") * (1 - 3e-6)
    assert batch_epsilon(found, n, 1e-6) <= epsilon * (1 + 1e-12)


def test_the_default_is_the_least_of_all_proved_bounds() -> None:
    for epsilon0, n in ((1.0, 1000), (4.0, 30)):
        table = account([(Shuffle(epsilon0, n), 1)], 1e-6)
        assert batch_epsilon(epsilon0, n, 1e-6) == pytest.approx(table.epsilon, rel=1e-9)


def test_large_losses_gain_nothing_and_infinite_ones_are_no_guarantee() -> None:
    assert epsilon0_for_batch(30.0, 1000, 1e-6) == 30.0
    assert batch_epsilon(30.0, 1000, 1e-6) == 30.0
    assert math.isinf(batch_epsilon(math.inf, 10, 1e-6))


@pytest.mark.parametrize(
    ("epsilon", "delta", "words"),
    [(0.0, 1e-6, "epsilon is 0"), (math.nan, 1e-6, "epsilon is nan"), (1.0, 1.0, "delta is 1")],
)
def test_bad_input_is_refused(epsilon: float, delta: float, words: str) -> None:
    for by in ("clones", "closed"):
        with pytest.raises(InputError, match=words):
            epsilon0_for_batch(epsilon, 10, delta, by)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="amplification is 'best'"):
        epsilon0_for_batch(1.0, 10, 1e-6, "best")  # type: ignore[arg-type]


# Exact laws. A client is what it would earn with every action; a slot asks for one action.
GRID = np.array([-2.0, 0.0, 2.0])


def noisy(reward: float, scale: float) -> Floats:
    """Return the law of a reward with discretised Laplace noise, cut to a grid of outputs."""
    mass = np.exp(-np.abs(GRID - reward) / scale)
    return np.asarray(mass / mass.sum())


def law(clients: list[tuple[float, ...]], slots: list[int], scale: float) -> Floats:
    """Return the exact law of all outputs in the order of slots, clients permuted uniformly."""
    total = np.zeros((len(GRID),) * len(slots))
    for order in itertools.permutations(range(len(clients))):
        parts = [noisy(clients[c][a], scale) for c, a in zip(order, slots, strict=True)]
        one = parts[0]
        for part in parts[1:]:
            one = np.multiply.outer(one, part)
        total += one
    return total / math.factorial(len(clients))


def hockey_stick(p: Floats, q: Floats, epsilon: float) -> float:
    return max(float(np.maximum(x - math.exp(epsilon) * y, 0.0).sum()) for x, y in ((p, q), (q, p)))


def loss(scale: float) -> float:
    up, down = noisy(1.0, scale), noisy(-1.0, scale)
    middle = noisy(0.0, scale)
    pairs = itertools.permutations((up, down, middle), 2)
    return max(float(np.log(x / y).max()) for x, y in pairs)


# Slots of one action, of two, and as many actions as slots; others alike, mixed, or indifferent.
SLOTS = [[0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 0, 1, 1], [0, 1, 1, 2], [0, 0, 1, 1, 2]]
OTHERS = [(-1.0, -1.0, -1.0), (1.0, -1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 1.0, -1.0)]
VICTIMS = [
    ((1.0, 1.0, 1.0), (-1.0, -1.0, -1.0)),
    ((1.0, -1.0, 1.0), (-1.0, 1.0, -1.0)),
    ((1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)),
]


@pytest.mark.parametrize("slots", [*SLOTS, [0, 0, 0, 1, 1, 2]])
def test_batches_with_slots_cost_no_more_than_the_clones_say(slots: list[int]) -> None:
    scale, n = 1.5, len(slots)
    epsilon0 = loss(scale)
    above_a_wrong_one = False
    kinds = OTHERS if n < 6 else OTHERS[:2]
    for (first, second), kind in itertools.product(VICTIMS, range(len(kinds))):
        others = [kinds[(kind + i * (kind > 1)) % len(kinds)] for i in range(n - 1)]
        p, q = law([first, *others], slots, scale), law([second, *others], slots, scale)
        assert p.sum() == pytest.approx(1.0)
        for epsilon in (0.0, 0.2, 0.5, 0.8, 1.1):
            exact, bound = hockey_stick(p, q, epsilon), clones_delta(epsilon0, n, epsilon)
            assert exact <= bound
            above_a_wrong_one |= exact > clones_delta(epsilon0, 4 * n, epsilon)
    # Not vacuous: the bound for four times as many clients is exceeded.
    assert above_a_wrong_one


def test_slots_that_depend_on_earlier_outputs_cost_what_the_victim_s_own_batch_does() -> None:
    """Two batches of three clients each, the second asking for what the first made look best."""
    scale = 1.5
    epsilon0 = loss(scale)
    first_slots = [0, 1, 1]

    def second_slots(place: tuple[int, ...]) -> list[int]:
        return [0, 0, 1] if GRID[place[0]] > GRID[list(place[1:])].mean() else [1, 2, 2]

    def joint(first: list[tuple[float, ...]], second: list[tuple[float, ...]]) -> Floats:
        before = law(first, first_slots, scale)
        both = np.zeros(before.shape * 2)
        for place in np.ndindex(before.shape):
            both[place] = before[place] * law(second, second_slots(place), scale)
        return both

    pair, more = [OTHERS[0]] * 2, OTHERS[1:4]
    above_a_wrong_one = False
    for one, other in VICTIMS:
        laws = [
            (joint([one, *pair], more), joint([other, *pair], more)),
            (joint(more, [one, *pair]), joint(more, [other, *pair])),
        ]
        for (p, q), epsilon in itertools.product(laws, (0.0, 0.5, 1.1)):
            exact = hockey_stick(p, q, epsilon)
            assert exact <= clones_delta(epsilon0, 3, epsilon)
            above_a_wrong_one |= exact > clones_delta(epsilon0, 12, epsilon)
    # Not vacuous, as above.
    assert above_a_wrong_one
