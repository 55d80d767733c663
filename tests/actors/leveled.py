"""A small scenario with analysts at several levels, for the tests of who is handed what."""

from raydp_sim.scenario import parse

CATEGORIES = 10


def analysts(trust="shuffle", clients=400, rounds=5, **sections):
    """Return a scenario of three levels; sections given by name replace the defaults."""
    document = {
        "name": "leveled",
        "seed": 11,
        "trust": trust,
        "population": {
            "clients": clients,
            "data": {"kind": "categorical", "categories": CATEGORIES},
        },
        "task": {"kind": "analysts", "rounds": rounds},
        "mechanism": {"kind": "hadamard-cascade", "categories": CATEGORIES},
        "privacy": {"levels": [3.0, 2.0, 1.0]},
        "placement": {"backend": "inline"},
    }
    return parse({**document, **sections})


def promoting(trust="shuffle", clients=400, rounds=5, **sections):
    """Return the same with vehicles that come and go, data that drift, and one promotion."""
    data = {"kind": "drifting", "samples": rounds}
    data |= {"first": [8, 4, 2, 1] + [0.5] * 6, "last": [1, 2, 4, 8] + [0.5] * 6}
    population = {
        "clients": clients,
        "data": data,
        "availability": {"kind": "bernoulli", "probability": 0.7},
    }
    privacy = {
        "levels": [3.0, 2.0, 1.0],
        "promotions": [{"analyst": 2, "to": 1, "release": 3}],
        **sections.pop("privacy", {}),
    }
    return analysts(trust, clients, rounds, population=population, privacy=privacy, **sections)
