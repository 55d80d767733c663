"""Asynchronous batches against a simulator that looks at one event at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.random import Stream
from raydp_sim.schedule import buffered
from raydp_sim.schedule.buffered import Buffer
from raydp_sim.schedule.world import World

from .worlds import Town, naive


def played(policy, least, town, root, releases, able=None, resumed_after=None, seen=False):
    patience = policy.longest_wait(0.0)
    buffer, batches = Buffer(policy, patience, least, town.clients), []
    world = World(town, root, able=able)
    for release in range(releases):
        planned = buffer.next(release, world, seen)
        if planned is None:
            break
        batches.append(planned)
        if release == resumed_after:
            saved = buffer.snapshot().columns()
            buffer = Buffer(policy, patience, least, town.clients, saved)
    return batches


def same(planned, expected):
    assert len(planned) == len(expected)
    for (cohort, timing), (ids, stale, opened, closed, counts) in zip(
        planned, expected, strict=True
    ):
        assert cohort.ids.tolist() == ids.tolist()
        assert cohort.staleness.tolist() == stale.tolist()
        assert (timing.opened, timing.closed) == (opened, closed)
        assert {name: getattr(timing, name) for name in counts} == counts
        assert len(cohort.repeated) == counts["repeated"]
        assert set(cohort.repeated.tolist()) <= set(ids.tolist())


@settings(max_examples=60, deadline=None)
@given(
    clients=st.integers(3, 40),
    batch=st.integers(1, 12),
    least=st.integers(1, 6),
    deadline=st.sampled_from([None, 0.2, 0.7, 3.0]),
    on_short=st.sampled_from(["discard", "wait"]),
    dropout=st.sampled_from([0.0, 0.4]),
    duplicates=st.sampled_from([0.0, 0.5]),
    median=st.sampled_from([0.01, 0.5, 2.0]),
    chunk=st.sampled_from([1, 2, 7, 1024]),
    # Multiples of most of these, divided by them again, are not whole numbers.
    every=st.sampled_from([1.0, 0.1, 0.7, 1 / 3, 1.1, 4.0]),
    seen=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_chunks_give_what_single_events_give(
    clients, batch, least, deadline, on_short, dropout, duplicates, median, chunk, every, seen, seed
):
    batch, least = min(batch, clients), min(least, batch, clients)
    policy = Asynchronous(batch=batch, every=every, deadline=deadline, on_short=on_short)
    town, root = Town(clients, dropout, duplicates, median=median), Stream(seed)
    before, buffered._CHUNK = buffered._CHUNK, chunk
    try:
        planned = played(policy, least, town, root, 8, seen=seen)
        again = played(policy, least, town, root, 8, resumed_after=3, seen=seen)
    finally:
        buffered._CHUNK = before
    expected = naive(policy, least, town, root, 8, seen=seen)
    same(planned, expected)
    same(again, expected)


def test_who_may_not_stays_home():
    able = np.arange(30) % 3 == 0
    policy, town, root = Asynchronous(batch=5, every=1.0), Town(30), Stream(4)
    planned = played(policy, 1, town, root, 6, able)
    same(planned, naive(policy, 1, town, root, 6, able))
    assert all((cohort.ids % 3 == 0).all() for cohort, _ in planned)


def test_a_population_that_never_comes_ends_the_run():
    policy = Asynchronous(batch=2, every=1.0, patience=5.0)
    assert played(policy, 1, Town(10, share=0.0), Stream(1), 3) == []
    assert played(policy, 1, Town(10, dropout=1.0), Stream(1), 3) == []


def test_weights_fall_with_staleness():
    policy = Asynchronous(batch=6, every=1.0, staleness_exponent=0.5)
    planned = played(policy, 1, Town(30, median=2.0), Stream(2), 12)
    assert any(timing.stalest > 0 for _, timing in planned)
    for cohort, timing in planned:
        assert timing.weight == pytest.approx(((1.0 + cohort.staleness) ** -0.5).mean())
        assert timing.weight <= 1.0
