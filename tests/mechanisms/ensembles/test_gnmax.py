"""GNMax: its least noise and the data-dependent bound."""

import math

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.ensembles.gnmax import accuracy, data_dependent_rdp, least_sigma


def test_sigmas_of_the_text_and_accuracies() -> None:
    cases = {
        (0.0892, 1e-4): (68.21, 0.545),
        (0.2676, 3e-4): (21.46, 0.641),
        (0.4460, 5e-4): (12.54, 0.732),
        (0.6244, 7e-4): (8.815, 0.811),
        (0.0852, 1e-4): (71.41, 0.543),
        (0.2556, 3e-4): (22.46, 0.635),
    }
    for (epsilon, delta), (sigma, right) in cases.items():
        found, order = least_sigma(epsilon, delta)
        assert found == pytest.approx(sigma, abs=0.006)
        assert round(accuracy(found, 11), 3) == right
        # It is the least: every other order asks for more.
        others = order * np.linspace(0.6, 3.0, 50)
        spare = epsilon + math.log(delta) / (others - 1.0)
        assert (np.sqrt(others / spare)[spare > 0] >= found - 1e-9).all()


def test_printed_orders_are_not_those_of_the_printed_sigmas() -> None:
    sigma, order = least_sigma(0.2676, 3e-4)
    assert (round(sigma, 2), round(order, 2)) == (21.46, 62.12)
    printed = math.sqrt(34.31 / (0.2676 + math.log(3e-4) / 33.31))
    assert round(printed, 2) == 37.75


def test_data_dependence_helps_where_teachers_agree_and_never_hurts() -> None:
    # Two classes and eleven teachers: nowhere, even unanimous.
    for epsilon, delta in [(0.0892, 1e-4), (0.2676, 3e-4), (0.446, 5e-4), (0.6244, 7e-4)]:
        sigma, order = least_sigma(epsilon, delta)
        assert data_dependent_rdp([11, 0], sigma, order) == order / sigma**2
    sigma = 40.0
    for order in (2.0, 5.0, 10.0):
        close = data_dependent_rdp([130, 120], sigma, order)
        agreed = data_dependent_rdp([250, 0], sigma, order)
        more = data_dependent_rdp([300, 0], sigma, order)
        assert close == order / sigma**2
        assert 0.0 < more < agreed < close


def test_bad_input() -> None:
    with pytest.raises(InputError, match="epsilon"):
        least_sigma(0.0, 0.1)
    with pytest.raises(InputError, match="delta"):
        least_sigma(1.0, 0.0)
