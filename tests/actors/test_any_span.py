"""Runs that are drawn: whatever the span, the placement, the order of answers and who dies."""

import contextlib
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.inbox import Inbox
from raydp_sim.privacy.ledger import store
from raydp_sim.run import prepare, reopen, run
from raydp_sim.run.play import Run
from raydp_sim.stream.batches import Listed, Reports
from tests.actors.scrambled import Scrambled
from tests.conftest import assert_identical, scenario, with_placement

ROUNDS = 7
# How long something takes on a busy machine says nothing here.
SLOW = [HealthCheck.too_slow]
DRAWN = {
    "max_examples": 12,
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": SLOW,
}
MECHANISMS = {
    "2rr": ({"kind": "2rr", "epsilon_local": 1.0}, {"kind": "bernoulli", "probability": 0.3}),
    "krr": (
        {"kind": "krr", "epsilon_local": 1.0, "categories": 5},
        {"kind": "categorical", "categories": 5},
    ),
}
POLICIES = st.one_of(
    st.builds(lambda p: {"kind": "self", "probability": p}, st.sampled_from([0.1, 0.5, 1.0])),
    st.builds(lambda n: {"kind": "uniform", "sampled": n}, st.integers(1, 30)),
    st.just({"kind": "all"}),
)


@st.composite
def small(draw):
    """A small scenario whose batches are sometimes too small, and sometimes empty."""
    mechanism, data = MECHANISMS[draw(st.sampled_from(sorted(MECHANISMS)))]
    policy = draw(POLICIES)
    most = policy.get("sampled", 30)
    chance = draw(st.sampled_from([0.05, 0.6, 1.0]))
    return scenario(
        rounds=ROUNDS,
        mechanism=mechanism,
        population={
            "clients": 30,
            "data": data,
            "availability": {"kind": "bernoulli", "probability": chance},
        },
        participation=policy,
        shuffle={
            "min_batch": draw(st.integers(1, max(1, most // 2))),
            "output": draw(st.sampled_from(["permuted", "counts"])),
        },
    )


def placed(draw, base):
    place = {"clients_per_actor": draw(st.integers(1, 31)), "span": draw(st.integers(1, 9))}
    return with_placement(base, checkpoint_seconds=0, **place)


def on(backend):
    """Return a run that plays on a backend which answers in any order."""

    class Elsewhere(Run):
        def _backend(self):
            return contextlib.nullcontext(backend)

    return Elsewhere


@settings(**DRAWN)
@given(base=small(), seed=st.integers(0, 99), stop=st.integers(1, 30), data=st.data())
def test_any_span_gives_the_same_also_where_it_was_interrupted(base, seed, stop, data):
    """Stopped before any command of the engine, with charges ahead of the last checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder, "one"), Path(folder, "other")
        run(with_placement(base, 2, span=1), out=one)
        first = prepare(placed(data.draw, base), other)
        made, left = on(Scrambled(seed))(first.scenario, first.directory), [stop]
        execute = Conductor.execute

        def stopping(self, command):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            execute(self, command)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Conductor, "execute", stopping)
            try:
                list(made.play())
            except KeyboardInterrupt:
                again = reopen(other)
                again.scenario = placed(data.draw, again.scenario)
                left[0] = 0
                list(again.play())
        assert_identical(one, other)


@settings(**DRAWN)
@given(base=small(), seed=st.integers(0, 99), data=st.data())
def test_clients_may_die_in_any_span_and_no_release_comes_before_its_charge(base, seed, data):
    with tempfile.TemporaryDirectory() as name:
        folder, backend, dice = Path(name), Scrambled(seed), random.Random(seed)
        expected = run(with_placement(base, 2, span=1), out=folder / "one").metrics.to_pylist()
        (folder / "ledger").mkdir()
        crew = Crew(placed(data.draw, base), backend, folder)
        crew.begin(0, 0, None)
        step = crew.lead.step

        def paid(release, *rest):
            assert release in store.read(folder / "ledger")["release"].to_pylist()
            return step(release, *rest)

        crew.lead.step = paid
        conductor, rows = Conductor(crew), []
        execute = conductor.execute

        def deadly(command):
            if dice.random() < 0.1:
                source = dice.randrange(len(crew.clients))
                if crew.deaths[source] < 4:
                    backend.kill(crew.clients[source])
            execute(command)

        conductor.execute = deadly
        rows = list(conductor.play(ROUNDS))
        assert rows == expected
        crew.ask(crew.collectors[0], "collect")  # what it was asked before is done then
        assert not conductor.collecting.open and not crew.collectors[0].closed


def batch(release, source=0, epoch=0):
    senders = Listed(np.array([source], np.uint32), np.zeros(1, np.uint16))
    return Reports(release, source, epoch, senders, np.zeros(1, np.uint8), np.array([1], np.uint8))


def test_a_span_of_a_zombie_takes_nothing_in_and_one_that_comes_twice_counts_once():
    inbox = Inbox()
    inbox.admit(1, 2)
    mine, zombie = [batch(3), None, batch(5)], [batch(3, 1, 1), batch(4, 1, 1), None]
    assert not inbox.collect_all([mine, zombie])
    assert len(inbox.close(3).senders) == 0, "something of a refused span came in"
    inbox = Inbox()
    assert inbox.collect_all([mine]) and inbox.collect_all([mine])
    gathered = inbox.close(5)
    assert (len(gathered.senders), gathered.duplicates) == (1, 1)
    # Once one of its releases is closed, all of the span is late.
    assert not inbox.collect_all([mine])
    assert (len(inbox.close(3).senders), len(inbox.close(4).senders)) == (1, 0)
