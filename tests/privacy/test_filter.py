"""A budget holds for every client, whatever cohorts form and however cleverly costs are chosen."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.actors.ledger import LedgerActor
from raydp_sim.errors import InputError, RunError
from raydp_sim.privacy.composition.conversion import dp_to_delta, rdp_to_dp
from raydp_sim.privacy.composition.streaming import event_vector
from raydp_sim.privacy.curves.caps import pure_epsilon
from raydp_sim.privacy.curves.local import local_rdp
from raydp_sim.privacy.events import GaussianRelease, LocalReport, Shuffle
from raydp_sim.privacy.ledger.filter import ALPHA_MAX, ORDERS, Filter
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.ledger.planning import planned_filter
from raydp_sim.privacy.spent import spent
from raydp_sim.scenario import bound_mechanism
from raydp_sim.scenario.accounting import budgeted
from raydp_sim.tasks.base import Ask
from tests.conftest import scenario

DELTA = 1e-6
SIZES = (300, 717, 1448)  # the smallest is the worst that is released
WORST = Shuffle(0.5, SIZES[0])


@pytest.mark.parametrize("epsilon,delta", [(0.3, 1e-8), (1.0, 1e-6), (8.0, 1e-5), (50.0, 0.1)])
def test_each_limit_converts_to_the_budget_at_its_share_of_delta(epsilon, delta):
    limits = Filter(epsilon, delta).limits
    kept = np.flatnonzero(np.isfinite(limits))
    assert len(kept) > 1
    for place in kept:
        found = rdp_to_dp(limits[place], ORDERS[place], delta / len(kept))
        assert epsilon * (1 - 1e-9) <= found <= epsilon


def test_without_a_delta_only_pure_losses_count():
    pure = Filter(1.0)
    assert not np.isfinite(pure.limits).any()
    rows = np.zeros((3, len(ORDERS)))
    cost = np.zeros(len(ORDERS))
    assert pure.allows(rows, np.array([0.0, 0.5, 0.6]), cost, 0.5).tolist() == [True, True, False]
    assert not pure.allows(rows, np.zeros(3), cost, math.inf).any()


def test_a_larger_batch_never_costs_more_at_any_order():
    """What the filter asks for, the smallest batch, has to be the worst as it is accounted."""
    for loss in (0.25, 1.5):
        vectors = [event_vector(Shuffle(loss, n), None, ALPHA_MAX) for n in (1, 3, 8, 50, 1000)]
        for small, large in itertools.pairwise(vectors):
            assert np.all(large <= small * (1 + 1e-12))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    clients=st.integers(1, 60),
    epsilon=st.floats(0.2, 3.0),
    eager=st.floats(0.3, 1.0),
)
def test_no_client_ever_exceeds_its_budget(seed, clients, epsilon, eager):
    draw, budget = np.random.default_rng(seed), Filter(epsilon, DELTA)
    ledger, report = Ledger(clients, DELTA), LocalReport(0.5)
    able = ledger.able(report, WORST, budget)
    for _ in range(40):
        cohort = np.flatnonzero(able & (draw.random(clients) < eager)).astype(np.uint32)
        ledger.charge(report, cohort, Shuffle(0.5, int(draw.choice(SIZES))))
        after = ledger.able(report, WORST, budget)
        assert not (after & ~able).any()  # who has stopped never comes back
        able = after
        assert ledger.epsilons().max() <= epsilon
        assert ledger._spent.each().max() <= epsilon
    # The same as if nobody had asked before the end.
    fresh = Ledger(clients, DELTA)
    fresh.__dict__.update({**ledger.__dict__})
    fresh._spent._asked = None
    assert np.array_equal(fresh.able(report, WORST, budget), able)


def test_a_budget_is_spent_before_a_client_stops():
    """Stopped clients have used most of it: the split of delta costs a fifth of epsilon here."""
    budget, ledger = Filter(1.0, DELTA), Ledger(2, DELTA)
    report, one = LocalReport(0.5), np.array([1], dtype=np.uint32)
    times = 0
    while ledger.able(report, WORST, budget)[1]:
        ledger.charge(report, one, WORST)
        times += 1
    assert 0.8 < ledger.epsilons()[1] <= 1.0
    assert times > 5 * int(1.0 / 0.5)  # far more than pure losses would have allowed
    assert ledger.able(report, WORST, budget).tolist() == [True, False]


@pytest.mark.parametrize("epsilon,delta,times", [(1.05, 0.0, 4), (1.05, 1e-6, 4), (5.0, 2.5e-7, 2)])
def test_where_no_divergence_is_known_epsilons_and_deltas_add_up(epsilon, delta, times):
    report = LocalReport(0.25, 1e-7 if delta == 2.5e-7 else 0.0)
    ledger, budget = Ledger(3, DELTA), Filter(epsilon, delta)
    taken = 0
    while ledger.able(report, None, budget)[0]:
        ledger.charge(report, np.array([0], dtype=np.uint32))
        taken += 1
    assert taken == times
    assert ledger.guarantee().epsilon <= epsilon and ledger.guarantee().delta <= delta
    assert ledger.able(report, None, budget).tolist() == [False, True, True]


def test_noise_of_a_trusted_aggregator_is_filtered_too():
    budget, release = Filter(1.0, DELTA), GaussianRelease(20.0)
    assert pure_epsilon(release) == math.inf
    ledger, report = Ledger(3, DELTA), LocalReport(1.0, 1e-7)
    for _ in range(100):
        able = np.flatnonzero(ledger.able(report, release, budget)).astype(np.uint32)
        ledger.charge(report, able[:2], release)
    assert 0.8 < ledger._spent.each().max() <= 1.0


STEP = 0.05  # losses are one or two steps


def exact_delta(epsilon, budget, choose):
    """Return the exact delta at epsilon of randomized responses that an adversary chooses.

    It sees every answer and then chooses whether the next loss is one step or two; the client
    answers while the filter allows the larger. Its choice, the filter and the likelihood ratio
    depend on the numbers of small and large losses and on the sum of signed ones only, so
    transcripts that share these are taken together.

    Returns:
        delta, and the number of answers of the longest transcript.
    """
    cost = {k: np.array([local_rdp(k * STEP, a) for a in ORDERS]) for k in (1, 2)}
    states, total, longest = {(0, 0, 0): 1.0}, 0.0, 0
    while states:
        after = {}
        for (small, large, ratio), mass in states.items():
            spent = small * cost[1] + large * cost[2]
            pure = np.array([(small + 2 * large) * STEP])
            within = budget.allows(spent[None], pure, cost[2], 2 * STEP)[0]
            if not within and small + large >= budget.count:
                # The other neighbour's probability is smaller by the factor e^-ratio.
                total += mass * max(0.0, -math.expm1(epsilon - ratio * STEP))
                longest = max(longest, small + large)
                continue
            k = choose(small + large, ratio)
            stays = 1.0 / (1.0 + math.exp(-k * STEP))
            for sign, chance in ((1, stays), (-1, 1.0 - stays)):
                state = (small + (k == 1), large + (k == 2), ratio + sign * k)
                after[state] = after.get(state, 0.0) + mass * chance
        states = after
    return total, longest


@pytest.mark.parametrize(
    "choose",
    [
        # Large steps while the answers speak for one neighbour, small ones to wait otherwise.
        lambda taken, ratio: 2 if ratio >= 0 else 1,
        lambda taken, ratio: 1 if ratio >= 10 else 2,
        lambda taken, ratio: 1 + taken % 2,
        lambda taken, ratio: 2,
    ],
)
def test_an_adversary_that_chooses_costs_by_what_it_saw_gains_nothing(choose):
    """By enumeration, exactly, and with more answers than basic composition allows."""
    epsilon, delta = 1.0, 0.1
    found, longest = exact_delta(epsilon, Filter(epsilon, delta), choose)
    assert longest * 2 * STEP > 1.2 * epsilon
    assert 0.0 < found <= delta


@pytest.mark.parametrize(
    "choose",
    [
        lambda taken, ratio: 2 if ratio >= 0 else 1,
        lambda taken, ratio: 1 if ratio >= 10 else 2,
        lambda taken, ratio: 2,
    ],
)
def test_nor_where_participations_are_counted(choose):
    """As many as all at the largest cost are within the budget; one more would not be."""
    epsilon, delta = 1.0, 0.02

    def largest(taken, ratio):
        return 2

    count = 1
    while exact_delta(epsilon, Filter(epsilon, delta, count=count + 1), largest)[0] <= delta:
        count += 1
    assert count * 2 * STEP > 1.5 * epsilon
    found, longest = exact_delta(epsilon, Filter(epsilon, delta, count=count), choose)
    assert 0.0 < found <= delta and longest >= count
    assert exact_delta(epsilon, Filter(epsilon, delta, count=count + 1), largest)[0] > delta


def test_a_preferred_order_has_most_of_delta_and_no_more_is_given_away():
    for preferred in (3, 10, 20):
        limits = Filter(1.0, DELTA, preferred).limits
        kept = np.flatnonzero(np.isfinite(limits))
        # The delta that each limit converts to at its order: 000 Lemma 2.1.3.
        shares = [dp_to_delta(limits[i], ORDERS[i], 1.0) for i in kept]
        assert sum(shares) <= DELTA
        assert shares[list(kept).index(preferred)] > 0.74 * DELTA


def test_budgets_are_planned_for_the_batches_that_are_expected():
    small, large = Shuffle(1.0, 400, "2rr"), Shuffle(1.0, 1600, "2rr")
    counted = planned_filter(1.0, DELTA, small, small, 1000)
    assert spent([(small, counted.count)], DELTA).epsilon <= 1.0
    assert spent([(small, counted.count + 1)], DELTA).epsilon > 1.0
    assert not np.isfinite(counted.limits).any()
    # The plan is over before the budget is: nobody ever stays home.
    assert planned_filter(1.0, DELTA, small, large, 10).count == 10
    by_orders = planned_filter(1.0, DELTA, small, large, 1000)
    assert by_orders.count == 0 and by_orders.preferred is not None
    ledgers = {name: Ledger(1, DELTA) for name in ("counted", "preferred", "even")}
    filters = (counted, by_orders, Filter(1.0, DELTA))
    taken = {}
    for (name, ledger), budget in zip(ledgers.items(), filters, strict=True):
        while ledger.able(LocalReport(1.0), small, budget)[0]:
            ledger.charge(LocalReport(1.0), range(1), large)
        taken[name] = ledger.participations()[0]
    assert taken["counted"] == counted.count
    assert taken["preferred"] > max(taken["even"], 2 * counted.count)
    # A release that costs next to nothing, or more than the budget.
    assert planned_filter(1.0, DELTA, Shuffle(1e-6, 10), Shuffle(1e-6, 10), 50).count == 50
    dear = planned_filter(0.1, DELTA, Shuffle(8.0, 10), Shuffle(8.0, 20), 50)
    assert not Ledger(1, DELTA).able(LocalReport(8.0), Shuffle(8.0, 10), dear).any()
    assert planned_filter(1.0, 0.0, small, large, 5) == Filter(1.0)


def test_no_more_than_the_budget_is_reported():
    event = Shuffle(1.0, 400, "2rr")
    budget = planned_filter(1.0, DELTA, event, event, 1000)
    ledger = Ledger(3, DELTA, kept_within=1.0)
    while ledger.able(LocalReport(1.0), event, budget)[0]:
        ledger.charge(LocalReport(1.0), np.array([0, 2], dtype=np.uint32), event)
    found = ledger.guarantee()
    assert (found.epsilon, found.median, found.bound) == (1.0, 1.0, "budget") and found.amplified
    assert ledger.epsilons().tolist() == [1.0, 0.0, 1.0]


def test_a_release_that_costs_more_than_was_planned_for_is_refused(tmp_path):
    base = scenario(shuffle={"min_batch": 50}, privacy={"budget": {"epsilon": 3.0, "delta": 1e-6}})
    actor = LedgerActor(base.document(), str(tmp_path))
    ask = Ask(bound_mechanism(base))
    with pytest.raises(RunError, match="may cost more than the release that clients' budgets"):
        actor.charge(0, 0.0, ask, {}, np.arange(49, dtype=np.uint32))
    assert actor.charge(0, 0.0, ask, {}, np.arange(50, dtype=np.uint32)) == 50


def test_the_enumeration_would_notice_a_filter_that_allows_too_much():
    def greedy(taken, ratio):
        return 2

    assert exact_delta(1.0, Filter(3.0, 0.1), greedy)[0] > 0.1


def test_an_actor_says_who_can_afford_the_smallest_batch(tmp_path):
    base = scenario(
        shuffle={"min_batch": 50},
        participation={"kind": "self", "probability": 0.5},
        privacy={"budget": {"epsilon": 3.0, "delta": 1e-6}},
    )
    actor = LedgerActor(base.document(), str(tmp_path))
    mechanism = bound_mechanism(base)
    _, worst = budgeted(base, mechanism)
    assert worst.n <= 50
    members = np.arange(0, 200, 2, dtype=np.uint32)
    masks = [actor.able()]
    while masks[-1].all() and len(masks) < 60:
        actor.charge(len(masks) - 1, 0.0, Ask(mechanism), {}, members)
        masks.append(actor.able())
    assert masks[0].all() and masks[0].dtype == np.bool_ and len(masks[0]) == 200
    assert len(masks) > 2 and not masks[-1][::2].any() and masks[-1][1::2].all()
    again = LedgerActor(base.document(), str(tmp_path))
    for finished in (0, len(masks) // 2, len(masks) - 1):
        again.begin(0, finished)
        assert np.array_equal(again.able(), masks[finished])
    free = LedgerActor(scenario().document(), str(tmp_path / "free"))
    assert free.able() is None


def test_a_budget_with_more_delta_than_the_run_reports_is_refused():
    with pytest.raises(InputError, match=r"budget.delta is 0.001; it must be at most"):
        scenario(privacy={"budget": {"epsilon": 1.0, "delta": 1e-3}})
    with pytest.raises(InputError, match=r"privacy.budget.epsilon is 0"):
        scenario(privacy={"budget": {"epsilon": 0}})
