"""What is killed when: drawn from a seed, before anything is played."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

KINDS = ("client", "shuffler", "aggregator", "ledger", "metrics", "node", "driver")
_DELAY_SECONDS = 0.2  # at most, so that a kill may come at any moment of a release


@dataclass(frozen=True)
class Kill:
    """One kill.

    Attributes:
        kind: of whom.
        after: rows that are played before it, counted from the kill before.
        pick: in [0, 1): which of several.
        delay: seconds after that row.
    """

    kind: str
    after: int
    pick: float
    delay: float


def planned(kinds: Sequence[str], kills: int, seed: int, apart: int) -> list[Kill]:
    """Draw kills; every kind comes as often as any other, give or take one.

    Args:
        kinds: of `KINDS`.
        kills: how many.
        seed: of the draws.
        apart: rows between two of them, on average.

    Example:
        >>> plan = planned(["client", "driver"], 5, seed=1, apart=3)
        >>> sorted(kill.kind for kill in plan)
        ['client', 'client', 'client', 'driver', 'driver']
        >>> plan == planned(["client", "driver"], 5, seed=1, apart=3)
        True
    """
    dice = random.Random(seed)
    order = [kinds[number % len(kinds)] for number in range(kills)]
    dice.shuffle(order)
    return [
        Kill(kind, dice.randint(1, max(1, 2 * apart - 1)), dice.random(), _delay(dice))
        for kind in order
    ]


def _delay(dice: random.Random) -> float:
    return dice.random() * _DELAY_SECONDS
