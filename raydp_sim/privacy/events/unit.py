"""The unit that an event protects."""

from dataclasses import dataclass, field
from typing import Literal

Unit = Literal["client", "item"]


@dataclass(frozen=True)
class Protected:
    """What every event says: which unit neighbours differ in."""

    unit: Unit = field(default="client", kw_only=True, repr=False)
