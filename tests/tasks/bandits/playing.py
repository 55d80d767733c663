"""Small scenarios that play bandits on the actors."""

from raydp_sim.scenario import parse

ACTIONS = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-0.6, 0.8], [-1.0, 0.0]]
MECHANISMS = {
    "shuffle": {"kind": "laplace", "radius": 1.0, "target": {"epsilon": 3.0, "delta": 1e-6}},
    "local": {"kind": "laplace", "radius": 1.0, "epsilon_local": 3.0},
    "central": {"kind": "central-laplace", "radius": 1.0, "epsilon": 3.0},
}
INLINE = {"backend": "inline", "checkpoint_seconds": 0.0}
FEATURES = [
    [[-0.518, -0.855], [-0.248, 0.42], [0.995, 0.096], [-0.553, -0.785]],
    [[0.416, 0.909], [0.216, -0.976], [-0.514, 0.858], [0.116, -0.993]],
    [[-0.072, -0.997], [-0.629, -0.488], [-0.713, 0.553], [-0.063, -0.589]],
]
SHARES = [0.5, 0.3, 0.2]
THETA = [0.408, 0.802]


def document(trust="shuffle", clients=600, task=(), population=(), **sections):
    """Return a scenario of a linear bandit as a file has it."""
    data = {"kind": "linear-rewards", "theta": [0.8, -0.3]}
    return {
        "name": "bandit",
        "seed": 11,
        "trust": trust,
        "population": {"clients": clients, "data": data, **dict(population)},
        "task": {"kind": "bandit", "actions": ACTIONS, **dict(task)},
        "mechanism": MECHANISMS[trust],
        "placement": INLINE,
        **sections,
    }


def bandit(*args, **sections):
    """Return a scenario of a linear bandit."""
    return parse(document(*args, **sections))


def contextual(trust="shuffle", clients=600, task=(), population=(), **sections):
    """Return a scenario of the contextual bandit of three contexts and four actions."""
    data = {"kind": "contextual-rewards", "theta": THETA, "probabilities": SHARES}
    known = {"kind": "contextual-bandit", "features": FEATURES, "probabilities": SHARES}
    found = document(trust, clients, **sections)
    found["population"] = {"clients": clients, "data": data, **dict(population)}
    found["task"] = {**known, **dict(task)}
    return parse(found)
