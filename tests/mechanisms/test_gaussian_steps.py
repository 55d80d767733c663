"""Noise inside local steps: what leaves is noisy, whatever a task tries."""

import math
from functools import partial

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.gaussian_steps import GaussianSteps
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.privacy.curves.gaussian import gaussian_delta
from raydp_sim.privacy.events import GaussianReport, LocalReport
from raydp_sim.random import Stream

IDS = np.arange(6, dtype=np.uint32)


def built(**changed: object) -> GaussianSteps:
    known = {"dimension": 3, "radius": 1.0, "scalar_radius": 0.1, "steps": 4}
    settings = {**known, "sigma": 2.0, "scalar_sigma": 0.5, **changed}
    made = make("gaussian-steps", **{k: v for k, v in settings.items() if v is not None})
    assert isinstance(made, GaussianSteps)
    return made


def begun(mechanism: GaussianSteps, ids: np.ndarray = IDS) -> Randomizer:
    randomizer = Randomizer(mechanism)
    randomizer.begin(Stream(1).at("randomize", 0).clients(ids), lambda total: total)
    return randomizer


def walked(randomizer: Randomizer, clients: int = 6, rows: slice = slice(None)) -> None:
    for _ in range(4):
        randomizer.walk.step(0, np.full((clients, 2), 0.1), rows)
        randomizer.walk.step(1, np.full((clients, 1), 0.05), rows)


def test_the_event_is_that_of_all_steps() -> None:
    made = built()
    cost = 4 * 4 * (1.0 / 2.0**2 + 0.1**2 / 0.5**2)
    assert isinstance(made.release(), GaussianReport)
    assert made.release().noise_multiplier == pytest.approx(1.0 / math.sqrt(cost), rel=1e-11)
    stated = made.event()
    assert isinstance(stated, LocalReport)
    assert gaussian_delta(stated.epsilon, made.release().noise_multiplier) <= stated.delta


def test_a_given_epsilon_is_met_and_shared_between_the_parts() -> None:
    given = {"sigma": None, "scalar_sigma": None, "epsilon_local": 3.0, "delta_local": 1e-6}
    made = built(**given, share=0.75)
    assert gaussian_delta(3.0, made.release().noise_multiplier) == pytest.approx(1e-6, rel=1e-6)
    first, second = ((noise.radius / noise.sigma) ** 2 for noise in made.noises)
    assert first / (first + second) == pytest.approx(0.75)


def test_steps_draw_noise_of_their_own_and_depend_on_nobody_else() -> None:
    whole, alone = begun(built()), begun(built(), IDS[2:3])
    walked(whole)
    walked(alone, 1)
    assert np.array_equal(whole.walk.total[2:3], alone.walk.total)
    tiled = begun(built())
    for rows in (slice(0, 1), slice(1, 6)):
        walked(tiled, rows.stop - rows.start, rows)
    assert np.array_equal(whole.walk.total, tiled.walk.total)
    # Repeated noise would have 16 times the variance of one step's, not 4 times.
    many = begun(built(dimension=2001), np.arange(20, dtype=np.uint32))
    for _ in range(4):
        many.walk.step(0, np.zeros((20, 2000)))
    spread = many.walk.total[:, :2000].std() / 2.0
    assert spread == pytest.approx(2.0, abs=6 * 2.0 / math.sqrt(2 * 40_000))  # 6 sigma: 2e-9


def test_every_direction_is_clipped() -> None:
    randomizer, far = begun(built(sigma=1e-6, scalar_sigma=1e-6)), np.full((6, 2), 30.0)
    for _ in range(4):
        randomizer.walk.step(0, far)
        randomizer.walk.step(1, np.full((6, 1), -7.0))
    norms = np.linalg.norm(randomizer.walk.total[:, :2], axis=1)
    assert norms == pytest.approx(np.full(6, 4.0), abs=1e-4)
    assert randomizer.walk.total[:, 2] == pytest.approx(np.full(6, -0.4), abs=1e-4)
    assert randomizer.clipped.rows == randomizer.clipped.values == 48


@pytest.mark.parametrize("attempt", ["own", "copy", "few", "many", "write", "nan"])
def test_nothing_but_noisy_steps_is_let_through(attempt: str) -> None:
    randomizer = begun(built())
    if attempt == "few":
        randomizer.walk.step(0, np.zeros((6, 2)))
        with pytest.raises(InputError, match="all 4 of them"):
            randomizer.check(randomizer.walk.total)
        return
    if attempt == "nan":
        with pytest.raises(InputError, match="finite"):
            randomizer.walk.step(0, np.full((6, 2), np.nan))
        return
    walked(randomizer)
    randomizer.check(randomizer.walk.total)
    if attempt == "own":
        with pytest.raises(InputError, match=r"walk\.total"):
            randomizer.check(np.zeros((6, 3)))
    if attempt == "copy":
        with pytest.raises(InputError, match=r"walk\.total"):
            randomizer.check(randomizer.walk.total.copy())
    if attempt == "many":
        with pytest.raises(InputError, match="noisy steps"):
            randomizer.walk.step(1, np.zeros((6, 1)))
    if attempt == "write":
        with pytest.raises(ValueError, match="read-only"):
            randomizer.walk.total[0, 0] = 1.0


def test_a_mechanism_of_one_randomization_has_no_steps() -> None:
    randomizer = Randomizer(make("laplace", epsilon_local=1.0, dimension=1, radius=1.0))
    randomizer.begin(Stream(1).clients(IDS), lambda total: total)
    with pytest.raises(InputError, match="gaussian-steps"):
        _ = randomizer.walk


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon_local": 1.0},
        {"sigma": None},
        {"scalar_sigma": None},
        {"scalar_radius": None},
        {"delta_local": 0.1},
        {"sigma": None, "scalar_sigma": None, "target": {"epsilon": 1.0}},
    ],
)
def test_other_than_one_guarantee_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"give|target"):
        built(**changed)


def test_settling_sees_noisy_sums_only() -> None:
    seen: list[np.ndarray] = []

    def settle(known: list[np.ndarray], total: np.ndarray) -> np.ndarray:
        known.append(total.copy())
        return np.minimum(total, 0.0)

    randomizer = Randomizer(built())
    randomizer.begin(Stream(1).clients(IDS), partial(settle, seen))
    walked(randomizer)
    assert len(seen) == 8 and (randomizer.walk.total <= 0.0).all()


def test_steps_of_clients_given_by_number_are_counted_too() -> None:
    randomizer = begun(built())
    some = np.array([1, 4])
    for _ in range(4):
        randomizer.walk.step(0, np.zeros((2, 2)), some)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has 4 noisy steps"):
        randomizer.walk.step(0, np.zeros((2, 2)), some)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has 4 noisy steps"):
        randomizer.walk.step(0, np.zeros((6, 2)))
