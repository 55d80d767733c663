"""Stored results come out again, row for row, on every set of kernels that the machine has."""

import os
import subprocess
import sys

import pytest

from raydp_sim.kernels.choice import VARIABLE
from raydp_sim.metrics.curves import read_csv
from tests.docs.test_results import RESULTS

SHARED = RESULTS.parents[2] / "shared" / "data"
# Settings of the tables, with the line of docs/results.md that made each.
AVERAGE, WHOLE = "mechanism.aggregate.epsilon=3.35", "mechanism.target.epsilon=3.35"
AGAIN = {
    "dss": ("short", "learning/dss", "--set", "task.rounds=60"),
    "mms": ("short", "learning/mms"),
    "steady": ("availability", "learning/availability-steady"),
    "e4-standin-3.35": ("standins", "learning/e4-standin", "--set", AVERAGE),
    "e4-fedavg-standin-3.35": ("standins", "learning/e4-fedavg-standin", "--set", AVERAGE),
    "e4-proved-standin-3.35": ("standins", "learning/e4-proved-standin", "--set", WHOLE),
}
WITH_FILES = ("dss", "steady")
SETS = ("numpy", "baseline", "avx2", "avx512")


@pytest.mark.long
@pytest.mark.parametrize("setting", AGAIN)
@pytest.mark.parametrize("name", SETS)
def test_a_stored_row_comes_out_again(name, setting, tmp_path):
    """Learning by `cldp-sgd` goes through BLAS as well: its models are the same here, and tests of
    them are counts, which other processors' last bits rarely change."""
    compiled = pytest.importorskip("raydp_sim.kernels.compiled", exc_type=ImportError)
    if name not in ("numpy", *compiled.sets()):
        pytest.skip(f"this machine has no {name}")
    if setting in WITH_FILES and not SHARED.is_dir():
        pytest.skip("../shared/data is not there")
    table, scenario, *assigned = AGAIN[setting]
    run, made = tmp_path / f"{setting}-1", tmp_path / "made.csv"
    given = {**os.environ, VARIABLE: name, "RAYDP_SIM_DATA": str(SHARED)}
    playing = ["run", scenario, "--seed", "1", *assigned, "--set", "placement.backend=inline"]
    for words in ([*playing, "--out", str(run)], ["trainings", str(run), "--csv", str(made)]):
        command = [sys.executable, "-m", "raydp_sim", *words]
        done = subprocess.run(command, env=given, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    (found,) = read_csv(made).to_pylist()
    stored = read_csv(RESULTS / f"{table}.csv").to_pylist()
    assert found in [row for row in stored if (row["setting"], row["seed"]) == (setting, 1)]
