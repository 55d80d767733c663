"""Who reads at which level of privacy, which way keys take to them, and who is promoted when.

Analysts are numbered as levels are: analyst 1 is the least private, and the last level is public.
Readers are numbered as the protocol has them: reader 0 leads the run and is the public one, reader
j holds the keys of analyst j. Levels of mechanisms begin with 0.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Promoting:
    """One analyst is let in on more, from a release on.

    Attributes:
        analyst: its number, from 2: its level before.
        to: number of its level afterwards, from 1 and smaller.
        release: with which release, from 1: keys for reports of earlier ones are sent with it.
    """

    analyst: int
    to: int
    release: int


@dataclass(frozen=True)
class Levels:
    """The readers of one stream of reports.

    Attributes:
        epsilons: loss of every level, falling; the last one is public.
        direct: whether keys go straight from clients to readers; otherwise sealed, by the shuffler.
        promotions: of analysts, at most one of each.

    Example:
        >>> levels = Levels((2.0, 1.0, 0.5), promotions=(Promoting(2, 1, release=4),))
        >>> levels.names
        ('public', 'analyst-1', 'analyst-2')
        >>> [levels.level(2, release) for release in (3, 4)]
        [1, 0]
    """

    epsilons: tuple[float, ...]
    direct: bool = False
    promotions: tuple[Promoting, ...] = field(default=())

    @property
    def public(self) -> int:
        """Number of the public level."""
        return len(self.epsilons) - 1

    @property
    def names(self) -> tuple[str, ...]:
        """Of the readers; the public one leads the run."""
        return ("public", *(f"analyst-{number}" for number in range(1, len(self.epsilons))))

    @property
    def loudest(self) -> int:
        """The least private level that hides anything: an infinite one is meant to hide nothing."""
        return next(level for level, loss in enumerate(self.epsilons) if loss < float("inf"))

    def level(self, reader: int, release: int) -> int:
        """Return the level at which a reader reads the reports of a release when they come."""
        if reader == 0:
            return self.public
        promoted = self.promotion(reader)
        if promoted is not None and release >= promoted.release:
            return promoted.to - 1
        return reader - 1

    def tells_all(self, reader: int) -> bool:
        """Say whether nothing is hidden from a reader in the end: its level is infinite."""
        promoted = self.promotion(reader)
        last = self.level(reader, 0 if promoted is None else promoted.release)
        return self.epsilons[last] == float("inf")

    def promotion(self, reader: int) -> Promoting | None:
        """Return when and to where a reader is promoted; None if it never is."""
        return next((each for each in self.promotions if each.analyst == reader), None)

    def due(self, release: int) -> tuple[Promoting, ...]:
        """Return who is promoted with a release."""
        return tuple(each for each in self.promotions if each.release == release)

    def keeps(self, reader: int, release: int) -> bool:
        """Say whether a reader has to keep the reports of a release, for a promotion to come."""
        promoted = self.promotion(reader)
        return promoted is not None and release < promoted.release
