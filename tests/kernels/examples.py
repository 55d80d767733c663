"""What every mechanism sends and learns in each of its examples: python -m tests.kernels.examples.

The clients' numbers are handed in as doubles and as single floats, as gradients come.
"""

import json
from collections.abc import Iterator

import numpy as np

from raydp_sim.check.samples import SERVER, inputs, repeated
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.random import Stream
from tests.kernels.cases import digest


def sent(mechanism: Mechanism) -> Iterator[np.ndarray]:
    """What clients send, as it is and packed, what readers count of it, and what they learn."""
    clients = getattr(mechanism, "voters", 70)
    values = repeated(inputs(mechanism.domain), clients)
    ids = np.arange(5, 5 + clients)
    clipped = {"on_out_of_range": "clip"} if mechanism.domain.norm in ("l2", "linf") else {}
    for given in (values, 1.5 * values.astype(np.float32) if clipped else values):
        held = mechanism.domain.admit(given, ids, **clipped)
        yield held
        made = mechanism.messages(held.copy(), Stream(7).at("randomize", 1).clients(ids)).payload
        yield from (made, mechanism.encode(made))
        index = np.tile(np.arange(mechanism.messages_per_report), clients)
        counts = mechanism.fold(mechanism.zero(), index, made.reshape(-1, *made.shape[2:]))
        yield from (counts, mechanism.decode(counts, SERVER))


def examples() -> Iterator[tuple[str, Mechanism]]:
    for kind, cls in MECHANISMS.kinds.items():
        for number, example in enumerate(cls.examples):
            yield f"{kind} {number}", cls.model_validate(example)


def all_digests() -> dict[str, str]:
    return {name: digest(sent(mechanism)) for name, mechanism in examples()}


if __name__ == "__main__":
    print(json.dumps(all_digests()))
