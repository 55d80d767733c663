"""Mechanisms whose one public report is read at several levels of privacy, by who holds which key.

The report is public and has the least loss, that of the last level. Beside it a client draws a key
for every level above, without looking at its value. A reader who is handed the key of its level
opens the report: what it then sees loses that level's epsilon, and is again a symbol of the same
alphabet, so wire, accumulator and `fold` are the mechanism's own for everybody. What a level's
reader computes from its counts is its `view`.
"""

import itertools
import math
from abc import abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Floats, Mechanism, Messages
from raydp_sim.mechanisms.parts.budget import SLACK
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# Where the noise of a report is so nearly everything that nothing can be estimated.
LEAST = 1e-6

Keys = NDArray[Any]
"""Unsigned integers of `key_bits` bits; the public level's key is always 0."""


class Released(NamedTuple):
    """What clients send: `payload[i]` to everybody, `keys[i, level]` to that level's readers."""

    payload: NDArray[Any]
    keys: Keys


class View(Protocol):
    """What a level's reader computes from the reports that it has opened."""

    @property
    def loss(self) -> float:
        """Exact loss of the view; infinite where it shows the value itself."""

    @property
    def span(self) -> float:
        """By how much an entry of one decoded report can vary, for the radius of heavy hitters."""

    def decode(self, counts: Counts) -> Floats:
        """Estimate the mean of the clients' values, as `Mechanism.decode` does."""

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return the variance of each coordinate of that estimate at these means."""

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""

    def worst_mse(self) -> float:
        """Return the largest of these errors."""

    def laws(self, values: Floats) -> list[Floats]:
        """Return the exact probabilities of what is seen after opening."""


class Leveled(Mechanism):
    """A mechanism with keys. A subclass has `levels`, `released`, `keys`, `opened` and `view`."""

    @property
    @abstractmethod
    def levels(self) -> tuple[float, ...]:
        """Loss of every level, falling; the last one is public and is `epsilon_local`."""

    @property
    def public(self) -> int:
        """Number of the public level, the last one."""
        return len(self.levels) - 1

    @property
    @abstractmethod
    def key_bits(self) -> int:
        """Bits of one report's key for one level."""

    @property
    @abstractmethod
    def key_entropy(self) -> float:
        """Bits of randomness that a report draws in all, public draws such as columns left out."""

    @property
    def entropy(self) -> float:
        """Bits of randomness that a report draws in all."""
        return self.key_entropy

    @abstractmethod
    def released(self, values: Floats, stream: ClientStream) -> Released:
        """Randomize admitted values, and return the keys of all levels with the reports."""

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Randomize admitted values; the keys of the levels come along."""
        released = self.released(values, stream)
        return Messages(released.payload, keys=released.keys)

    @abstractmethod
    def keys(self, stream: ClientStream) -> Keys:
        """Draw the keys of `released` again, without the values: shape (n, levels)."""

    def promotion(self, stream: ClientStream, held: int, wanted: int) -> Keys:
        """Return what takes readers from one level to a less private one: one more key each.

        With it a reader's key becomes `key ^ promotion`. It says nothing of any other level.

        Raises:
            InputError: where the wanted level is not above the one that is held.
        """
        self.check_level(held)
        self.check_level(wanted)
        if wanted >= held:
            raise InputError(
                f"wanted is level {wanted}, but level {held} is held already; a promotion leads to "
                "a smaller number, where less is hidden"
            )
        keys = self.keys(stream)
        return np.asarray(keys[:, wanted] ^ keys[:, held])

    @abstractmethod
    def opened(self, payload: NDArray[Any], keys: Keys, level: int) -> NDArray[Any]:
        """Return the reports as a level's readers see them; `keys` is their column, one per report.

        Raises:
            InputError: where there is no such level, or not one key per report.
        """

    @abstractmethod
    def view(self, level: int) -> View:
        """Return what the readers of a level compute.

        Raises:
            InputError: where there is no such level.
        """

    def event_at(self, level: int) -> LocalReport:
        """Return a report's exact loss to the readers of a level, rounded up.

        Any group of readers together sees as much as the least private of them, no more: all other
        keys of the group are noise on top of what that one sees.
        """
        # A view's probabilities come of as many roundings as there are levels.
        exact = self.view(level).loss * (1.0 + 2.0 * SLACK) + len(self.levels) * 2.0**-50
        return LocalReport(min(self.levels[level], exact))

    # As a mechanism without keys, it is what the public sees.

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean from public reports."""
        return self.view(self.public).decode(counts)

    def event(self) -> LocalReport:
        """Return the public report's exact loss, rounded up."""
        return self.event_at(self.public)

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error in the public estimate."""
        return self.view(self.public).mse(values)

    def worst_mse(self) -> float:
        """Return the largest of these errors."""
        return self.view(self.public).worst_mse()

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return the variance of each public estimate at these means."""
        return self.view(self.public).variance(mean, reports)

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of public reports."""
        return self.view(self.public).laws(values)

    # What is refused.

    def check_level(self, level: int) -> None:
        """Refuse a number that is no level's."""
        if not 0 <= level < len(self.levels):
            raise InputError(
                f"level is {level}; there are {len(self.levels)}, from 0, the least private, to "
                f"{self.public}, the public one"
            )

    def check_keys(self, payload: NDArray[Any], keys: Keys, level: int) -> None:
        """Refuse a column of keys that is not one for each report."""
        self.check_level(level)
        if keys.shape != (len(payload),):
            raise InputError(
                f"there are {len(payload)} public reports, but keys of shape {keys.shape}; a "
                "level's readers hold one key for each report, in the same order"
            )


def check_falling(levels: tuple[float, ...], field: str = "levels") -> None:
    """Refuse levels that do not fall, that are not positive, or infinite beyond the first.

    Raises:
        ValueError: names the two levels, or the one, and the remedy.

    Example:
        >>> check_falling((2.0, 1.0, 0.5))
    """
    for number, level in enumerate(levels):
        if math.isnan(level):
            raise ValueError(f"{field} holds {level:g} at {number}; give a number")
        if math.isinf(level) and number > 0:
            raise ValueError(f"{field} holds {level:g} at {number}; only the first may be infinite")
        if level < LEAST:
            raise ValueError(
                f"{field} holds {level:g} at {number}; a level must be at least {LEAST:g}, for at "
                "0 the report says nothing and nothing can be estimated"
            )
    for before, after in itertools.pairwise(levels):
        if before == after:
            raise ValueError(
                f"{field} holds {after:g} twice; readers of equal levels share one level and one "
                "key: name it once"
            )
        if before < after:
            raise ValueError(
                f"{field} holds {after:g} after {before:g}; write them falling, the least private "
                "first and the public one last"
            )
