"""Stand-ins for data that are not shipped: private and public records, and how they differ."""

from functools import cache
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from raydp_sim.datasets.public_private import Floats, Pair, PublicPrivate

_SEED = 4747
_LENGTH = 5.0
_STANDS_FOR = {
    "cifar-10": "CIFAR-10",
    "crime": "Communities and Crime",
    "creditcard": "Default of Credit Card Clients",
}
_SIZES = {
    "gaussian": (1000, 20),
    "cifar-10": (1000, 3072),
    "crime": (159, 124),
    "creditcard": (200, 21),
}


class ShiftedStandin(PublicPrivate):
    """Drawn records of the shape of a data set of 004, section 4.7.2: a stand-in, not the data.

    gaussian: for `mean`. Private N(0.5, 0.09 I), public the same plus `shift`, its sign
    alternating where `alternating`. cifar-10: for `ridge`. Ten clusters of directions, target the
    number of the cluster over 9; public records are of the first four only. crime: for `ridge`.
    Random regression; public features are turned by I + shift N(0, I). creditcard: for `logistic`.
    Two normal clusters; private classes 50:50, public 95:5. But for `gaussian`, rows of features
    have length 5 at most. The same records whatever the scenario's seed.

    Fields:
        like: which data set it stands in for.
        shift: of `gaussian`, in every coordinate; of `crime`, the scale of what turns features. The
            text has 1 and calls it small.
        alternating: whether the sign of `gaussian`'s shift alternates.
        dimension: of `gaussian`.
        records: private ones, and as many public; as many as the text has unless given.
    """

    kind: ClassVar[str] = "shifted-standin"
    like: Literal["gaussian", "cifar-10", "crime", "creditcard"] = "gaussian"
    shift: float = 0.01
    alternating: bool = False
    dimension: Annotated[int, Field(ge=1, le=10_000)] = 20
    records: Annotated[int, Field(ge=1, le=10**6)] | None = None

    def pair(self) -> Pair:
        """Draw both parts."""
        count, width = _SIZES[self.like]
        width = self.dimension if self.like == "gaussian" else width
        return _drawn(self.like, self.records or count, width, self.shift, self.alternating)

    @property
    def told(self) -> str:
        """What it stands in for."""
        if self.like == "gaussian":
            return "drawn records"
        return f"A STAND-IN for {_STANDS_FOR[self.like]}, drawn; not the data themselves"


@cache
def _drawn(like: str, n: int, width: int, shift: float, alternating: bool) -> Pair:
    draw = np.random.default_rng(_SEED)
    made = {"gaussian": _gaussian, "cifar-10": _clusters, "crime": _regression}
    found = made.get(like, _classes)(draw, n, width, shift, alternating)
    for part in found[:2]:
        part.flags.writeable = False
    return found


def _gaussian(
    draw: np.random.Generator, n: int, width: int, shift: float, alternating: bool
) -> Pair:
    moved = np.full(width, shift)
    if alternating:
        moved[1::2] *= -1.0
    private, public = (0.5 + 0.3 * draw.standard_normal((n, width)) for _ in range(2))
    how = f"{'+-' if alternating else ''}{shift:g} in every coordinate"
    return Pair(private, public + moved, f"moved by {how}")


def _clusters(
    draw: np.random.Generator, n: int, width: int, shift: float, alternating: bool
) -> Pair:
    centres = draw.standard_normal((10, width))

    def records(classes: Floats) -> Floats:
        rows = centres[classes.astype(int)] + 3.0 * draw.standard_normal((n, width))
        return np.column_stack([_within(rows), classes / 9.0])

    private, public = (records(np.arange(n, dtype=np.float64) % c) for c in (10.0, 4.0))
    return Pair(private, public, "of the first four of ten classes only")


def _regression(
    draw: np.random.Generator, n: int, width: int, shift: float, alternating: bool
) -> Pair:
    weights, turned = draw.standard_normal(width), np.eye(width)
    parts = []
    for turn in (False, True):
        x = _within(draw.standard_normal((n, width)))
        y = x @ weights / np.sqrt(width) + 0.1 * draw.standard_normal(n)
        if turn:
            x = _within(x @ (turned + shift * draw.standard_normal((width, width))))
        parts.append(np.column_stack([x, y]))
    return Pair(parts[0], parts[1], f"features turned by I + {shift:g} N(0, I)")


def _classes(
    draw: np.random.Generator, n: int, width: int, shift: float, alternating: bool
) -> Pair:
    centre = 2.0 * draw.standard_normal(width) / np.sqrt(width)

    def records(positive: int) -> Floats:
        y = np.zeros(n)
        y[:positive] = 1.0
        y = draw.permutation(y)
        x = (2.0 * y[:, None] - 1.0) * centre + draw.standard_normal((n, width))
        return np.column_stack([_within(x), y])

    return Pair(records(n // 2), records(n // 20), "5% of class 1, where private records have 50%")


def _within(rows: Floats) -> Floats:
    """Return rows scaled down to the largest length."""
    length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return np.asarray(rows * (_LENGTH / np.maximum(length, _LENGTH)))
