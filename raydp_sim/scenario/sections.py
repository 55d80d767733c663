"""The small sections of a scenario file."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from raydp_sim.model import Model


class Section(Model):
    """A part of the file."""


class Shuffle(Section):
    """The shuffler of the shuffle model.

    Fields:
        shufflers: actors that share the shuffling; the result does not depend on it.
        min_batch: a batch with fewer clients is never released. 1; with a `mechanism.target`, whose
            noise is chosen for batches of this size, half of the batch that is expected, or six
            standard deviations below it if that is less.
    """

    shufflers: Annotated[int, Field(ge=1, le=64)] = 1
    min_batch: Annotated[int, Field(ge=1)] = 1


class Budget(Section):
    """What the whole run may cost one client.

    Fields:
        epsilon: of everything the client takes part in.
        delta: that goes with it; 0 counts pure losses only.
    """

    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Privacy(Section):
    """How privacy is reported, and what it may cost a client.

    Fields:
        delta: the largest failure probability that the whole run may end with; shuffled releases
            are accounted at it.
        honest_fraction: share of every batch that does not collude; only those hide a client.
        bound: which bound to report; `best`, the smallest one that is proved, is the only
            choice so far.
        guarantee: `required`, or `none` to say in so many words that a run claims no privacy:
            then, and only then, a mechanism without a guarantee may be used, epsilon is infinite
            everywhere, and nothing that has a guarantee may be mixed with it.
        budget: `{epsilon, delta}` of every client: who cannot afford the next release, should its
            batch be the smallest that is released, stays home; none unless given.
    """

    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    honest_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    bound: Literal["best"] = "best"
    guarantee: Literal["required", "none"] = "required"
    budget: Budget | None = None

    @model_validator(mode="after")
    def _budget_within_delta(self) -> "Privacy":
        if self.budget is not None and self.budget.delta > self.delta:
            raise ValueError(
                f"budget.delta is {self.budget.delta:g}; it must be at most privacy.delta, which "
                f"is {self.delta:g}"
            )
        return self


class Placement(Section):
    """Where the run takes place; nothing here changes a result.

    Fields:
        backend: `ray`, or `inline` for one process without Ray.
        clients_per_actor: clients in one actor; `auto` makes one actor per CPU of the
            cluster, 1 makes each client a process of its own.
        checkpoint_seconds: least wall-clock time between two checkpoints; 0 makes one per release.
        start_timeout: seconds that Ray may take to start.
    """

    backend: Literal["ray", "inline"] = "ray"
    clients_per_actor: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    checkpoint_seconds: Annotated[float, Field(ge=0)] = 1.0
    start_timeout: Annotated[float, Field(gt=0)] = 90.0


class Metrics(Section):
    """What analysts see while it happens.

    Fields:
        serve: whether rows are also served live; only `false` so far, rows go to Parquet.
    """

    serve: Literal[False] = False
