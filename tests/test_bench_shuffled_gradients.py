"""The benchmark of shuffled gradients measures what it says; how fast is no test."""

from raydp_sim.bench.shuffled_gradients import calibration_rows, epoch_rows


def test_every_row_has_a_time_a_floor_and_a_goal() -> None:
    rows = [*epoch_rows(records=50, width=20, repeats=1), *calibration_rows(repeats=1)]
    assert [row.name.partition(", n")[0] for row in rows] == [
        "epoch, mean",
        "epoch, ridge",
        "epoch, logistic",
        "noise of a secret order",
    ]
    assert all(row.seconds > 0.0 and row.floor > 0.0 and row.goal for row in rows)
    assert {row.goal for row in rows[:3]} == {0.1}
