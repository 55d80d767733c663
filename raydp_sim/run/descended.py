"""The answer of a run of shuffled gradients: what was shown, by whose rules, with which caution."""

from pathlib import Path
from typing import Any

from raydp_sim.datasets.public_private import PublicRecords
from raydp_sim.mechanisms.central_epochs import CentralEpochs
from raydp_sim.metrics import streams
from raydp_sim.scenario import Scenario, bound_mechanism
from raydp_sim.tasks.shuffled_gradients.task import ShuffledGradients

_SHOWN = {
    "last": "the last iterate alone",
    "epochs": "the iterate after every epoch",
}
_KNOWN = {
    "ig": "records are taken in the order of their clients, which is no secret",
    "so": "the shuffler draws one order for all epochs and tells the learner alone",
    "rr": "the shuffler draws a new order for every epoch and tells the learner alone",
}
_RESTS = {
    "pabi": "pabi: amplification by iteration, which holds whoever knows the order",
    "secret-order": "secret-order: rests on NOBODY BUT THE LEARNER KNOWING THE ORDER",
    "every-step": "every-step: as if every iterate were seen, whoever knows the order",
}
_CAUTION = (
    "; how much public records help depends on how they differ from private ones, and where they "
    "differ little none but public ones may do best: this run says nothing of other data"
)
_TUNING = "a step size that was chosen by looking at private data is not accounted for"


def section(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Return the section `gradients` of a summary; nothing for other tasks.

    Args:
        scenario: of the run.
        folder: of the streams.
    """
    task, noise = scenario.task, bound_mechanism(scenario)
    if not isinstance(task, ShuffledGradients):
        return {}
    held = scenario.population.data.held_out()
    uses = any(
        epoch.private < scenario.population.clients
        for epoch in task.epochs(scenario.population.clients)
    )
    found: dict[str, Any] = {
        "algorithm": task.algorithm,
        "shown": _SHOWN[task.released],
        "order": _KNOWN[task.order],
        "step_size": task.step_size,
    }
    if isinstance(noise, CentralEpochs):
        rows = streams.read(folder, "epoch-accountants").to_pylist()
        kept = ("accountant", "epsilon", "assumes", "charged")
        found |= {
            "accountant": _RESTS[noise.accountant],
            "sigma": noise.need_sigma(),
            "tuning": _TUNING,
            "accountants": [
                {name: row[name] for name in kept} for row in rows if row["repetition"] == 0
            ],
        }
    if uses and isinstance(held, PublicRecords):
        found["public"] = f"{held.shift}{_CAUTION}"
    return {"gradients": found}
