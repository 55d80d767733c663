"""What tasks with noise inside local steps share: what they refuse, and the accountants beside."""

import pyarrow as pa

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.gaussian_steps import GaussianSteps
from raydp_sim.metrics.streams import released
from raydp_sim.privacy.personal import Personal
from raydp_sim.tasks.base import Setting


def noisy_steps(mechanism: Mechanism, task: str, scalar: bool) -> GaussianSteps:
    """Return the mechanism, if its steps are those of the task.

    Args:
        mechanism: the scenario's.
        task: its kind, for the message.
        scalar: whether a number besides the direction is made noisy.

    Raises:
        InputError: names the field.
    """
    if not isinstance(mechanism, GaussianSteps):
        remedy = f"task '{task}' adds its noise inside local steps; use gaussian-steps"
        raise bad_field("mechanism.kind", mechanism.kind, remedy)
    if scalar != (mechanism.scalar_radius is not None):
        remedy = "give the bound of psi's steps" if scalar else f"task '{task}' has none; leave out"
        raise bad_field("mechanism.scalar_radius", mechanism.scalar_radius, remedy)
    return mechanism


def accountants(
    setting: Setting, mechanism: Mechanism, rounds: int, reports: int
) -> pa.RecordBatch:
    """Return what the accountants say after so many rounds, named by what is proved of them.

    They are of batches as large as this one, drawn uniformly if not of everyone.
    """
    assert isinstance(mechanism, GaussianSteps)
    sampled = max(1, min(reports, setting.clients))
    run = Personal(rounds, mechanism.steps, setting.clients, sampled, mechanism.noises)
    delta = setting.delta
    return released(
        {
            "round": rounds,
            "epsilon_local_proved": run.local(delta),
            "epsilon_aggregate_not_proved": run.aggregate(delta, "replace-one"),
            "epsilon_aggregate_add_remove_not_proved": run.aggregate(delta, "add-remove"),
            "epsilon_seed_not_proved": run.seed(delta),
        }
    )
