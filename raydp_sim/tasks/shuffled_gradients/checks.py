"""What a run of shuffled gradients is refused for, by name, before anything is sent."""

from raydp_sim.datasets.public_private import PublicRecords
from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.bare_records import BareRecords
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.central_epochs import CentralEpochs
from raydp_sim.tasks.shuffled_gradients.losses import Floats, LossName, smoothness
from raydp_sim.tasks.shuffled_gradients.plan import Algorithm, Epoch
from raydp_sim.tasks.shuffled_gradients.trials import OrderName

Noise = CentralEpochs | BareRecords


def check_mechanism(algorithm: Algorithm, mechanism: Mechanism, trust: str) -> Noise:
    """Return the mechanism if the learner can take its steps with it."""
    if trust != "central":
        remedy = "the learner holds records as they are, so it has to be trusted; use central"
        raise bad_field("trust", trust, remedy)
    if not isinstance(mechanism, CentralEpochs | BareRecords):
        remedy = "use central-epochs, or bare-records with privacy.guarantee: none"
        raise bad_field("mechanism.kind", mechanism.kind, remedy)
    if algorithm == "plain" and isinstance(mechanism, CentralEpochs):
        remedy = "'plain' adds no noise; use bare-records and say privacy.guarantee: none"
        raise bad_field("task.algorithm", algorithm, remedy)
    return mechanism


def smoothest(loss: LossName, radius: float) -> float:
    """Return L* of any record that there could be in the ball, not of those that there are.

    Neighbours may hold any of them, and the data's own largest would tell something of the data.
    """
    return {"mean": 1.0, "ridge": 2.0 * radius**2, "logistic": 0.25 * radius**2}[loss]


def check_steps(
    loss: LossName, order: OrderName, step: float, noise: Noise, plan: tuple[Epoch, ...]
) -> None:
    """Refuse steps of which the accountant says nothing."""
    if not isinstance(noise, CentralEpochs) or not any(epoch.private for epoch in plan):
        return
    limit = smoothest(loss, noise.radius)
    if noise.accountant != "every-step" and step > 2.0 / limit:
        remedy = (
            f"steps may expand beyond 2/L* = {2.0 / limit:g}, L* = {limit:g} the largest "
            f"smoothness of a record in mechanism.radius, and '{noise.accountant}' proves nothing "
            "then; lower it, or use mechanism.accountant: every-step"
        )
        raise bad_field("task.step_size", step, remedy)
    if noise.accountant == "secret-order" and order == "ig":
        remedy = "records come in their given order (task.order: ig), which is no secret; use pabi"
        raise bad_field("mechanism.accountant", noise.accountant, remedy)
    if noise.lipschitz is not None and (loss != "logistic" or noise.lipschitz < noise.radius):
        remedy = (
            f"gradients of '{loss}' have no such bound for records in mechanism.radius "
            f"{noise.radius:g}; give gradient_clip, which makes them"
        )
        raise bad_field("mechanism.lipschitz", noise.lipschitz, remedy)


def check_public_steps(
    loss: LossName,
    step: float,
    noise: Noise,
    plan: tuple[Epoch, ...],
    records: int,
    features: Floats,
) -> None:
    """Refuse public records after private ones along which steps may expand (max(L*, L~*))."""
    mixed = any(0 < epoch.private < records and epoch.noisy for epoch in plan)
    if not mixed or not isinstance(noise, CentralEpochs) or noise.accountant == "every-step":
        return
    limit = float(smoothness(loss, features).max())
    if step > 2.0 / limit:
        remedy = f"steps along public records may expand beyond 2/L~* = {2.0 / limit:g}; lower it"
        raise bad_field("task.step_size", step, remedy)


def check_public(held: object, plan: tuple[Epoch, ...], records: int) -> None:
    """Refuse fewer public records than the epochs take."""
    needed = max(records - epoch.private for epoch in plan)
    if not needed:
        return
    if not isinstance(held, PublicRecords):
        raise InputError(
            "population.data has no public records, and this algorithm uses some; choose "
            "mnist-69, compas or shifted-standin, or task.algorithm: private"
        )
    if len(held.records) < needed:
        remedy = f"an epoch takes {needed} public records, n - n_d; there are {len(held.records)}"
        raise bad_field("population.clients", records, f"{remedy}: lower it or raise task.share")
