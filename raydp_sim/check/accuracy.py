"""Whether estimates mean what they should and err as stated, sampled and enumerated."""

import math

import numpy as np
from scipy import stats

from raydp_sim.check.enumeration import exact_moments
from raydp_sim.check.finding import Failed, NotChecked, check, plural, require
from raydp_sim.check.samples import ALPHA, SERVER, reports
from raydp_sim.check.subject import MANY, Subject
from raydp_sim.mechanisms.base import Floats

# Sums in fixed point and of doubles are not exact; no noise is as small as this.
_ROUNDING = 1e-9
# Fewer releases that err are no normal limit.
_TELLING = 50.0


@check("estimates are unbiased")
def unbiased(subject: Subject) -> str:
    """The mean of many estimates is that of the values, up to z standard errors.

    8,000 releases of 5 clients. Chance of a false alarm, by the normal limit: 1e-8 (two-sided,
    Bonferroni over coordinates, or over random directions where there are more than 100).
    """
    _need_mean(subject)
    found = subject.sampled
    z = float(stats.norm.isf(ALPHA / 2 / len(found.mean)))
    room = z * found.deviation + _ROUNDING * (1.0 + subject.mechanism.domain.radius)
    off = np.abs(found.mean) / np.maximum(found.deviation, 1e-300)
    if not (np.abs(found.mean) <= room).all():
        worst = int(np.argmax(np.abs(found.mean) - room))
        what = "coordinate" if subject.mechanism.domain.dimension <= MANY else "direction"
        said = (
            f"{what} {worst} is off by {found.mean[worst]:.3g} in the mean of "
            f"{found.releases:,} releases, {off[worst]:.3g} standard errors"
        )
        _judge(subject, said)
    return (
        f"{found.releases:,} releases of {len(found.values)} clients, up to {z:.2g} standard errors"
    )


@check("estimates err as stated")
def stated_error(subject: Subject) -> str:
    """The squared error of n clients is sum(mse) / n^2; without `mse`, at most worst_mse() / n.

    8,000 releases of 5 clients. Chance of a false alarm, by the normal limit: 1e-8.
    """
    _need_mean(subject)
    mechanism = subject.mechanism
    if not subject.has("mse"):
        subject.need("worst_mse")
    found = subject.sampled
    n = len(found.values)
    room = float(stats.norm.isf(ALPHA / 2)) * found.square_deviation
    room += (_ROUNDING * (1.0 + mechanism.domain.radius)) ** 2
    if not subject.has("mse"):
        bound = mechanism.worst_mse() / n
        if found.square > bound + room:
            said = f"the squared error of {n} clients is {found.square:.4g}, but worst_mse() / {n} "
            _judge(subject, f"{said}is {bound:.4g}")
        return f"squared error {found.square:.4g}, at most worst_mse() / {n} = {bound:.4g}"
    stated = float(mechanism.mse(found.values).sum()) / n**2
    if abs(found.square - stated) > room:
        said = (
            f"the squared error of {n} clients is {found.square:.4g}, but `mse` states {stated:.4g}"
        )
        _judge(subject, said)
    return f"squared error {found.square:.4g} of {n} clients, {stated:.4g} stated"


def _need_mean(subject: Subject) -> None:
    """Leave the check out where no mean is estimated."""
    if subject.mechanism.tells != "mean":
        raise NotChecked(f"it tells the {subject.mechanism.tells} of the values, and no mean")


def _judge(subject: Subject, said: str) -> None:
    """Fail by what was sampled, unless the class has said so or too few samples tell anything."""
    found = subject.sampled
    if subject.mechanism.bias:
        raise NotChecked(f"{said}; it says so: {subject.mechanism.bias}")
    sparse = subject.hardly_random or subject.mechanism.domain.dimension > MANY
    if sparse and found.telling < _TELLING:
        raise NotChecked(
            f"the error varies in too few of {found.releases:,} releases to be judged; check it "
            "with a smaller epsilon or dimension"
        )
    raise Failed(f"{said}; mend `decode` or `mse`, or say in `bias` when that is so")


@check("no input errs more than the worst")
def worst_error(subject: Subject) -> str:
    """`worst_mse` bounds `mse`, and is attained where it is called exact and laws are known."""
    subject.need("mse")
    subject.need("worst_mse")
    mechanism, values = subject.mechanism, subject.values
    worst = mechanism.worst_mse()
    # An aggregator's noise is shared by all clients of a call, and the worst is one alone.
    tried = values if mechanism.where == "client" else values[:1]
    seen = float(mechanism.mse(tried).max())
    require(
        worst >= seen * (1 - 1e-12), f"an input errs {seen:.6g}, but `worst_mse` is {worst:.6g}"
    )
    if mechanism.worst_mse_is == "bound" or not subject.has("laws"):
        return f"worst_mse {worst:.4g}, at most {seen:.4g} seen"
    attained = max(seen, _worst_by_coordinate(subject, values))
    require(
        math.isclose(attained, worst, rel_tol=1e-12),
        f"`worst_mse` is {worst:.6g} and called exact, but the worst input tried errs "
        f"{attained:.6g}; let worst_mse_is return 'bound'",
    )
    return f"worst_mse {worst:.4g}, attained"


def _worst_by_coordinate(subject: Subject, values: Floats) -> float:
    """Maximise a sum over coordinates one by one, where the error is such a sum."""
    mechanism, domain = subject.mechanism, subject.mechanism.domain
    if domain.norm not in ("binary", "linf"):
        return 0.0
    candidates = np.unique(values)
    each = np.empty((1, domain.dimension))
    for column in range(domain.dimension):
        tried = np.zeros((len(candidates), domain.dimension))
        tried[:, column] = candidates
        each[0, column] = candidates[np.argmax(mechanism.mse(tried))]
    return float(mechanism.mse(each)[0])


@check("an estimate is the mean of its reports")
def additive(subject: Subject) -> str:
    """Each symbol at each message index adds its own part, and an index without reports none."""
    parts, mechanism = subject.parts, subject.mechanism
    require(
        subject.affine,
        "`decode` of 1, 2, 7 or 30 reports is not the mean of what each report decodes to",
    )
    if mechanism.routing == "per-index":
        payload = reports(mechanism, subject.some(30))[:, 0]
        index = np.zeros(len(payload), np.int64)
        counts = mechanism.fold(mechanism.zero(), index, payload)
        meant = parts.constant + parts.added[0][payload].mean(axis=0)
        require(
            np.allclose(mechanism.decode(counts, SERVER), meant, rtol=1e-6, atol=1e-12),
            "an estimate from message 0 alone is not the mean of those messages",
        )
    return "1, 2, 7 and 30 reports, and 30 without all but their first message"


@check("enumeration gives the value and the error")
def enumerated(subject: Subject) -> str:
    """The exact mean of a decoded report is the value, and its exact variance is `mse`."""
    mechanism, values = subject.mechanism, subject.values
    mean, variance = exact_moments(mechanism, values, subject.parts)
    off = np.abs(mean - mechanism.domain.embed(values)).max()
    if off > _ROUNDING * (1.0 + mechanism.domain.radius):
        said = f"a report's exact mean is off by {off:.3g} from its value"
        if mechanism.bias:
            raise NotChecked(f"{said}; it says so: {mechanism.bias}")
        require(False, f"{said}; mend `decode`, or say in `bias` when that is so")
    if not subject.has("mse"):
        return f"{len(values)} inputs, the mean; there is no `mse`"
    stated = mechanism.mse(values)
    # The variance is a difference of squares, and no more exact than those.
    room = 8.0 * np.finfo(float).eps * float((subject.parts.added**2).sum(axis=-1).max())
    wrong = int(np.argmax(np.abs(variance - stated)))
    require(
        np.allclose(variance, stated, rtol=_ROUNDING, atol=room),
        f"a report's exact error is {variance[wrong]:.6g}, but `mse` states {stated[wrong]:.6g}",
    )
    return plural(len(values), "input")
