"""The benchmark of best noise functions: rows with a floor that is one, and a goal."""

from raydp_sim.bench.ensembles import rows


def test_every_case_has_a_floor_and_a_goal() -> None:
    found = list(rows())
    assert len({row.name for row in found}) == len(found) == 4
    assert all(row.seconds > 0.0 and row.floor > 0.0 and row.goal == 5.0 for row in found)
    assert {"31824" in row.name for row in found} == {True, False}
