"""Votes of the user's own, or of simulated voters of whom some questions are harder than others."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.datasets.delimited import read_csv
from raydp_sim.errors import InputError, bad_field
from raydp_sim.random import Ids, Stream

_FIELD = "population.data.path"


class Ballots(Dataset):
    """What voters would answer to questions of yes or no: Pr[vote = 1], one column per question.

    A voter holds two rows: its probabilities, and the true answers, which only a simulation knows;
    they are not a number where nobody does. Without a path voters are drawn: a question has the
    answer 1 with probability 1/2 and a difficulty of its own, drawn from a Beta law, and all voters
    are right about it with the same probability. So they err together, as real ones do.

    Fields:
        questions: that are drawn.
        accuracy: how often a voter is right, on average over questions.
        agreement: how alike questions are: a + b of the Beta law; all the same unless given, and
            votes are then independent.
        path: instead, a `.csv` file with a line per voter and a column per question, of numbers in
            [0, 1]; 0 or 1 is a vote that was cast. A relative path starts at the scenario's folder.
        truth: whether the last line of the file has the true answers.

    Example:
        >>> data = Ballots(questions=3, accuracy=0.9)
        >>> data.hold(np.arange(5, dtype=np.uint32), Stream(1)).shape
        (5, 2, 3)
    """

    kind: ClassVar[str] = "ballots"
    questions: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    accuracy: Annotated[float, Field(gt=0, lt=1)] | None = None
    agreement: Annotated[float, Field(gt=0)] | None = None
    path: str | None = None
    truth: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> "Ballots":
        drawn = [name for name in ("questions", "accuracy", "agreement") if getattr(self, name)]
        if self.path is not None and (drawn or self.path == ""):
            raise ValueError(f"{', '.join(drawn) or 'path'}: they are in the file; leave them out")
        if self.path is None and (self.questions is None or self.accuracy is None):
            raise ValueError("give questions and accuracy of voters that are drawn, or a path")
        if self.path is None and self.truth:
            raise ValueError("truth is true; of voters that are drawn it is always known")
        return self

    def located(self, folder: Path) -> "Ballots":
        """Anchor a relative path at the scenario file's folder."""
        if self.path is None:
            return self
        return type(self).model_validate({**self.model_dump(), "path": str(folder / self.path)})

    def shape(self) -> tuple[int, ...]:
        """Return the two rows of a voter."""
        return 2, self._table.shape[1] if self.questions is None else self.questions

    def rows(self) -> int | None:
        """Return how many voters the file has."""
        return None if self.path is None else len(self._table) - self.truth

    def hold(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Return probabilities and true answers."""
        if self.path is not None:
            votes = self._table[np.asarray(ids, np.int64)]
            right = self._table[-1] if self.truth else np.full(votes.shape[1], np.nan)
        else:
            right, chance = self._drawn(stream)
            votes = np.broadcast_to(chance, (len(ids), len(chance)))
        return np.stack([votes, np.broadcast_to(right, votes.shape)], axis=1)

    def _drawn(self, stream: Stream) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the true answers, and the probability of a 1, which all voters share."""
        draw = stream.at("questions").generator()
        assert self.questions is not None and self.accuracy is not None
        right = (draw.random(self.questions) < 0.5).astype(np.float64)
        hit = np.full(self.questions, self.accuracy)
        if self.agreement is not None:
            a = self.accuracy * self.agreement
            hit = draw.beta(a, self.agreement - a, self.questions)
        return right, np.where(right == 1.0, hit, 1.0 - hit)

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        path = Path(self.path or "")
        try:
            columns = read_csv(path, False, set()).columns
            table = np.stack([np.asarray(c.to_numpy(), np.float64) for c in columns], axis=1)
        except FileNotFoundError:
            raise bad_field(_FIELD, self.path, "there is no such file") from None
        except InputError:
            raise
        except (OSError, ValueError, TypeError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise bad_field(_FIELD, self.path, f"it cannot be used: {first}") from None
        if self.truth and not np.isin(table[-1], (0.0, 1.0)).all():
            raise bad_field(_FIELD, self.path, "its last line must have true answers, 0 or 1")
        return table
