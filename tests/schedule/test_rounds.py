"""Synchronous rounds with latency, dropout, deadlines and over-selection."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from raydp_sim.population.participation.all import All
from raydp_sim.population.participation.over_selected import OverSelected
from raydp_sim.population.participation.uniform import Uniform
from raydp_sim.random import Stream
from raydp_sim.schedule.batch import closing
from raydp_sim.schedule.rounds import plan_round
from raydp_sim.schedule.world import World

from .worlds import Town


def plain_closing(arrivals, wanted, limit, least, wait):
    """Look at one arrival after the other, and at the deadline when it comes."""
    passed = False
    for count, time in enumerate(arrivals, start=1):
        if time > limit and not passed:
            passed = True
            if count - 1 >= least or not wait:
                return limit
        if count == wanted and not passed:
            return time
        if passed and count >= least:
            return time
    if math.isfinite(limit) and not passed and (len(arrivals) >= least or not wait):
        return limit
    return math.inf


@given(
    st.lists(st.integers(0, 20), max_size=10),
    st.integers(1, 12),
    st.sampled_from([3.0, 10.0, math.inf]),
    st.integers(1, 6),
    st.booleans(),
)
def test_closing_is_what_a_clerk_would_do(times, wanted, limit, least, wait):
    arrivals = np.sort(np.array(times, float))
    least = min(least, wanted)
    assert closing(arrivals, wanted, limit, least, wait) == plain_closing(
        arrivals, wanted, limit, least, wait
    )


def test_a_round_without_latency_is_the_cohort_at_once():
    town = Town(50, median=0.0)
    cohort, timing = plan_round(Uniform(sampled=10), 1, 3, 7.0, World(town, Stream(1)))
    assert len(cohort.ids) == 10 and timing.closed == timing.opened == 7.0 and timing.due == 8.0


def test_over_selection_takes_the_first_and_counts_the_rest():
    policy, town = OverSelected(sampled=10), Town(200)
    cohort, timing = plan_round(policy, 1, 0, 0.0, World(town, Stream(5)))
    world = World(town, Stream(5))
    ids = policy.choose(
        200, lambda some: world.there(some, 0.0), 0.6, Stream(5).at(*("participation", 0))
    )
    done = world.answers(ids, 0.0, Stream(5).at("round", 0)).done
    first = np.sort(ids[np.argsort(done)[:10]])
    assert timing.asked == 13 and timing.late == 3
    assert cohort.ids.tolist() == first.tolist() and timing.closed == np.sort(done)[9]


def test_ties_are_broken_by_chance_not_by_id():
    """Constant latency: each of 13 asked is left out with chance 3/13. 400 rounds; the lower half
    of the asked ids is left out half of the time: false alarm 1e-8 by the normal limit."""
    policy, world, low = OverSelected(sampled=10), World(Town(200, sigma=0.0), Stream(6)), 0
    for release in range(400):
        cohort, timing = plan_round(policy, 1, release, 0.0, world)
        assert timing.asked == 13 and len(cohort.ids) == 10
        place = Stream(6).at("participation", release)
        ids = policy.choose(200, lambda some: world.there(some, 0.0), 0.6, place)
        low += int(np.isin(ids[:6], cohort.ids, invert=True).sum())
    mean, deviation = 400 * 3 * 6 / 13, math.sqrt(400 * 3 * (6 / 13) * (7 / 13))
    assert abs(low - mean) < 5.73 * deviation


def test_a_deadline_leaves_the_late_out_and_counts_the_lost():
    town = Town(300, dropout=0.3, duplicates=0.2)
    policy = All(deadline=0.5)
    cohort, timing = plan_round(policy, 1, 2, 10.0, World(town, Stream(8)))
    world = World(town, Stream(8))
    everyone = np.arange(300, dtype=np.uint32)
    ids = everyone[world.there(everyone, 10.0)]
    answers = world.answers(ids, 10.0, Stream(8).at("round", 2))
    on_time = ~answers.lost & (answers.done <= 10.5)
    assert cohort.ids.tolist() == ids[on_time].tolist() and timing.closed == 10.5
    assert timing.dropped == answers.lost.sum() > 0
    again = answers.again <= 10.5
    assert cohort.repeated.tolist() == ids[again & on_time].tolist()
    late_copies = np.isfinite(answers.again).sum() - len(cohort.repeated)
    assert timing.late == (~answers.lost & ~on_time).sum() + late_copies


def test_a_short_batch_waits_if_told_to():
    world = World(Town(40), Stream(9))
    short = plan_round(All(deadline=0.05), 10, 0, 0.0, world)[1]
    waited, timing = plan_round(All(deadline=0.05, on_short="wait"), 10, 0, 0.0, world)
    assert short.closed == 0.05 and timing.closed > 0.05 and len(waited.ids) == 10
