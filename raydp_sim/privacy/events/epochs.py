"""Epochs of noisy steps of which only the end is seen."""

from dataclasses import dataclass, field

from raydp_sim.privacy.checks import check_real, check_whole
from raydp_sim.privacy.events.unit import Protected, Unit


@dataclass(frozen=True)
class EpochRelease(Protected):
    """A trusted learner took an epoch of noisy steps, one record each, and may show where it ended.

    Steps must be non-expansive but for their noise, which all of them have. The first `private` go
    along private records, each used once, in an order that anybody may know. Neighbours replace one
    record. The view is the iterate at the end of the epoch, or less; those inside it are not seen.
    Charged: everyone whose record was held.

    Attributes:
        noise_multiplier: of a step, noise over how far one record moves it (sigma/(2 G)).
        steps: n >= 1.
        private: n_d in [0, n].

    Example:
        >>> EpochRelease(1.5, steps=1000, private=500).tail
        501
    """

    noise_multiplier: float
    steps: int
    private: int
    unit: Unit = field(default="item", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)
        check_whole(self, "steps")
        check_whole(self, "private", most=self.steps, least=0)

    @property
    def tail(self) -> int:
        """Noisy steps from the last private record on, its own included."""
        return self.steps + 1 - self.private


@dataclass(frozen=True)
class SecretEpochRelease(Protected):
    """As `EpochRelease`, in an order that is uniform and unknown to whoever sees the iterates.

    Where several epochs share one order, each of them is charged an even part of all: together they
    cost no more, and fewer of them less.

    Attributes:
        noise_multiplier, steps, private: as for `EpochRelease`.
        epochs: that share the order: 1 where each has its own.

    Example:
        >>> SecretEpochRelease(1.5, steps=1000, private=500).epochs
        1
    """

    noise_multiplier: float
    steps: int
    private: int
    epochs: int = 1
    unit: Unit = field(default="item", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)
        check_whole(self, "steps")
        check_whole(self, "private", most=self.steps, least=0)
        check_whole(self, "epochs")
