"""What the pipeline benchmark plays, and what it should reach."""

from dataclasses import dataclass, field
from typing import Any

from raydp_sim.scenario import Scenario, parse


@dataclass(frozen=True)
class Goals:
    """On 2 cores: None where no figure is asked for.

    Attributes:
        rate: least rounds of the actors per wall second, as a multiple of the floor's.
        cpu: most CPU-seconds of the actors per round, as a multiple of the floor's.
        pss: most bytes of the actors and the object store.
        actors: most wall milliseconds per round of the actors.
        inline: most wall milliseconds per round of the inline backend.
    """

    rate: float | None = None
    cpu: float | None = None
    pss: int | None = None
    actors: float | None = None
    inline: float | None = None

    def wall(self) -> dict[str, float]:
        """Return the milliseconds that are asked for, by contender."""
        asked = {"inline": self.inline, "actors": self.actors}
        return {name: most for name, most in asked.items() if most is not None}


@dataclass(frozen=True)
class Case:
    """One workload.

    Attributes:
        name: what `--case` and the floor call it.
        title: what it is, in words.
        clients: how many there are.
        rounds: rounds of a measured segment for the actors, and for one process; the inline
            backend plays a quarter of the latter.
        data, mechanism: those sections of the scenario.
        per_actor: clients in one actor.
        more: further sections of the scenario.
    """

    name: str
    title: str
    clients: int
    rounds: tuple[int, int]
    data: dict[str, Any]
    mechanism: dict[str, Any]
    goals: Goals = Goals()
    per_actor: int | str = "auto"
    more: dict[str, Any] = field(default_factory=dict)

    def scenario(self, backend: str, clients: int | None = None) -> Scenario:
        """Return the scenario that one of our backends plays."""
        return parse(
            {
                "name": f"bench-{self.name}",
                "seed": 1,
                "trust": "shuffle",
                "population": {"clients": clients or self.clients, "data": self.data},
                "mechanism": self.mechanism,
                "placement": {"backend": backend, "clients_per_actor": self.per_actor},
                **self.more,
            }
        )


CASES = {
    case.name: case
    for case in (
        Case(
            "a",
            "2RR, 1,000,000 clients",
            1_000_000,
            (20, 30),
            {"kind": "bernoulli", "probability": 0.3},
            {"kind": "2rr", "epsilon_local": 1.0},
            Goals(rate=0.4, cpu=3.0, pss=2 << 30),
        ),
        Case(
            "b",
            "R^linf, d=1000, s=4, m=1, 100,000 clients",
            100_000,
            (20, 30),
            {"kind": "gaussian", "dimension": 1000, "clip": 1.0},
            {"kind": "linf", "radius": 1.0, "epsilon_local": 4.0, "coordinates": 4, "levels": 1},
            Goals(rate=0.3, cpu=4.0),
        ),
        Case(
            "c",
            "R^l2 with Hadamard rotation, d=1024, s=4, m=1, 100,000 clients",
            100_000,
            (8, 4),
            {"kind": "gaussian", "dimension": 1024, "clip": 1.0, "norm": "l2"},
            {
                "kind": "l2",
                "radius": 1.0,
                "epsilon_local": 4.0,
                "coordinates": 4,
                "levels": 1,
                "rotation": "hadamard",
                "rotated_radius": 4.0,
            },
            Goals(rate=1.2, cpu=1.5),
        ),
        Case(
            "d",
            "64 one-client actors, one 1 KB report each",
            64,
            (8, 1000),
            {"kind": "gaussian", "dimension": 128, "sd": 0.001, "clip": 0.0078125},
            {"kind": "laplace", "radius": 1.0, "epsilon_local": 4.0},
            per_actor=1,
        ),
        Case(
            "e",
            "2RR, 100 clients, 1,000 rounds in all",
            100,
            (112, 448),
            {"kind": "bernoulli", "probability": 0.3},
            {"kind": "2rr", "epsilon_local": 1.0},
            Goals(actors=12.0, inline=3.0),
        ),
        Case(
            "f",
            "10 analysts at 10 levels, k=1000, 1,000,000 clients",
            1_000_000,
            (2, 4),
            {"kind": "categorical", "categories": 1000},
            {"kind": "hadamard-cascade", "categories": 1000},
            Goals(actors=10_000.0),
            more={
                "task": {"kind": "analysts"},
                "privacy": {"levels": [5.0, 4.5, 4.0, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5]},
            },
        ),
    )
}
