"""What all tasks that train one model share: its network, its limits and the rows about it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.datasets.labelled import HeldOut
from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.metrics import streams
from raydp_sim.metrics.streams import released, simulation_only
from raydp_sim.models.base import Classifier, Network
from raydp_sim.tasks.base import Arrays, Setting, Truth
from raydp_sim.tasks.learning.callbacks import called
from raydp_sim.tasks.learning.evaluation import score
from raydp_sim.tasks.learning.seen import Seen


def network_of(model: Classifier, shape: tuple[int, ...], labels: int) -> Network:
    """Return the model for what a client holds.

    Raises:
        InputError: the data have no labels, or the model cannot take them.
    """
    if labels < 2 or len(shape) < 2:
        raise InputError(
            "population.data: a model is trained on labelled samples; use kind: synthetic-digits, "
            "mnist or images"
        )
    return _network(model.written, type(model), shape[1:], labels)


@lru_cache(maxsize=16)
def _network(fields: str, cls: type[Classifier], shape: tuple[int, ...], labels: int) -> Network:
    return cls.model_validate_json(fields).network(shape, labels)


def held_out(setting: Setting) -> HeldOut:
    """Return the samples that a model is tested on.

    Raises:
        InputError: there are none.
    """
    if setting.held_out is None:
        raise InputError("population.data: there are no samples to test a model on")
    return setting.held_out


def refuse_no_clipping(mechanism: Mechanism) -> None:
    """Refuse a mechanism of no ball, or that refuses long gradients: nothing else bounds them.

    Raises:
        InputError: names the field.
    """
    if mechanism.domain.norm in ("binary", "category"):
        remedy = (
            f"it takes {mechanism.domain.describe()}, and gradients point anywhere; use one of a "
            "ball, such as rinf, r1, privunit or l2"
        )
        raise bad_field("mechanism.kind", mechanism.kind, remedy)
    if mechanism.on_out_of_range != "clip":
        remedy = (
            "gradients have no bound of their own; say on_out_of_range: clip, to mechanism.radius"
        )
        raise bad_field("mechanism.on_out_of_range", mechanism.on_out_of_range, remedy)


def learning_row(
    network: Network, setting: Setting, public: Arrays, callback: str | None
) -> pa.RecordBatch:
    """Return how a released model does on the test samples, and on those for validation."""
    samples = held_out(setting).test()
    found = score(network, public["theta"], samples)
    seen = ("validation_accuracy", "validation_loss")
    known: dict[str, Any] = {
        "round": int(public["rounds"]),
        "step_size": float(public["step_size"]),
        "test_accuracy": found.accuracy,
        "test_loss": found.loss,
        **{name: float(public[name]) for name in seen if name in public},
    }
    taken = (*streams.KEY, *known)
    return released(known | called(callback, network, public["theta"], samples, taken))


def training_row(rounds: int, truth: Truth, more: Mapping[str, float]) -> pa.RecordBatch:
    """Return how training went, as only a simulation knows.

    Args:
        rounds: so far.
        truth: of the release; its `seen` begins with `Seen`.
        more: further columns, or others in the place of the usual ones.
    """
    assert truth.seen is not None
    seen = Seen.of(truth.seen)
    so_far, whole = (
        held[:-1] / max(1, held[:-1].sum()) for held in (truth.so_far, truth.population)
    )
    usual = {
        "training_loss": seen.mean_loss,
        "training_accuracy": seen.accuracy,
        "gradient_norm": seen.mean_norm,
        "fraction_clipped": truth.clipped.rows / max(1, truth.clipped.values),
        "participants": truth.reports,
        "label_skew": float(np.abs(so_far - whole).sum() / 2.0),
    }
    return simulation_only({"round": rounds, **usual, **more})
