"""What each view of several analysts costs: composition, amplification, promotions, coalitions."""

import itertools
import math

import numpy as np
import pytest

from raydp_sim.privacy.events import LocalReport, Shuffle
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.ledger.sizes import rounded
from raydp_sim.privacy.ledger.store import Charge
from raydp_sim.scenario import bound_mechanism
from raydp_sim.scenario.accounting import opened
from raydp_sim.scenario.views import View, account, views
from raydp_sim.stream.levels import Levels, Promoting
from tests.actors.leveled import analysts, promoting

CLIENTS, ROUNDS = 400, 5


def charges(batches):
    """Return rows of a ledger with these participants."""
    return [
        Charge(0, release, 0.0, LocalReport(3.0), np.asarray(ids, np.uint32))
        for release, ids in enumerate(batches)
    ]


def everyone():
    return charges([range(CLIENTS)] * ROUNDS)


def came(seed=1):
    rng = np.random.default_rng(seed)
    return [np.flatnonzero(rng.random(CLIENTS) < 0.7) for _ in range(ROUNDS)]


def of(base, readers, rows):
    return account(base, bound_mechanism(base), View("some", tuple(readers)), rows)


def test_a_view_without_a_shuffler_adds_up_its_own_level():
    base = analysts("local")
    for reader, level in ((0, 1.0), (1, 3.0), (2, 2.0)):
        found = of(base, [reader], everyone())
        assert found.ledger.guarantee().epsilon == pytest.approx(ROUNDS * level, rel=1e-9)
        assert found.ledger.guarantee().epsilon <= ROUNDS * level
        assert found.amplified.startswith("no: nothing is shuffled")


def test_a_shuffled_view_costs_what_its_level_shuffled_does():
    base = analysts()
    mechanism = bound_mechanism(base)
    for reader, level in ((0, 2), (1, 0), (2, 1)):
        found = of(base, [reader], everyone()).ledger.guarantee()
        alone = Ledger(1, 1e-6, rule="laws")
        loss = mechanism.event_at(level).epsilon
        alone.charge(LocalReport(loss), range(1), Shuffle(loss, CLIENTS, "rbin"), ROUNDS)
        assert found.epsilon == pytest.approx(alone.guarantee().epsilon, rel=1e-3)
        assert found.epsilon < ROUNDS * loss


def test_keys_that_come_straight_from_clients_gain_nothing_from_the_shuffler():
    base = analysts(privacy={"levels": [3.0, 2.0, 1.0], "key_path": "direct"})
    assert of(base, [0], everyone()).amplified == "yes"
    for readers in ([1], [2], [0, 2], [0, 1, 2]):
        found = of(base, readers, everyone())
        least = min(reader for reader in readers if reader)
        assert found.ledger.guarantee().epsilon == pytest.approx(ROUNDS * (4.0 - least))
        assert "straight from clients" in found.amplified


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_a_coalition_costs_what_its_least_private_member_does(trust):
    base = analysts(trust)
    rows = charges(came())
    alone = {reader: of(base, [reader], rows).ledger.epsilons() for reader in range(3)}
    for size in (2, 3):
        for readers in itertools.combinations(range(3), size):
            least = min(reader for reader in readers if reader)
            together = of(base, readers, rows).ledger.epsilons()
            assert np.array_equal(together, alone[least])


def test_a_coalition_learns_no_more_than_its_least_private_member_by_enumeration():
    """Of the joint law of a report and the coalition's keys, for all pairs of values."""
    mechanism = bound_mechanism(analysts())
    coins = mechanism.coins
    # Outcomes: (column, public bit, keys); the column is uniform, so one column at a time.
    for members in itertools.chain.from_iterable(
        itertools.combinations(range(3), n) for n in (1, 2, 3)
    ):
        laws = {}
        for sign in (0, 1):
            law = {}
            for u in itertools.product((0, 1), repeat=3):
                chance = math.prod(q if bit else 1.0 - q for q, bit in zip(coins, u, strict=True))
                keys = tuple(sum(u[level + 1 :]) % 2 for level in members)
                seen = ((sign + sum(u)) % 2, keys)
                law[seen] = law.get(seen, 0.0) + chance
            laws[sign] = law
        losses = [
            abs(math.log(laws[0][seen] / laws[1][seen])) for seen in laws[0] if laws[0][seen] > 0.0
        ]
        assert max(losses) == pytest.approx(mechanism.levels[min(members)], rel=1e-9)
        assert max(losses) <= mechanism.levels[min(members)] * (1.0 + 1e-12)


def test_a_promotion_charges_those_who_came_again_and_hides_each_among_its_own_kind():
    base = promoting()
    mechanism, batches = bound_mechanism(base), came()
    found = of(base, [2], charges(batches)).ledger
    loss = [mechanism.event_at(level).epsilon for level in range(3)]
    by_hand = Ledger(CLIENTS, 1e-6)
    for release, ids in enumerate(batches):
        again = np.isin(ids, batches[3])
        if release >= 3:
            kinds = [(ids, loss[0])]
        else:
            kinds = [(ids[~again], loss[1]), (ids[again], loss[0])]
        for members, each in kinds:
            event = rounded(Shuffle(each, len(members), "rbin"), 16)
            assert len(members) / 1.1 < event.n <= len(members)
            by_hand.charge(LocalReport(each), members.astype(np.uint32), event)
    assert np.array_equal(found.epsilons(), by_hand.epsilons())
    assert found.shuffled == by_hand.shuffled
    # Under local trust it is what each report is seen at, added up.
    local = of(promoting("local"), [2], charges(batches)).ledger.epsilons()
    expected = np.zeros(CLIENTS)
    for release, ids in enumerate(batches):
        level = np.where(np.isin(ids, batches[3]) | (release >= 3), loss[0], loss[1])
        expected[ids] += level
    assert np.allclose(local, expected, rtol=1e-12)


def test_a_promotion_lessens_what_shuffling_gains_for_all_who_share_what_they_see():
    base = promoting()
    rows = charges(came())
    alone, together = (of(base, readers, rows) for readers in ([1], [0, 1, 2]))
    assert alone.amplified == "yes" and together.amplified.startswith("in part")
    assert together.ledger.guarantee().epsilon > alone.ledger.guarantee().epsilon
    assert together.ledger.guarantee().epsilon < sum(3.0 for _ in range(ROUNDS))


def test_before_its_promotion_an_analyst_is_charged_its_first_level():
    base = promoting()
    batches = came()
    early = of(base, [2], charges(batches[:3])).ledger
    assert {event.epsilon0 for event in early.shuffled} == {
        bound_mechanism(base).event_at(1).epsilon
    }
    sizes = {rounded(Shuffle(1.0, len(ids)), 16).n for ids in batches[:3]}
    assert {event.n for event in early.shuffled} == sizes


@pytest.mark.parametrize("withheld", [True, False])
def test_keys_of_a_promotion_are_charged_whatever_became_of_what_they_came_with(withheld):
    """Straight from clients they reach the analyst, be a report late or its batch withheld."""
    rows = [row for row in charges(came()) if row.release != 3 or not withheld]
    direct = promoting(privacy={"key_path": "direct"})
    mechanism = bound_mechanism(direct)
    found = of(direct, [2], rows).ledger.epsilons()
    loss = mechanism.event_at(0).epsilon  # of every report, the earlier ones too
    seen = np.bincount(np.concatenate([row.participants for row in rows]), minlength=CLIENTS)
    assert np.allclose(found, loss * seen, rtol=1e-12)
    # The shuffler drops them with the batch; nobody withholds anything unseen under local trust.
    early = [row for row in rows if row.release < 3]
    for base in (promoting(), promoting("local")):
        alone = of(base, [2], early).ledger
        assert {event.epsilon for event in alone.charged} == {mechanism.event_at(1).epsilon}


def test_dishonest_clients_may_all_be_on_one_side():
    base = promoting(privacy={"honest_fraction": 0.9})
    batches = came()
    found = of(base, [2], charges(batches)).ledger
    ids = batches[0]
    dishonest = len(ids) - math.floor(0.9 * len(ids))
    again = int(np.isin(ids, batches[3]).sum())
    sizes = {event.n for event in found.shuffled}
    hiding = (again - dishonest, len(ids) - again - dishonest)
    assert {rounded(Shuffle(1.0, n), 16).n for n in hiding} <= sizes


def test_whoever_recovers_values_has_no_guarantee_and_is_left_out_of_the_rest():
    rec = {"kind": "ldp-rec", "categories": 10}
    base = analysts(mechanism=rec, privacy={"levels": [math.inf, 1.0]})
    assert [view.name for view in views(base.privacy.readers(True))] == ["public", "analyst-1"]
    found = of(base, [1], everyone())
    assert found.ledger is None and "recovered" in found.amplified
    assert of(base, [0], everyone()).ledger.guarantee().epsilon < ROUNDS


def test_who_is_promoted_to_see_everything_is_left_out_of_the_rest_too():
    told = {"levels": [math.inf, 2.0, 1.0], "promotions": [{"analyst": 2, "to": 1, "release": 3}]}
    base = promoting(privacy=told)
    found = of(base, [2], charges(came()))
    assert found.ledger is None and "without noise" in found.amplified
    last = views(base.privacy.readers(True))[-1]
    assert last == View("all but analyst-1 and analyst-2", (0,))
    said = opened(base, bound_mechanism(base)).guarantee().assumption
    assert "all readers but analyst-1 and analyst-2, from whom nothing is hidden" in said


def test_views_name_who_looks():
    levels = Levels((3.0, 2.0, 1.0), promotions=(Promoting(2, 1, 4),))
    assert [view.name for view in views(levels)][-1] == "all together"
    assert [view.readers for view in views(levels)] == [(0,), (1,), (2,), (0, 1, 2)]
