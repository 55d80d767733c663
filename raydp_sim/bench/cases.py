"""What the pipeline benchmark plays, and what it should reach."""

from dataclasses import dataclass, field, replace
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
        name: what `--case` calls it, and the floor by its first letter unless `floor` says so.
        title: what it is, in words.
        clients: how many there are.
        rounds: rounds of a measured segment for the actors, and for one process; the inline
            backend plays a quarter of the latter.
        data, mechanism: those sections of the scenario.
        per_actor: clients in one actor.
        more: further sections of the scenario.
        span: releases that go together; 1 also where each waits for the one before.
        servers: where the actors' servers are; short rounds that wait for each other do best
            with those in the driver.
        contenders: who is measured.
        floor: what the floor calls it.
        large: whether it is played only where it is named.
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
    span: int | str = 16
    servers: str = "actors"
    contenders: tuple[str, ...] = ("actors", "inline", "floor")
    floor: str = ""
    large: bool = False

    @property
    def floor_name(self) -> str:
        """What the floor calls it."""
        return self.floor or self.name[0]

    def scenario(self, backend: str, clients: int | None = None) -> Scenario:
        """Return the scenario that one of our backends plays."""
        return parse(
            {
                "name": f"bench-{self.name}",
                "seed": 1,
                "trust": "shuffle",
                "population": {"clients": clients or self.clients, "data": self.data},
                "mechanism": self.mechanism,
                "placement": {
                    "backend": backend,
                    "clients_per_actor": self.per_actor,
                    "span": self.span,
                    "servers": self.servers,
                },
                **self.more,
            }
        )


_PLAYED = (
    Case(
        "a",
        "2RR, 1,000,000 clients",
        1_000_000,
        (64, 32),
        {"kind": "bernoulli", "probability": 0.3},
        {"kind": "2rr", "epsilon_local": 1.0},
        Goals(rate=2.0, cpu=0.8, pss=2 << 30),
    ),
    Case(
        "b",
        "R^linf, d=1000, s=4, m=1, 100,000 clients",
        100_000,
        (64, 32),
        {"kind": "gaussian", "dimension": 1000, "clip": 1.0},
        {"kind": "linf", "radius": 1.0, "epsilon_local": 4.0, "coordinates": 4, "levels": 1},
        Goals(rate=1.5, cpu=1.0),
    ),
    Case(
        "c",
        "R^l2 with Hadamard rotation, d=1024, s=4, m=1, 100,000 clients",
        100_000,
        (16, 4),
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
        Goals(rate=2.5, cpu=0.7),
    ),
    Case(
        "d",
        "64 one-client actors, one 1 KB report each",
        64,
        (32, 1000),
        {"kind": "gaussian", "dimension": 128, "sd": 0.001, "clip": 0.0078125},
        {"kind": "laplace", "radius": 1.0, "epsilon_local": 4.0},
        Goals(actors=15.0),
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
    Case(
        "g",
        "2RR, 10,000,000 clients, inline",
        10_000_000,
        (4, 8),
        {"kind": "bernoulli", "probability": 0.3},
        {"kind": "2rr", "epsilon_local": 1.0},
        Goals(inline=100.0),
        contenders=("inline", "floor"),
        floor="a",
    ),
    Case(
        "h",
        "2RR, 100,000,000 clients, on the actors",
        100_000_000,
        (3, 1),
        {"kind": "bernoulli", "probability": 0.3},
        {"kind": "2rr", "epsilon_local": 1.0},
        Goals(actors=1000.0, pss=4 << 30),
        span=1,
        contenders=("actors",),
        large=True,
    ),
)


def _counting(case: Case, rate: float) -> Case:
    """Return a case whose shuffler hands out counts."""
    return replace(
        case,
        name=f"{case.name}-counts",
        title=f"{case.title}, counts",
        goals=Goals(rate=rate),
        more={"shuffle": {"output": "counts"}},
    )


def _served(case: Case) -> Case:
    """Return a case whose servers are in the driver; clients are actors as before."""
    return replace(
        case,
        name=f"{case.name}-driver",
        title=f"{case.title}, servers in the driver",
        servers="driver",
    )


def _adaptive(case: Case, goals: Goals) -> Case:
    """Return a case in which every release waits for the one before."""
    return replace(
        case,
        name=f"{case.name}-adaptive",
        title=f"{case.title}, release by release, servers in the driver",
        goals=goals,
        servers="driver",
        more={"task": {"kind": "raydp_sim.bench.adaptive:AdaptiveMean"}},
    )


def _all() -> dict[str, Case]:
    played = {case.name: case for case in _PLAYED}
    further = [
        _counting(played["a"], 4.0),
        _adaptive(played["a"], Goals(rate=0.8)),
        _counting(played["b"], 2.0),
        _adaptive(played["b"], Goals(rate=0.5)),
        _adaptive(played["c"], Goals(rate=2.0)),
        _adaptive(played["d"], Goals(actors=110.0)),
        *(_served(played[name]) for name in "abc"),
    ]
    return dict(sorted((played | {case.name: case for case in further}).items()))


CASES = _all()
