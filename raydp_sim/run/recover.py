"""Recovery without the user: how often a run is taken up by itself, and what is shown of that."""

from raydp_sim.actors.conductor import Row
from raydp_sim.errors import Died, RunError
from raydp_sim.run.checkpoints import Checkpoint


class Recoveries:
    """Counts deaths with no checkpoint in between: a run that comes further is never given up.

    Example:
        >>> left = Recoveries(allowed=1)
        >>> left.grant(Died("a shuffler died"))
        >>> left.grant(Died("a shuffler died"))
        Traceback (most recent call last):
        raydp_sim.errors.RunError: a shuffler died, though it was taken up once since the last \
checkpoint (placement.recoveries)
        >>> left.checkpointed()
        >>> left.grant(Died("a shuffler died"))
    """

    def __init__(self, allowed: int) -> None:
        self.allowed, self.in_a_row = allowed, 0

    @property
    def spent(self) -> bool:
        """Whether the next death ends the run."""
        return self.in_a_row >= self.allowed

    def grant(self, died: Died) -> None:
        """Allow one more.

        Raises:
            RunError: there were as many as are allowed; the run can be resumed.
        """
        if self.spent:
            raise RunError(f"{died}{self._already()}")
        self.in_a_row += 1

    def checkpointed(self) -> None:
        """Note that the run has come further."""
        self.in_a_row = 0

    def _already(self) -> str:
        if not self.in_a_row:
            return ""
        often = "once" if self.in_a_row == 1 else f"{self.in_a_row} times"
        return f", though it was taken up {often} since the last checkpoint (placement.recoveries)"

    def line(self, died: Died, played: int, start: Checkpoint, repeat: int) -> str:
        """Say what happened.

        Args:
            died: who.
            played: releases of the repetition that were shown.
            start: where the run is taken up.
            repeat: how many repetitions there are.

        Example:
            >>> left = Recoveries(allowed=3)
            >>> left.grant(died := Died("...", who="shuffler"))
            >>> left.line(died, 11, Checkpoint(0, 10), 1)
            'shuffler died at release 12: taken up after release 10, 1 of 3'
        """
        where = f"release {start.finished}" if start.finished else "no release"
        of = f" of repetition {start.repetition + 1}" if repeat > 1 else ""
        times = f"{self.in_a_row} of {self.allowed}"
        return f"{died.who} died at release {played + 1}: taken up after {where}{of}, {times}"


class Shown:
    """Lets each row through once, however often its release is played.

    It remembers rows since the checkpoint before the last, the earliest that a run is taken up
    from unless its files are damaged. Rows are shown some time after a checkpoint that has them,
    and those of a run that was taken up some time before one that has them again.

    Example:
        >>> shown = Shown()
        >>> [shown.first(dict(repetition=0, release=number)) for number in (0, 1, 1)]
        [True, True, False]
        >>> for finished in (1, 1, 1):
        ...     shown.checkpointed(0, finished)
        >>> shown.first(dict(repetition=0, release=1))
        False
    """

    def __init__(self) -> None:
        self.reached = (0, 0)  # the repetition under way, and its releases
        self._rows: set[tuple[int, int]] = set()
        self._last = (0, 0)

    def first(self, row: Row) -> bool:
        """Say whether a row has not been shown, and remember it."""
        key = (row["repetition"], row["release"])
        if key in self._rows:
            return False
        self._rows.add(key)
        self.reached = (row["repetition"], row["release"] + 1)
        return True

    def checkpointed(self, repetition: int, finished: int) -> None:
        """Forget rows that will not be played again, now that so much is in a checkpoint."""
        self._rows = {key for key in self._rows if key >= self._last}
        self._last = (repetition, finished)
