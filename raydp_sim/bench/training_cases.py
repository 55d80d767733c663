"""What the training benchmark plays, and what it should reach."""

from dataclasses import dataclass, replace
from typing import Any

from raydp_sim.scenario import Scenario, parse

_PRIVATE = {"kind": "rinf", "radius": 0.01, "epsilon_local": 2.0, "on_out_of_range": "clip"}
# Noise that is added once, by the aggregator, to an exact sum: clients only compute.
_PLAIN = {
    "kind": "central-gaussian",
    "radius": 10.0,
    "epsilon": 10.0,
    "delta": 1e-12,
    "on_out_of_range": "clip",
}


@dataclass(frozen=True)
class Case:
    """One workload.

    Attributes:
        name: what `--case` calls it.
        title: what it is, in words.
        floor: what the floor calls its kernel.
        cohort, clients: how many train in a round, and how many there are.
        rounds: of a measured segment.
        task, mechanism, trust: of the scenario.
        goal: least rounds per second, as a multiple of the floor's.
        samples: that there are in all; clients share them where they hold more.
        same: what the floor calls the kernel that our clients use, where it is another.
    """

    name: str
    title: str
    floor: str
    cohort: int
    clients: int
    rounds: int
    task: dict[str, Any]
    mechanism: dict[str, Any]
    trust: str = "shuffle"
    goal: float | None = None
    samples: int = 60_000
    same: str | None = None

    def scenario(self) -> Scenario:
        """Return what the actors play: samples of 28 x 28 that need no files."""
        points = 60 if self.task["kind"] == "fedavg" else 1
        data = {
            "kind": "synthetic-digits",
            "n": self.samples,
            "side": 28,
            "points": points,
            "test": 100,
            "overlap": points * self.clients > self.samples,
        }
        document: dict[str, Any] = {
            "name": f"bench-{self.name}",
            "seed": 1,
            "trust": self.trust,
            "task": {"rounds": 1000, "evaluate_every": 1000, **self.task},
            "population": {"clients": self.clients, "data": data},
            "mechanism": self.mechanism,
            "placement": {"backend": "ray", "servers": "driver"},
        }
        if self.cohort < self.clients:
            document["participation"] = {"kind": "uniform", "sampled": self.cohort}
        return parse(document)


# Steps so small that noise never leads a model astray, which would end the run.
_LINEAR = {"kind": "fedavg", "model": {"kind": "linear"}, "steps": 1, "step_size": 0.001}
_CNN = {"kind": "cldp-sgd", "model": {"kind": "cnn"}, "step_size": 0.1}


def _linear(name: str, cohort: int, clients: int, rounds: int, private: bool, goal: float) -> Case:
    how = "clip, R_inf, shuffle" if private else "plain"
    floor = "linear-private" if private else "linear"
    return Case(
        name,
        f"linear softmax, 60 samples a client, {cohort:,} of {clients:,}, {how}",
        floor,
        cohort,
        clients,
        rounds,
        _LINEAR,
        _PRIVATE if private else _PLAIN,
        "shuffle" if private else "central",
        goal,
        same=f"{floor}-compiled",
    )


_LARGE = Case(
    "cnn",
    "CNN, one sample a client, 10,000 of 60,000, clip, R_inf, shuffle",
    "cnn",
    10_000,
    60_000,
    4,
    _CNN,
    _PRIVATE,
    goal=0.9,
)
CASES = {
    case.name: case
    for case in (
        _linear("plain-100", 100, 1_000, 40, False, 0.5),
        _linear("plain-1000", 1_000, 10_000, 8, False, 0.8),
        _linear("private-100", 100, 1_000, 40, True, 0.5),
        _linear("private-1000", 1_000, 10_000, 8, True, 0.8),
        _LARGE,
    )
}
# The same cohort of ever larger populations; the first is what the others are compared with.
GROWING = tuple(
    replace(
        _linear(f"of-{clients}", 100, clients, 40, True, 0.5),
        goal=None,
        title=f"linear softmax, 60 samples a client, 100 of {clients:,}, clip, R_inf, shuffle",
    )
    for clients in (1_000, 10_000, 100_000)
)
# How much slower the largest population may be, and how much more a tenfold cohort may hold.
FLAT, BOUNDED = 1.25, 1.25
# An actor's memory while cohorts of two sizes are trained on: only tiles of gradients may be held.
HOLDING = (
    replace(
        _LARGE,
        name="cnn-1000",
        title=_LARGE.title.replace("10,000", "1,000"),
        cohort=1_000,
        goal=None,
    ),
    _LARGE,
)
