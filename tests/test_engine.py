"""The engine alone: its promises hold for every order of events."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydp_sim import engine
from raydp_sim.engine import (
    Ask,
    Charge,
    Charged,
    Close,
    Closed,
    Collected,
    Discard,
    Ended,
    Finished,
    Planned,
    Policy,
    Release,
    State,
    Wait,
    Woke,
)


def play(policy, horizon, sizes, seed, interval=1.0, lag=0.0):
    """Answer the engine's commands in a random order that the actors could produce."""
    dice = random.Random(seed)
    state, commands = engine.begin(policy, State(), horizon)
    history, pending = [], []
    while True:
        for command in commands:
            history.append(command)
            match command:
                case Ask(release, time, count):
                    # The schedule answers before anything is collected.
                    for each in range(release, release + count):
                        due = time + max(interval, lag)
                        planned = Planned(each, time + lag, due)
                        state, more = engine.advance(policy, state, planned)
                        assert more == [] or policy.eager
                        commands.extend(more)
                        pending.append(Collected(each))
                        time = due
                case Close(release):
                    pending.append(Closed(release, sizes[release]))
                case Charge(release, _):
                    pending.append(Charged(release))
                case Release(release) | Discard(release):
                    pending.append(Finished(release))
                case Wait(until):
                    pending.append(Woke(until))
        if not pending:
            return state, history
        event = pending.pop(dice.randrange(len(pending)))
        history.append(event)
        state, commands = engine.advance(policy, state, event)


plays = given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 3), st.booleans()),
    min_batch=st.integers(1, 5),
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    seed=st.integers(0, 2**32),
)


def of_ask(ask):
    return ask.release, ask.time, ask.count


def shaped(shape, min_batch):
    """A policy of so many spans of so many releases under way at once."""
    spans, span, eager = shape
    return Policy(min_batch, depth=spans * span, span=span, eager=eager)


@plays
def test_every_release_is_asked_and_finished_once(shape, min_batch, sizes, seed):
    state, history = play(shaped(shape, min_batch), len(sizes), sizes, seed)
    asks = [item for item in history if isinstance(item, Ask)]
    assert [r + k for r, _, n in map(of_ask, asks) for k in range(n)] == list(range(len(sizes)))
    assert all(ask.count == shape[1] for ask in asks[:-1])
    assert (state.floor, state.ahead, state.charged) == (len(sizes), frozenset(), frozenset())


@plays
def test_no_release_before_its_charge_is_durable(shape, min_batch, sizes, seed):
    _, history = play(shaped(shape, min_batch), len(sizes), sizes, seed)
    for place, item in enumerate(history):
        if isinstance(item, Release):
            assert Charged(item.release) in history[:place]


@plays
def test_charges_and_discards_come_in_order(shape, min_batch, sizes, seed):
    _, history = play(shaped(shape, min_batch), len(sizes), sizes, seed)
    decided = [item.release for item in history if isinstance(item, (Charge, Discard))]
    assert decided == sorted(decided) == list(range(len(sizes)))


@plays
def test_a_batch_below_min_batch_is_never_charged_nor_released(shape, min_batch, sizes, seed):
    _, history = play(shaped(shape, min_batch), len(sizes), sizes, seed)
    released = {item.release for item in history if isinstance(item, Release)}
    charged = {item.release for item in history if isinstance(item, Charge)}
    large = {release for release, size in enumerate(sizes) if size >= min_batch}
    assert released == charged == large


@plays
def test_releases_come_in_order_and_one_at_a_time(shape, min_batch, sizes, seed):
    _, history = play(shaped(shape, min_batch), len(sizes), sizes, seed)
    under_way = None
    last = -1
    for item in history:
        if isinstance(item, Release):
            assert under_way is None and item.release > last
            under_way = last = item.release
        if isinstance(item, Finished) and item.release == under_way:
            under_way = None


@plays
def test_no_more_than_depth_releases_are_under_way(shape, min_batch, sizes, seed):
    _, history = play(shaped(shape, min_batch), len(sizes), sizes, seed)
    open_releases = 0
    for item in history:
        open_releases += item.count if isinstance(item, Ask) else -isinstance(item, Finished)
        assert open_releases <= shape[0] * shape[1]


@pytest.mark.parametrize("span", [1, 2])
@pytest.mark.parametrize("eager", [False, True])
def test_virtual_time_never_runs_backwards_and_rounds_keep_their_moments(span, eager):
    policy = Policy(depth=3 * span, span=span, eager=eager)
    _, history = play(policy, 6, [1] * 6, seed=3, interval=2.5)
    asks = [(item.release, item.time) for item in history if isinstance(item, Ask)]
    assert asks == [(release, 2.5 * release) for release in range(0, 6, span)]


def test_an_eager_policy_asks_on_before_anything_is_collected():
    policy = Policy(depth=2, eager=True)
    state, commands = engine.begin(policy, State(), 5)
    state, commands = engine.advance(policy, state, Planned(0, 0.0, 0.0))
    assert commands == [Ask(1, 0.0)]
    # That of the first is no reason to ask again: it is not known when the third is due.
    state, commands = engine.advance(policy, state, Collected(0))
    assert commands == [Close(0)]


def test_a_release_is_paid_for_at_the_moment_its_batch_closed():
    _, history = play(Policy(2, depth=3), 4, [2, 1, 3, 2], seed=5, interval=1.0, lag=4.0)
    times = {item.release: item.time for item in history if isinstance(item, (Charge, Discard))}
    assert times == {0: 4.0, 1: 8.0, 2: 12.0, 3: 16.0}


def test_a_run_whose_clients_stay_away_ends_with_what_is_under_way():
    policy = Policy(depth=3)
    state, commands = engine.begin(policy, State(), 5)
    assert commands == [Ask(0, 0.0)]
    state, _ = engine.advance(policy, state, Planned(0, 1.0, 1.0))
    state, commands = engine.advance(policy, state, Collected(0))
    assert commands == [Close(0), Wait(1.0)]
    state, commands = engine.advance(policy, state, Woke(1.0))
    assert commands == [Ask(1, 1.0)]
    state, commands = engine.advance(policy, state, Ended(1))
    assert commands == [] and state.horizon == 1
    state, commands = engine.advance(policy, state, Closed(0, 3))
    assert commands == [Charge(0, 1.0)]
    state, commands = engine.advance(policy, state, Charged(0))
    assert commands == [Release(0)]
    state, commands = engine.advance(policy, state, Finished(0))
    assert commands == [] and state.floor == 1


def test_a_horizon_can_be_extended_when_the_first_is_reached():
    policy = Policy()
    state, _ = play(policy, 2, [1, 1, 1], seed=0)
    state, commands = engine.begin(policy, state, 3)
    assert commands == [Ask(2, 2.0)] or commands == [Wait(2.0)]


def test_a_resumed_engine_asks_for_the_first_unfinished_release():
    policy = Policy(depth=3)
    _, commands = engine.begin(policy, engine.resumed(5, 12.5), 8)
    assert commands == [Ask(5, 12.5)]
