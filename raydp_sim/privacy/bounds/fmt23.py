"""The divergence of a shuffle in closed form, by Feldman, McMillan and Talwar 2023."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.local import constants
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Shuffle

_LIMIT = {48: 16.0, 768: 32.0}


@dataclass(frozen=True)
class Fmt23(RdpBound):
    """Bound D_alpha by 48 alpha v0/n for real alpha <= n/(16 epsilon0 E).

    000 Lemma 3.3.2; 003 Lemma 5 quotes 768 and n/(32 epsilon0 E).

    Attributes:
        constant: 48 or 768.

    Example:
        >>> round(Fmt23().rdp(Shuffle(1.0, 10_000), 2), 9)
        0.010427148
    """

    name: ClassVar[str] = "fmt23"
    events = (Shuffle,)
    source = "000 Lemma 3.3.2; 003 Lemma 5"
    real_orders = True
    constant: Literal[48, 768] = 48

    def one(self, event: Shuffle, alpha: float) -> float:
        """Return the bound at one order."""
        limit = fmt23_limit(event.epsilon0, event.n, self.constant)
        if alpha > limit:
            raise NotApplicable(f"fmt23 needs alpha <= {limit:g}; alpha is {alpha:g}")
        return self.constant * alpha * constants(event.epsilon0).v0 / event.n


def fmt23_limit(epsilon0: float, n: int, constant: int = 48) -> float:
    """Return the largest order of the closed form; inf at epsilon0 = 0.

    Example:
        >>> round(fmt23_limit(1.0, 10_000), 3)
        229.925
    """
    if epsilon0 == 0.0:
        return math.inf
    return n / (_LIMIT[constant] * epsilon0 * math.exp(epsilon0))
