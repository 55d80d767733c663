"""Epsilons by loss distributions, for clients whose histories can be put into one order.

Releases that everyone pays for are composed as they are. Where only participants pay and all
releases are shuffles of one mechanism, which differ in the size of their batch alone, a client that
took part c times is charged the c smallest batches of the run so far; where all are equal, such as
noise of a trusted aggregator, c of them. That is no less than what it
took part in: sorted by size, its i-th batch is no smaller than the i-th of all, and a batch hides
no less than a smaller one (the others' messages are independent of the victim's, so whoever sees
the smaller batch can add them). So all clients with equal counts share a history, and more
participations cost more.

Who took part when, and what the batches were, must not follow from what was released: then the
sequence of events is fixed as far as the analysis goes, and loss distributions compose. The ledger
asks for nothing here where it is not so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from raydp_sim.privacy.events import Batch, Release
from raydp_sim.privacy.ledger.sizes import rounded
from raydp_sim.privacy.spent import Spent, rounded_up, spent

Releases = list[tuple[Release, int]]

# Different sizes of batches that are composed by themselves; more are put together.
_SIZES = 4
# Different sizes that are kept.
_KEPT = 128
# Releases beyond which numbers of several sizes are rounded up more coarsely.
_MANY = 1000
# Different releases beyond which divergences are added instead.
_KINDS = 8


class Laws:
    """What clients have spent by loss distributions, as releases are added.

    Example:
        >>> from raydp_sim.privacy.events import Shuffle
        >>> laws = Laws(1e-6, {})
        >>> laws.add(Shuffle(1.0, 1000), 2)
        >>> laws.add(Shuffle(1.0, 500), 1)
        >>> laws.add(Shuffle(1.0, 2000), 5)
        >>> laws.costliest(3)
        [(Shuffle(epsilon0=1.0, n=500, randomizer=None, alphabet=None), 1), \
(Shuffle(epsilon0=1.0, n=1000, randomizer=None, alphabet=None), 2)]
    """

    def __init__(self, delta: float, planned: Mapping[Release, int]) -> None:
        self.delta = delta
        self.planned = planned
        self.happened: dict[Release, int] = {}
        self._kinds: set[Release] = set()

    @cached_property
    def _bound(self) -> str | None:
        """The best bound on the plan, which every release of it is then asked of."""
        return spent(list(self.planned.items()), self.delta).bound if self.planned else None

    def add(self, release: Release, times: int) -> None:
        """Count releases, whoever took part."""
        self.happened[release] = self.happened.get(release, 0) + times
        self._kinds.add(_kind(release))
        if len(self.happened) > _KEPT:
            self.happened = dict(_counted((rounded(e, 16), n) for e, n in self.happened.items()))

    @property
    def ordered(self) -> bool:
        """Whether all releases are alike, but for the size of their batch if they are shuffles."""
        return len(self._kinds) == 1

    def costliest(self, count: int) -> Releases:
        """Return the `count` smallest batches; all releases where there are no more than that."""
        taken, left = list[tuple[Release, int]](), count
        for event, times in sorted(self.happened.items(), key=lambda pair: _size(pair[0])):
            if left > 0 and times:
                taken.append((event, min(times, left)))
                left -= times
        return taken

    def of_all(self) -> Spent | None:
        """Return what a client in all releases has spent; None where there are too many kinds."""
        if len(self._kinds) > _KINDS:
            return None
        return self._spent(list(self.happened.items()))

    def of(self, count: int) -> Spent:
        """Return what a client that took part `count` times has spent; see `ordered`."""
        if count == 0:
            return Spent(0.0, "pure")
        most = max(self.planned.values(), default=0)
        found = self._spent(self.costliest(rounded_up(count, most)))
        if len(self.planned) == 1:
            (event, times), smallest = next(iter(self.planned.items())), self.costliest(1)[0][0]
            within = _kind(event) in self._kinds and _size(event) <= _size(smallest)
            if within and count <= times:
                # What is planned is no less; put together, batches may seem to cost more.
                return min(found, spent([(event, times)], self.delta), key=lambda x: x.epsilon)
        return found

    def _spent(self, releases: Releases) -> Spent:
        few = [(event, times) for event, times in _few(releases) if times]
        # Numbers are exact where a plan ends; a single kind may have had larger batches than it.
        limits = dict(self.planned)
        if len(few) == 1:
            kind = _kind(few[0][0])
            limits[few[0][0]] = sum(n for event, n in self.planned.items() if _kind(event) == kind)
        # Each of several numbers may change, and more kinds take longer: so that rows stay cheap.
        digits = 4 if len(few) > 1 and sum(times for _, times in few) > _MANY else 5
        up = [(event, rounded_up(times, limits.get(event, 0), digits)) for event, times in few]
        return spent(up, self.delta, self._bound)


def _kind(release: Release) -> Release:
    """Return the release without the size of its batch."""
    return replace(release, n=1) if isinstance(release, Batch) else release


def _size(release: Release) -> int:
    return release.n if isinstance(release, Batch) else 0


def _few(releases: Releases) -> Releases:
    """Put sizes together, at the smallest of each step, until few are left of every kind."""
    found = releases
    for per_octave in (4, 2, 1):
        if len(found) <= _SIZES:
            return found
        found = _counted((rounded(event, per_octave), times) for event, times in releases)
    by_kind: dict[Release, list[tuple[Release, int]]] = {}
    for event, times in sorted(found, key=lambda pair: _size(pair[0])):
        by_kind.setdefault(_kind(event), []).append((event, times))
    few = list[tuple[Release, int]]()
    for group in by_kind.values():
        if len(group) > _SIZES:
            group = [(group[0][0], sum(times for _, times in group))]
        few += group
    return few


def _counted(releases: Iterable[tuple[Release, int]]) -> Releases:
    counts: dict[Release, int] = {}
    for event, times in releases:
        counts[event] = counts.get(event, 0) + times
    return list(counts.items())
