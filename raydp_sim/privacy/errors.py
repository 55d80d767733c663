"""What a bound raises where it is not proved, and what is raised where it is wrong."""

from raydp_sim.errors import RunError


class Unsupported(ValueError):
    """The bound is not proved for this randomizer, neighbouring relation or sampling."""


class NotApplicable(ValueError):
    """The bound is proved for this kind of input, but its stated condition does not hold here."""


class Contradiction(RunError):
    """A bound said less than what the same events cost at least, so the bound is wrong.

    There is nothing to fall back on: whoever asked gets no number at all, and trying again ends the
    same way.

    Attributes:
        bound: name of what said so.
        value: epsilon that it said.
        floor: epsilon that no correct bound falls below (privacy.floors).
        delta: at which both are meant.
        events: of the run, in words.

    Example:
        >>> print(Contradiction("pld-clones", 0.0, 0.25, 1e-6, "2 x Shuffle(...)"))
        this is a bug in the bound pld-clones; nothing was reported: it says epsilon 0 at delta \
1e-06 for 2 x Shuffle(...), which costs at least 0.25
    """

    def __init__(self, bound: str, value: float, floor: float, delta: float, events: str) -> None:
        super().__init__(
            f"this is a bug in the bound {bound}; nothing was reported: it says epsilon {value:g} "
            f"at delta {delta:g} for {events}, which costs at least {floor:g}",
            resumable=False,
        )
        self.bound, self.value, self.floor = bound, value, floor
        self.delta, self.events = delta, events

    def __reduce__(self) -> tuple[type["Contradiction"], tuple[str, float, float, float, str]]:  # type: ignore[override]
        return type(self), (self.bound, self.value, self.floor, self.delta, self.events)
