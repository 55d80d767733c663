"""What a client does to a value before it leaves: one mechanism per file, found by its kind."""

from typing import Any

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.registry import Registry

# The base is only compared with, so it may be abstract.
MECHANISMS = Registry("raydp_sim.mechanisms", Mechanism)  # type: ignore[type-abstract]


def make(kind: str, **parameters: Any) -> Mechanism:
    """Build a mechanism by kind and check its parameters.

    Example:
        >>> make("2rr", epsilon_local=1.0).bits
        1
    """
    mechanism: Mechanism = MECHANISMS.parse({"kind": kind, **parameters})
    return mechanism
