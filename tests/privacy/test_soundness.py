"""No bound that is called proved is ever below exact composition, on random runs with corners.

Seeds are fixed and the oracle rounds down, so there is no false alarm.
"""

import pytest

from raydp_sim.privacy.bound import find_run, run_bounds
from tests.privacy.soundness import faults, law_runs, noisy_runs, other_runs, shuffle_runs

# Costly bounds are asked at every so many runs; all others at every run. Bounds that share what
# they compute share their runs.
_EVERY = {
    "rdp-best": 100,
    "rdp-wbk": 30,
    "rdp-wbk-naive": 30,
    "rdp-wbk-clones": 15,
    "rdp-numeric": 5,
    "rdp-clones": 5,
    "rdp-subsampled": 5,
}
# Nearly all the time goes to these: 100 of the 300 runs each, at every one of the long campaign.
_THIRD = frozenset({"pld-clones", "pld-variation", "pld-law", "pld-subsampled"})


def skipped(index: int, more: int = 1) -> frozenset[str]:
    """Return the bounds that are not asked at this run; with `more`, that many times as rarely."""
    return frozenset(name for name, n in _EVERY.items() if (index + n // 2) % (more * n))


def skipped_here(index: int) -> frozenset[str]:
    """As `skipped`, and loss distributions at two of three runs."""
    return skipped(index) | (_THIRD if index % 3 else frozenset())


def report(lines: list[str]) -> str:
    return "\n".join([f"{len(lines)} values below the exact one", *lines])


@pytest.mark.parametrize("block", range(6))
def test_no_proved_bound_on_shuffles_is_below_exact_composition(block):
    lines = []
    for index, run in enumerate(shuffle_runs((1, block), 50)):
        lines += faults(run, skipped_here(50 * block + index))
    assert not lines, report(lines)


@pytest.mark.long
@pytest.mark.parametrize("block", range(160))
def test_no_proved_bound_on_20000_runs_is_below_exact_composition(block):
    lines = []
    for index, run in enumerate(shuffle_runs((2, block), 125)):
        lines += faults(run, skipped(125 * block + index, more=4))
    assert not lines, report(lines)


def test_no_proved_bound_on_other_events_is_below_exact_composition():
    lines = []
    for index, run in enumerate(other_runs((3, 0), 60)):
        rare = {"rdp-wbk-multi", "rdp-mixture"} if index % 4 else set()
        lines += faults(run, skipped(index) | rare)
    assert not lines, report(lines)


def test_no_bound_on_shuffled_normal_noise_is_below_exact_composition():
    lines = [line for run in noisy_runs((5, 0), 30) for line in faults(run)]
    assert not lines, report(lines)


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
def test_no_bound_on_much_shuffled_normal_noise_is_below_exact_composition(block):
    lines = [line for run in noisy_runs((6, block), 100) for line in faults(run)]
    assert not lines, report(lines)


def test_no_law_of_noise_or_corners_is_below_its_certified_floor():
    # The bound itself refuses to be below; nothing else is asked.
    bound = find_run("pld-law")
    found = [bound.epsilon(list(run.events), run.delta).epsilon for run in law_runs((7, 0), 25)]
    assert min(found) >= 0.0 and max(found) > 1.0


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_no_proved_bound_on_more_other_events_is_below_exact_composition(block):
    lines = []
    for run in other_runs((4, block), 50):
        lines += faults(run, frozenset({"rdp-best"}))
    assert not lines, report(lines)


def test_every_proved_bound_on_shuffles_is_asked():
    asked = set()
    for index in range(300):
        asked |= {b.name for b in run_bounds() if b.status == "proved"} - skipped_here(index)
    assert asked == {b.name for b in run_bounds() if b.status == "proved"}
