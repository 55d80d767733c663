"""Exact likelihood ratios, where a mechanism knows the law of its reports."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from raydp_sim.check.enumeration import losses, message_loss
from raydp_sim.check.finding import NotChecked, check, plural, require
from raydp_sim.check.samples import ALPHA, reports
from raydp_sim.check.subject import Subject
from raydp_sim.mechanisms.base import Floats

DRAWN = 20_000
# A cell of a chi-square table is expected to hold at least so many.
_CELL = 20
_ROUNDING = 1e-9


@check("laws are probabilities")
def probabilities(subject: Subject) -> str:
    """`laws` returns per message probabilities that are not negative and add up to 1."""
    laws, mechanism = subject.laws, subject.mechanism
    require(
        len(laws) == mechanism.messages_per_report,
        f"`laws` has {len(laws)} messages, a report {mechanism.messages_per_report}",
    )
    for number, law in enumerate(laws):
        require(
            law.ndim == 2 and len(law) == len(subject.values),
            f"law {number} has shape {law.shape} for {len(subject.values)} values",
        )
        require((law >= 0.0).all(), f"law {number} has a probability of {law.min():.3g}")
        off = float(np.abs(law.sum(axis=1) - 1.0).max())
        require(off <= 1e-12, f"probabilities of law {number} add up to 1 {off:+.3g}")
    return f"{plural(len(laws), 'message')}, {plural(len(subject.values), 'input')}"


@check("reports follow the laws")
def followed(subject: Subject) -> str:
    """Chi-square tests of 20,000 reports of three inputs: each message, and the first two jointly.

    Chance of a false alarm: 1e-8 for each input and table.
    """
    _ = subject.laws
    mechanism = subject.mechanism
    for number, value in enumerate(subject.values[[0, 1 % len(subject.values), -1]]):
        payload = reports(mechanism, np.tile(value, (DRAWN, 1)), first=DRAWN * number)
        laws = mechanism.laws(value[None])
        require(
            payload.dtype.kind in "iu" and payload.ndim == 2,
            f"`laws` needs reports that are symbols, but a payload is {payload.dtype} of shape "
            f"{payload.shape}",
        )
        tables = [(payload[:, i].astype(int), law[0]) for i, law in enumerate(laws)]
        largest = max(int(symbols.max()) for symbols, _ in tables)
        require(
            all(symbols.max() < len(law) for symbols, law in tables),
            f"a report holds the symbol {largest}, which has no probability in `laws`",
        )
        joint = []
        if len(laws) > 1:
            (first, law), (second, other) = tables[:2]
            joint.append((first * len(other) + second, np.outer(law, other).ravel()))
        # The joint table repeats two margins, so it is judged apart.
        for name, group in (("messages", tables), ("first two messages jointly", joint)):
            found = chance(group)
            require(
                found > ALPHA,
                f"the {name} of {DRAWN:,} reports of one input have chance {found:.1g} by `laws`",
            )
    return f"3 inputs, {DRAWN:,} reports each, chi-square"


def chance(tables: list[tuple[NDArray[np.int_], Floats]]) -> float:
    """Return the p-value of all tables together, 0 where the impossible happened."""
    statistic, freedom = 0.0, 0
    for symbols, law in tables:
        seen = np.bincount(symbols, minlength=len(law))
        if seen[law == 0.0].sum():
            return 0.0
        large = law * DRAWN >= _CELL
        expected = np.append(law[large] * DRAWN, law[~large].sum() * DRAWN)
        counted = np.append(seen[large], seen[~large].sum())
        kept = expected >= _CELL
        statistic += float(((counted - expected)[kept] ** 2 / expected[kept]).sum())
        freedom += int(kept.sum()) - 1
    return float(stats.chi2.sf(statistic, freedom)) if freedom > 0 else 1.0


@check("exact likelihood ratio")
def exact_ratio(subject: Subject) -> str:
    """P(report | x) <= e^epsilon P(report | x') for every report and all pairs of inputs tried.

    Where the class says that it is tight, some pair attains it.
    """
    loss = float(losses(subject.laws).max())
    mechanism = subject.mechanism
    if mechanism.where != "client" or mechanism.guarantee != "pure":
        raise NotChecked(f"guarantee is {mechanism.guarantee!r}, not that of a report alone")
    stated = mechanism.event().epsilon
    if math.isinf(stated):
        raise NotChecked("it states an infinite epsilon")
    require(
        loss <= stated,
        f"two inputs are distinguished with a loss of {loss:.6g}, but epsilon {stated:.6g} is "
        "stated",
    )
    if mechanism.tight:
        # Draws of 53 bits come no nearer to a rare symbol's probability.
        room = _ROUNDING + 2.0**-52 * math.exp(min(stated, 40.0))
        require(
            loss >= stated - room,
            f"`tight` is true, but no two inputs lose more than {loss:.6g} of {stated:.6g}",
        )
    return f"at most {loss:.4g}, epsilon {stated:.4g} stated; all pairs of {len(subject.values)}"


@check("each message loses what is stated")
def message_losses(subject: Subject) -> str:
    """The losses of single messages, which shuffles are accounted with, are not above `losses`."""
    stated = subject.mechanism.losses()
    if stated is None:
        raise NotChecked("it states no losses of single messages, so shuffling gains nothing")
    exact = sorted((float(message_loss(law).max()) for law in subject.laws), reverse=True)
    # Messages that do not depend on the data are not listed.
    listed = sorted(stated, reverse=True) + [0.0] * (len(exact) - len(stated))
    require(len(listed) == len(exact), f"`losses` lists {len(stated)} of {len(exact)} messages")
    for loss, allowed in zip(exact, listed, strict=True):
        require(
            loss <= allowed + _ROUNDING * max(1.0, allowed) or math.isinf(allowed),
            f"a message loses {loss:.6g}, but `losses` states {allowed:.6g}",
        )
    return f"{plural(len(exact), 'message')}, at most {exact[0]:.4g}"
