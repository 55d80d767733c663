"""Data sets of private and public records: what is in them, and what they say of themselves."""

from pathlib import Path

import numpy as np
import pytest

from raydp_sim.datasets.base import HELD_OUT
from raydp_sim.datasets.compas import NAMES, Compas
from raydp_sim.datasets.mnist import Mnist
from raydp_sim.datasets.mnist_69 import Mnist69
from raydp_sim.datasets.public_private import PublicRecords
from raydp_sim.datasets.shifted_standin import ShiftedStandin
from raydp_sim.errors import InputError
from raydp_sim.random import Stream

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not there")


@real
def test_sixes_are_private_and_nines_turned_round_are_public() -> None:
    data, digits = Mnist69(root=str(SHARED), public=7), Mnist(root=str(SHARED)).train()
    private, public, shift = data.pair()
    sixes, nines = (digits.features[digits.labels == each] for each in (6, 9))
    assert private.shape == (5918, 784) and public.shape == (7, 784)
    np.testing.assert_array_equal(private[3].reshape(28, 28), sixes[3] / 255.0)
    np.testing.assert_array_equal(public[5].reshape(28, 28), np.rot90(nines[5], 2) / 255.0)
    held = data.values(np.array([4, 2], np.uint32), Stream(1))
    np.testing.assert_array_equal(held, private[[4, 2]])
    assert "turned by 180 degrees" in shift and shift in data.said()
    assert data.located(Path("/")).root == str(SHARED)


@real
def test_compas_has_the_texts_numbers_of_records_and_features() -> None:
    private, public, _ = Compas(root=str(SHARED)).pair()
    assert private.shape == (2103, 12) and public.shape == (3175, 12) and len(NAMES) == 12
    for part in (private, public):
        assert set(np.unique(part[:, -1])) == {0.0, 1.0}
        assert np.sqrt(np.square(part[:, :-1]).sum(axis=1)).max() <= 5.0 * (1.0 + 1e-12)
    # Known shares of ProPublica's filtered table: 39.1 % and 52.3 %.
    assert private[:, -1].mean() == pytest.approx(0.391, abs=5e-4)
    assert public[:, -1].mean() == pytest.approx(0.523, abs=5e-4)


def test_a_missing_table_is_refused_by_name(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("RAYDP_SIM_DATA", raising=False)
    with pytest.raises(InputError, match=r"population\.data\.root is missing"):
        Compas().pair()
    with pytest.raises(InputError, match=r"there is no compas-scores-two-years\.csv"):
        Compas(root=str(tmp_path)).pair()


@pytest.mark.parametrize(
    ("like", "shape", "name"),
    [
        ("cifar-10", (1000, 3073), "CIFAR-10"),
        ("crime", (159, 125), "Communities and Crime"),
        ("creditcard", (200, 22), "Default of Credit Card Clients"),
    ],
)
def test_stand_ins_have_the_shape_of_what_they_stand_for_and_say_so(like, shape, name) -> None:
    data = ShiftedStandin(like=like)
    private, public, _ = data.pair()
    assert private.shape == public.shape == shape
    assert f"A STAND-IN for {name}" in data.said()
    assert np.sqrt(np.square(private[:, :-1]).sum(axis=1)).max() <= 5.0 * (1.0 + 1e-12)


def test_a_shift_is_what_it_says() -> None:
    """Means of 20,000 draws of standard deviation 0.3, five standard errors: below 1e-4 in all."""
    data = ShiftedStandin(shift=0.5, alternating=True, dimension=4, records=20_000)
    private, public, shift = data.pair()
    off = public.mean(axis=0) - private.mean(axis=0)
    np.testing.assert_allclose(off, [0.5, -0.5, 0.5, -0.5], atol=5 * 0.3 * np.sqrt(2 / 20_000))
    assert shift == "moved by +-0.5 in every coordinate"
    classes = ShiftedStandin(like="creditcard").pair()
    assert classes.private[:, -1].mean() == 0.5 and classes.public[:, -1].mean() == 0.05


def test_public_records_come_back_from_a_scenario_file() -> None:
    held = ShiftedStandin(records=5, dimension=2).held_out()
    again = HELD_OUT.parse(HELD_OUT.dump(held))
    assert isinstance(again, PublicRecords)
    np.testing.assert_array_equal(again.records, held.records)  # type: ignore[attr-defined]
    assert again.validation() is None and len(again.test().features) == 5
