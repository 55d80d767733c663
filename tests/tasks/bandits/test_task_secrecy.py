"""What a bandit's learner is handed says nothing of who served which slot, or in which context."""

import dataclasses
import math

import numpy as np
from scipy import stats

from raydp_sim.actors.aggregator import AggregatorActor
from raydp_sim.actors.backend import Inline
from raydp_sim.actors.client import ClientActor
from raydp_sim.actors.shuffler import ShufflerActor
from raydp_sim.run import prepare, run
from raydp_sim.scenario import setting_of
from raydp_sim.stream.batches import Listed, Reports, Slotted
from raydp_sim.stream.buckets import draw_buckets
from tests.tasks.bandits.playing import bandit, contextual


def test_slots_of_a_cohort_are_uniform_also_among_those_who_report():
    """How often each of 8 clients has each slot, over 2000 batches, a quarter of which stays away.

    Counts of a client are multinomial given how often it reports; clients of one batch exclude one
    another, which makes the sum of squares smaller. So a false alarm is at most as likely as for
    independent ones: 1e-6.
    """
    base = bandit(
        clients=8,
        task={"horizon": 8},
        population={"dropout": 0.25},
        participation={"kind": "all", "deadline": 9.0},
    )
    shuffler = ShufflerActor(base.document())
    shuffler.plan(None, None)
    setting = setting_of(base)
    ask = base.task.ask(setting, base.task.init(setting))
    head = dataclasses.replace(ask, slots=(3, 5), minimum=1)
    counts = np.zeros((8, 2))
    for release in range(2000):
        _, cohort = shuffler.choose(release, 0.0, 8, head, None)
        assert len(cohort.asked) == 8
        counts[cohort.ids, cohort.slots] += 1
    expected = counts.sum(axis=1, keepdims=True) * np.array([3, 5]) / 8
    assert counts.sum() < 0.8 * 8 * 2000
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 8) > 1e-6


def test_the_learner_s_input_does_not_tell_who_served_which_slot():
    """Where in the learner's input the report of each client comes: uniform over all places.

    Reports here are the clients' own numbers. Over R batches of n clients the table of client and
    place is a sum of R uniform permutation matrices, if nothing tells who is where; then
    (n - 1)/n times Pearson's statistic has (n - 1)^2 degrees of freedom. A false alarm: 1e-6.
    """
    clients, releases = 6, 2000
    base = bandit(clients=clients, task={"horizon": clients})
    shuffler, stream = ShufflerActor(base.document()), base.stream(0)
    shuffler.plan(None, None)
    setting = setting_of(base)
    ask = base.task.ask(setting, base.task.init(setting))
    head = dataclasses.replace(ask, slots=(2, 4), minimum=1)
    ids = np.arange(clients, dtype=np.uint32)
    table, same = np.zeros((clients, clients)), 0
    for release in range(releases):
        _, cohort = shuffler.choose(release, 0.0, clients, head, None)
        bucket = draw_buckets(stream.at("bucket", release), ids, 1)[:, 0]
        senders, payload = Listed(ids, np.zeros(clients, np.uint16)), ids.astype(float)
        shuffler.collect(Reports(release, 0, 0, senders, bucket, payload[:, None]))
        shuffler.close(release, head, cohort)
        chunk = shuffler.chunk(release, 0, 1 << 20, True)
        assert type(chunk) is Slotted and chunk.slot.tolist() == [0, 0, 1, 1, 1, 1]
        order = chunk.payload.reshape(-1).astype(int)
        # The permutation is undone exactly: every report is where its client's slot is.
        assert (cohort.slots[order] == chunk.slot).all()
        table[order, np.arange(clients)] += 1
        same += int((np.diff(order) > 0).all())
    expected = releases / clients
    statistic = (clients - 1) / clients * ((table - expected) ** 2).sum() / expected
    assert stats.chi2.sf(statistic, (clients - 1) ** 2) > 1e-6
    assert same < releases / 24  # in the order of ids by chance only: 1 in 720


def test_the_law_of_the_whole_input_is_the_same_whoever_holds_what(tmp_path, monkeypatch):
    """One client earns much, the others little: whether it is client 0 or 3, the input is alike.

    All that the learner is handed in 300 short runs, in either world, at hardly any noise: which
    slots have the one high reward. Chi-square for two samples, a false alarm 1e-6.
    """
    seen, fold = [], AggregatorActor.fold

    def noting(self, release, *parts):
        for part in parts:
            assert type(part) is Slotted
            names = {field.name for field in dataclasses.fields(part)}
            assert names == {"release", "groups", "lengths", "payload"}
            seen[-1].append((part.slot.tolist(), (part.payload.reshape(-1) > 0).tolist()))
        return fold(self, release, *parts)

    monkeypatch.setattr(AggregatorActor, "fold", noting)
    mechanism = {"kind": "laplace", "radius": 1.0, "target": {"epsilon": 100.0, "delta": 1e-6}}
    placement = {"backend": "inline", "checkpoint_seconds": 1e6}
    base = bandit(
        clients=9, task={"rounds": 1}, mechanism=mechanism, repeat=300, placement=placement
    )
    hold = type(base.population).hold
    counts = []
    for lucky in (0, 3):

        def held(self, ids, root, lucky=lucky):
            data = hold(self, ids, root)
            data[:, 0] = np.where(ids == lucky, 0.0, 1.0)
            data[:, 1:] = 0.0
            return data

        monkeypatch.setattr(type(base.population), "hold", held)
        seen.append([])
        for _ in prepare(base, out=tmp_path / str(lucky)).releases():
            pass
        patterns = [tuple(high) for slots, high in seen[-1]]
        assert {tuple(slots) for slots, _ in seen[-1]} == {(0, 0, 1, 1)}
        none = sum(not any(pattern) for pattern in patterns)
        places = [sum(pattern[j] for pattern in patterns) for j in range(4)]
        assert none + sum(places) == 300
        counts.append([none, *places])
    assert min(min(row) for row in counts) > 5
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-6


def test_contexts_and_what_was_played_never_leave_the_client(tmp_path, monkeypatch):
    """Every message between actors is looked at: of a client it is one reward with noise.

    The receipts are for the simulation's analyst alone, and reach no reader.
    """
    messages, call = [], Inline.call

    def noting(self, actor, method, *args, returns=1):
        refs = call(self, actor, method, *args, returns=returns)
        messages.append((actor, method, args, refs))
        return refs

    monkeypatch.setattr(Inline, "call", noting)
    base = contextual(clients=300)
    run(base, out=tmp_path / "run")
    sent = [refs for _, method, _, refs in messages if method == "report"]
    assert len(sent) >= 3
    for _, *batches in sent:
        for batch in (getattr(ref, "value", ref) for ref in batches):
            assert isinstance(batch, Reports) and batch.slot is None
            fields = {field.name for field in dataclasses.fields(batch)}
            own = {"release", "source", "epoch", "senders", "bucket", "payload", "slot"}
            # Two for several analysts only, and one for symbols.
            assert fields == {*own, "records", "promotions", "runs"}
            assert batch.records is None and batch.promotions == () and batch.runs is None
            # One number each, and it is continuous: no two are alike.
            assert batch.payload.shape == (len(batch.senders), 1)
            assert batch.payload.dtype == np.float64
            assert len(np.unique(batch.payload)) == len(batch.payload)
    heads = [refs for _, method, _, refs in messages if method == "ask"]
    for ref in heads[:-1]:
        head, broadcast = (getattr(one, "value", one) for one in ref)
        assert set(broadcast) == {"directions"} and head.slots is not None
    readers = [(method, args) for actor, method, args, _ in messages if _reads(actor)]
    assert {method for method, _ in readers} <= {"begin", "ask", "fold", "step", "checkpoint"}


def _reads(actor):
    return isinstance(getattr(actor, "target", actor), AggregatorActor)


def test_a_report_depends_on_the_context_through_the_reward_alone():
    """Two clients that earn the same send the same, in whatever contexts they are."""
    base = contextual(clients=40)
    client = ClientActor(base.document(), 0, 0, 0, 40)
    client.load(0)
    task, setting = base.task, client.setting
    ask = task.ask(setting, task.init(setting))
    data = np.array(client.answers.data)
    slots = np.zeros(40, np.int64)
    sent = []
    for context in (0, 1, 2):
        data[:, 0], data[:, 1] = 0.0, context  # the luckiest earn the larger reward anywhere
        stream = base.stream(0).at("task", 0).clients(client.ids)
        answer = task.client(setting, ask, data, {}, slots, None, stream)
        noise = base.stream(0).at("randomize", 0).clients(client.ids)
        sent.append(ask.mechanism.randomize(answer.values, noise).payload)
    assert np.array_equal(sent[0], sent[1]) and np.array_equal(sent[0], sent[2])
    assert math.isfinite(sent[0].sum())
