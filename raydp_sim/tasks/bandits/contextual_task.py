"""The contextual bandit as a task, with a law of contexts that is known, or sampled in public."""

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from raydp_sim.tasks.bandits.context_law import from_sample
from raydp_sim.tasks.bandits.contextual import Contexts
from raydp_sim.tasks.bandits.policies import PolicyBandit, check_short
from raydp_sim.tasks.bandits.streams import Certified
from raydp_sim.tasks.base import Arrays, Setting

KNOWN = {"probabilities": [0.4, 0.6]}


class ContextualBandit(PolicyBandit):
    """Finds the policy that earns most, with contexts of a known law that stay with clients.

    See `PolicyBandit` for how it goes. Where the law is not known it is estimated from a public
    sample, and the certificate carries what may be wrong with it; or clients are asked for their
    contexts first (`asking-bandit`).

    Fields:
        probabilities: of the contexts, as they are taken to be known; the certificate holds if
            they are the clients'. Either this or `sample`.
        sample: how often each context is in a public sample, of none of the clients.

    Example:
        >>> task = ContextualBandit(features=[[[0.6, 0.0], [0.0, 0.8]], [[-0.5, 0.5], [0.3, 0.3]]],
        ...                         probabilities=[0.4, 0.6])
        >>> task.vectors().shape, task.named(())[:2]
        ((4, 2), ('1-0', '0-0'))
    """

    kind: ClassVar[str] = "contextual-bandit"
    examples: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {
            "task": {
                "features": [[[0.6, 0.0], [0.0, 0.8]], [[-0.5, 0.5], [0.3, 0.3]]],
                "rounds": 6,
                **law,
            },
            "population": {
                "clients": 120,
                "data": {
                    "kind": "contextual-rewards",
                    "theta": [0.5, 0.6],
                    "probabilities": [0.4, 0.6],
                },
            },
            "trust": trust,
            "mechanism": {"radius": 1.0, **mechanism},
        }
        for trust, law, mechanism in (
            ("shuffle", KNOWN, {"kind": "laplace", "target": {"epsilon": 3.0, "delta": 1e-6}}),
            ("central", KNOWN, {"kind": "central-laplace", "epsilon": 1.0}),
            ("local", {"sample": [40, 60]}, {"kind": "laplace", "epsilon_local": 2.0}),
        )
    )

    probabilities: list[Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None
    sample: Annotated[list[Annotated[int, Field(ge=0)]] | None, Field(validate_default=True)] = None

    @field_validator("probabilities")
    @classmethod
    def _fit(cls, probabilities: list[float] | None, info: ValidationInfo) -> list[float] | None:
        if probabilities is not None and "features" in info.data:  # else refused by itself
            Contexts(np.array(info.data["features"]), np.array(probabilities))
        return probabilities

    @field_validator("sample")
    @classmethod
    def _counted(cls, sample: list[int] | None, info: ValidationInfo) -> list[int] | None:
        if not {"features", "probabilities"} <= set(info.data):
            return sample  # one of them is refused by itself
        features, known = info.data["features"], info.data["probabilities"]
        if (known is None) == (sample is None):
            raise ValueError("give either task.probabilities or task.sample")
        if known is None:
            check_short(features)
        if sample is not None:
            if len(sample) != len(features):
                raise ValueError(f"give a count for each of {len(features)} contexts")
            if not any(sample):
                raise ValueError("it is empty; give task.probabilities, or a larger one")
        return sample

    @property
    def contexts(self) -> Contexts:
        """Features, with the law that is known, or the shares of the sample."""
        seen = self.probabilities or self.sample or []  # one of them is there
        return Contexts(np.array(self.features), np.array(seen) / sum(seen))

    @property
    def law_known(self) -> bool:
        """Not if it is of a sample."""
        return self.probabilities is not None

    def rests_on(self, setting: Setting, made: Arrays) -> Certified:
        """Return how far a sample may be off."""
        if self.sample is None:
            return Certified()
        problem = self.problem(setting)
        beta = 1.0 / problem.horizon
        found = from_sample(np.array(self.features), np.array(self.sample), beta)
        return Certified(found.misspecification(problem.rewards), beta)
