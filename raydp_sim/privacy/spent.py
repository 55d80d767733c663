"""The least proved epsilon of a sequence of releases: what plans, runs, ledgers and targets ask.

Loss distributions compose a sequence that is fixed beforehand, its length included, and are the
sharpest bounds here, but for one: of any randomizer, added divergences sometimes say less. So where
loss distributions that know the named randomizer hold for all of the events, those are asked alone;
else those of any randomizer, and divergences; else every bound. All are upper bounds, so which are
asked is a question of time and never of soundness.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import Counted, RunBound, find_run, run_bounds
from raydp_sim.privacy.curves.caps import pure_epsilon
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import Release


@dataclass(frozen=True)
class Spent:
    """What releases cost at most.

    Attributes:
        epsilon: at the delta asked for.
        bound: that says so.
    """

    epsilon: float
    bound: str


def spent(events: Counted, delta: float, bound: str | None = None) -> Spent:
    """Return the least proved epsilon of releases that were fixed beforehand.

    Args:
        events: with how often each happened; the order does not matter.
        delta: in (0, 1).
        bound: the only one to ask, if it is one for them: what was best for a plan is asked of
            each of its releases.

    Raises:
        Contradiction: a bound says less than the releases cost at least, so it is wrong.
        NotApplicable: no bound holds for them.

    Example:
        >>> from raydp_sim.privacy.events import SubsampledMultiMessage
        >>> round_ = SubsampledMultiMessage((1.0, 1.0), 10_000, 1000, "rbin")
        >>> found = spent([(round_, 20)], 1e-6)
        >>> round(found.epsilon, 4), found.bound
        (0.0937, 'pld-variation')
    """
    happened = [(event, times) for event, times in events if times]
    if not happened:
        return Spent(0.0, "pure")
    return _spent(tuple(sorted(happened, key=repr)), delta, bound)


@lru_cache(maxsize=1 << 14)
def _spent(events: tuple[tuple[Release, int], ...], delta: float, only: str | None) -> Spent:
    sharp = [bound for bound in run_bounds() if bound.sharp]
    chosen = [bound for bound in sharp if bound.name == only]
    named = [bound for bound in sharp if bound.by_name]
    others = [bound for bound in sharp if not bound.by_name]
    found = _least(chosen, events, delta) or _least(named, events, delta)
    if found is None and (found := _least(others, events, delta)) is not None:
        # Of any randomizer divergences may say less, where few hide and losses are large.
        also = _least([find_run("rdp-best")], events, delta)
        found = min(found, also or found, key=lambda one: one.epsilon)
    if found is None:
        table = account(events, delta)
        if table.best is None:
            raise NotApplicable("no proved bound applies to these releases")
        return Spent(table.epsilon, table.best)
    pure = sum(times * pure_epsilon(event) for event, times in events)
    return found if found.epsilon < pure else Spent(pure, "pure")


def _least(bounds: Iterable[RunBound], events: Counted, delta: float) -> Spent | None:
    values = []
    for bound in bounds:
        try:
            values.append((bound.epsilon(events, delta).epsilon, bound.name))
        except (NotApplicable, Unsupported):
            continue
    return Spent(*min(values)) if values else None


def rounded_up(times: int, planned: int = 0, digits: int = 5) -> int:
    """Round a number of releases up to some binary digits, though not beyond those planned.

    More releases never cost less, so what a live row says stays an upper bound. With five digits
    it is evaluated anew at most sixteen times while their number doubles, and is exact below 32
    and where the plan ends.

    Example:
        >>> [rounded_up(times, planned=1000) for times in (20, 31, 33, 70, 999)]
        [20, 31, 34, 72, 1000]
    """
    step = 1 << max(0, times.bit_length() - digits)
    up = -(-times // step) * step
    return min(up, planned) if planned >= times else up
