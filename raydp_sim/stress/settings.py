"""What the settings are called that advice may name: pieces differ in the fields they have."""

from dataclasses import dataclass

from raydp_sim.scenario import Scenario


@dataclass(frozen=True)
class Settings:
    """Names of settings that one scenario really has.

    Attributes:
        size: how many reports a batch is to have; None where that is left to who is there.
        larger: the setting to raise for larger batches.
        reach: when clients are there.
        loss: what a report may reveal, or the whole run.
    """

    size: str | None
    larger: str
    reach: str
    loss: str

    @classmethod
    def of(cls, scenario: Scenario) -> "Settings":
        """Return the names for a scenario.

        Example:
            >>> from raydp_sim.scenario import parse
            >>> data = {"kind": "bernoulli", "probability": 0.5}
            >>> tiny = {"name": "a", "population": {"clients": 5, "data": data},
            ...         "mechanism": {"kind": "2rr", "epsilon_local": 1.0}}
            >>> coins = {"kind": "self", "probability": 0.5}
            >>> found = Settings.of(parse({**tiny, "participation": coins}))
            >>> found.size, found.larger
            (None, 'participation.probability')
        """
        policy, mechanism = scenario.participation, scenario.mechanism
        # A policy without a size of its own calls itself sized by its kind.
        size = None if policy.sized_by == "kind" else f"participation.{policy.sized_by}"
        larger = size or "population.clients"
        if size is None and getattr(policy, "probability", 1.0) < 1.0:
            larger = "participation.probability"
        classes = bool(scenario.population.classes)
        field = mechanism.epsilon_field if mechanism.target is None else "target.epsilon"
        return cls(
            size=size,
            larger=larger,
            reach="population.classes" if classes else "population.availability",
            loss=f"mechanism.{field}",
        )
