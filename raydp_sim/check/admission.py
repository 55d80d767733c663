"""Which values a mechanism takes: those of its domain, and no others."""

from typing import Any

import numpy as np

from raydp_sim.check.finding import Failed, check, require
from raydp_sim.check.samples import outside, reports
from raydp_sim.check.subject import Subject
from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Mechanism, Messages
from raydp_sim.mechanisms.domain import Clip
from raydp_sim.random import Stream


def _sent(mechanism: Mechanism, values: Any, seed: int = 5) -> Messages:
    stream = Stream(seed).at("randomize", 0).clients(np.arange(len(values)))
    return mechanism.randomize(np.array(values), stream)


def _refused(mechanism: Mechanism, values: Any, what: str) -> None:
    try:
        _sent(mechanism, values)
    except InputError:
        return
    except Exception as error:
        name = type(error).__name__
        raise Failed(f"{what} raised {name}; a value is refused by an InputError") from None
    raise Failed(f"{what} was randomized; `randomize` must refuse it (domain.admit does)")


@check("values of the domain are taken")
def inside(subject: Subject) -> str:
    """`randomize` takes every row of the domain and sends what `messages` makes of it."""
    mechanism, values = subject.mechanism, subject.values
    payload = _sent(mechanism, values).payload
    if payload.dtype.kind == "f":
        require(np.isfinite(payload).all(), "a value of the domain gave a report that is no number")
    require(
        np.array_equal(payload, reports(mechanism, values)),
        "`randomize` sends something else than `messages`, which is what runs call",
    )
    return f"{len(values)} values of the {mechanism.domain.describe()}"


@check("values outside are refused, or clipped")
def beyond(subject: Subject) -> str:
    """Values outside are refused; with on_out_of_range: clip they count as the nearest inside."""
    domain = subject.mechanism.domain
    refusing, clipping = (
        subject.mechanism.model_copy(update={"on_out_of_range": choice})
        for choice in ("refuse", "clip")
    )
    for row in outside(domain):
        _refused(refusing, row[None], f"a value outside ({_shown(row)})")
    if domain.norm == "category":
        for row in outside(domain):
            _refused(clipping, row[None], f"the category {_shown(row)}")
        return "refused, also with on_out_of_range: clip, for no category is near another"
    rows = outside(domain)
    # Other balls are clipped in one way, whatever `clip` says.
    ways: tuple[Clip, ...] = ("clamp", "radial") if domain.norm == "linf" else ("clamp",)
    for way in ways:
        clipped = domain.admit(rows, on_out_of_range="clip", clip=way)
        domain.admit(clipped)
        own = clipping.model_copy(update={"clip": way})
        require(
            np.array_equal(own.admit(rows, np.arange(len(rows))).values, clipped),
            f"`admit` clips otherwise than clip: {way} says",
        )
        require(
            np.array_equal(_sent(own, rows).payload, reports(own, clipped)),
            f"with on_out_of_range: clip and clip: {way} a value outside is not randomized as its "
            "clipped value",
        )
    how = f" ({' and '.join(ways)})" if len(ways) > 1 else ""
    return f"2 values outside, with on_out_of_range: refuse and clip{how}"


@check("what is no number is refused")
def not_numbers(subject: Subject) -> str:
    """NaN, infinities, rows of another width and text are refused, clipping or not."""
    domain, row = subject.mechanism.domain, subject.values[:1]
    for choice in ("refuse", "clip"):
        mechanism = subject.mechanism.model_copy(update={"on_out_of_range": choice})
        for number in (np.nan, np.inf, -np.inf):
            for column in {0, domain.width - 1}:
                bad = row.copy()
                bad[0, column] = number
                _refused(mechanism, bad, f"a value with {number}")
        _refused(mechanism, np.zeros((1, domain.width + 1)), "a value with a column too many")
        _refused(mechanism, row[0], "a single axis")
        _refused(mechanism, row.astype(str), "text")
    return "NaN, infinity, wrong width, one axis, text"


def _shown(row: Any) -> str:
    return ", ".join(f"{number:g}" for number in row[:3]) + (", ..." if len(row) > 3 else "")
