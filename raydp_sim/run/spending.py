"""What every client of a run has spent so far, from the run's ledger alone."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.histories import replayed
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario import bound_mechanism
from raydp_sim.scenario.accounting import opened


def epsilons(path: Path, repetition: int = 0) -> NDArray[np.float64]:
    """Return the epsilon of every client, finished run or not.

    Args:
        path: the run directory.
        repetition: which one.

    Raises:
        InputError: it cannot be read.
    """
    run = RunDir.existing(path)
    scenario = run.scenario()
    with run.reading():
        rows = store.charges(run.ledger, repetition)
        return replayed(rows, opened(scenario, bound_mechanism(scenario))).epsilons()
