"""Virtual time as a pure state machine: advance(policy, state, event) -> state, commands.

The engine decides what happens when; it does nothing itself. Two properties hold by construction
and are tested on it alone: a release is never permitted before its charge is durable, and a batch
below the smallest that its ask takes, `min_batch` if it does not say, is never released. When a
batch closes is for the schedule to say; synchronous rounds are the case of zero latency, where all
reports arrive at the moment of the ask.
"""

from dataclasses import dataclass, replace

# Commands: what the driver must do next.


@dataclass(frozen=True)
class Ask:
    """Ask the clients for the reports of a release at a moment of virtual time.

    With `count` above 1, for those of a span: this release and the ones after it, each at the
    moment at which it is due.
    """

    release: int
    time: float
    count: int = 1


@dataclass(frozen=True)
class Close:
    """Close the batch of a release: nothing more is let in."""

    release: int


@dataclass(frozen=True)
class Charge:
    """Make the release's privacy event durable."""

    release: int
    time: float


@dataclass(frozen=True)
class Release:
    """Release the closed batch to the aggregator."""

    release: int


@dataclass(frozen=True)
class Discard:
    """Drop a closed batch that was too small to release."""

    release: int
    reports: int
    time: float


@dataclass(frozen=True)
class Wait:
    """Let virtual time pass."""

    until: float


Command = Ask | Close | Charge | Release | Discard | Wait

# Events: what the driver says has happened.


@dataclass(frozen=True)
class Woke:
    """Virtual time has reached the moment that was waited for."""

    time: float


@dataclass(frozen=True)
class Planned:
    """It is known when the batch closes and when the next one may be asked for."""

    release: int
    closed: float
    due: float


@dataclass(frozen=True)
class Ended:
    """Nothing would ever close the batch of this release: the run ends with the one before."""

    release: int


@dataclass(frozen=True)
class Collected:
    """Everyone who was asked for this release has answered or is known to be missing."""

    release: int


@dataclass(frozen=True)
class Closed:
    """The batch is closed and holds this many clients' reports, of which it needs `least`.

    None: as many as `Policy.min_batch` says.
    """

    release: int
    reports: int
    least: int | None = None


@dataclass(frozen=True)
class Charged:
    """The release's event is durable."""

    release: int


@dataclass(frozen=True)
class Finished:
    """The release has been folded, or its batch discarded, and its row is recorded."""

    release: int


Event = Woke | Planned | Ended | Collected | Closed | Charged | Finished


@dataclass(frozen=True)
class Policy:
    """What the engine needs to know of a scenario.

    Attributes:
        min_batch: reports below which a batch is never released whose ask does not say how many.
        depth: releases that may be under way at once; 1 if an ask depends on the release before.
        span: releases that are asked for together, at most `depth`.
        eager: whether the next is asked for as soon as it is known when it is due, and not only
            when the one before is collected.
    """

    min_batch: int = 1
    depth: int = 1
    span: int = 1
    eager: bool = False


@dataclass(frozen=True)
class State:
    """Where a run is in virtual time.

    Attributes:
        time: the clock.
        due: when the next release may be asked for.
        closing: releases under way and when they close.
        horizon: releases to play in all.
        asked: releases asked for so far; also the number of the next one.
        floor: every release below this one is finished.
        ahead: finished releases at or above the floor (discarded before an earlier one was done).
        closed: closed releases that wait for the ones before them: number, reports, least.
        decided: every release below this one is charged or discarded.
        charged: releases that are paid for and wait for the ones before them.
        collecting: whether a release is still taking reports in; of eager policies, whether it is
            still to be planned.
    """

    time: float = 0.0
    due: float = 0.0
    closing: tuple[tuple[int, float], ...] = ()
    horizon: int = 0
    asked: int = 0
    floor: int = 0
    ahead: frozenset[int] = frozenset()
    closed: tuple[tuple[int, int, int], ...] = ()
    decided: int = 0
    charged: frozenset[int] = frozenset()
    collecting: bool = False


Step = tuple[State, list[Command]]


def begin(policy: Policy, state: State, horizon: int) -> Step:
    """Play on until `horizon` releases are done.

    Example:
        >>> begin(Policy(), State(), 1)[1]
        [Ask(release=0, time=0.0, count=1)]
    """
    return _ask_next(policy, replace(state, horizon=horizon))


def resumed(finished: int, due: float) -> State:
    """Return the state of a run whose first `finished` releases are done and nothing else is."""
    return State(time=due, due=due, asked=finished, floor=finished, decided=finished)


def advance(policy: Policy, state: State, event: Event) -> Step:
    """Return the next state and what to do now that `event` has happened."""
    match event:
        case Woke(time):
            return _ask_next(policy, replace(state, time=max(state.time, time)))
        case Planned(release, closed, due):
            after = replace(state, closing=(*state.closing, (release, closed)), due=due)
            if not policy.eager or release + 1 < state.asked:
                return after, []
            return _ask_next(policy, replace(after, collecting=False))
        case Ended(release):
            return replace(state, horizon=release, asked=release, collecting=False), []
        case Collected(release):
            if policy.eager:  # of a later one it may not be known yet when it is due
                return state, [Close(release)]
            after, commands = _ask_next(policy, replace(state, collecting=False))
            return after, [Close(release), *commands]
        case Closed(release, reports, least):
            needed = policy.min_batch if least is None else least
            waiting = (*state.closed, (release, reports, needed))
            return _decide(replace(state, closed=waiting))
        case Charged(release):
            return _release_next(replace(state, charged=state.charged | {release}))
        case Finished(release):
            after, let_out = _release_next(settle(state, release))
            asked, asks = _ask_next(policy, after)
            return asked, [*let_out, *asks]


def enough(reports: int, least: int) -> bool:
    """Say whether a batch may be released that needs `least` reports; an empty one never may."""
    return reports >= max(1, least)


def settle(state: State, release: int) -> State:
    """Note that a release is finished."""
    floor, ahead = state.floor, state.ahead | {release}
    while floor in ahead:
        ahead, floor = ahead - {floor}, floor + 1
    return replace(state, floor=floor, ahead=ahead)


def _decide(state: State) -> Step:
    # In order too: what a client has spent after a release must not depend on a later one.
    waiting = {release: (reports, least) for release, reports, least in state.closed}
    closing, decided, commands = dict(state.closing), state.decided, list[Command]()
    while decided in waiting:
        when, (reports, least) = closing.pop(decided), waiting.pop(decided)
        if not enough(reports, least):
            commands.append(Discard(decided, reports, when))
        else:
            commands.append(Charge(decided, when))
        decided += 1
    still_closed = tuple((release, *counts) for release, counts in waiting.items())
    still_closing = tuple(closing.items())
    after = replace(state, closed=still_closed, closing=still_closing, decided=decided)
    return after, commands


def _ask_next(policy: Policy, state: State) -> Step:
    under_way = state.asked - state.floor - len(state.ahead)
    count = min(policy.span, state.horizon - state.asked)
    if state.collecting or count <= 0 or under_way + count > policy.depth:
        return state, []
    if state.due > state.time:
        return state, [Wait(state.due)]
    asked = replace(state, asked=state.asked + count, collecting=True)
    return asked, [Ask(state.asked, state.due, count)]


def _release_next(state: State) -> Step:
    # Strictly in order: the learner's state after a release is the next one's starting point.
    if state.floor not in state.charged:
        return state, []
    return replace(state, charged=state.charged - {state.floor}), [Release(state.floor)]
