"""Several messages per client: no bound is below the exact law, over all neighbours, both ways."""

import itertools
import math
from functools import reduce

import numpy as np
import pytest

from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.composition.messages import report_round, whole
from raydp_sim.privacy.composition.pld import compose_delta, shuffle_round
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import MultiMessageShuffle, SubsampledMultiMessage
from tests.privacy.enumeration import histogram_law, hockey_stick, random_channel, subset_sums

EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0)


def outer(laws):
    """Return the law of independent views side by side, as one flat array."""
    return reduce(np.multiply.outer, [law.ravel() for law in laws]).ravel()


def per_index(channels, batch):
    """Return the law of the multisets of all indices, for the inputs of one batch."""
    return outer([histogram_law(channel, batch, len(batch)) for channel in channels])


def pairs(channels, n, k):
    """Yield the laws of a view for every ordered pair of neighbours; k of n are sampled.

    One cohort for all indices: the mixture is over batches, of the product over the indices.
    """
    inputs = range(len(channels[0]))
    for others in itertools.combinations_with_replacement(inputs, n - 1):
        laws = []
        for own in inputs:
            batches = list(itertools.combinations((own, *others), k))
            laws.append(sum(per_index(channels, batch) for batch in batches) / len(batches))
        yield from itertools.permutations(laws, 2)


def rbin(loss):
    """Two bits, one of them chosen uniformly and flipped: four inputs, four symbols."""
    truth = 1.0 / (1.0 + math.exp(-loss))
    rows = []
    for bits in itertools.product((0, 1), repeat=2):
        row = [0.5 * (truth if bit == said else 1.0 - truth) for bit in bits for said in (0, 1)]
        rows.append(row)
    return np.array(rows)


def two_rr(loss):
    truth = 1.0 / (1.0 + math.exp(-loss))
    return np.array([[truth, 1.0 - truth], [1.0 - truth, truth]])


CASES = [
    ([two_rr(1.0), two_rr(1.0)], (1.0, 1.0), "2rr", 4, 4),
    ([two_rr(1.0), two_rr(1.0)], (1.0, 1.0), "2rr", 5, 2),
    ([two_rr(2.0), two_rr(0.5)], (2.0, 0.5), "2rr", 4, 3),
    ([two_rr(0.7)] * 3, (0.7,) * 3, "2rr", 4, 2),
    ([rbin(1.0), rbin(0.4)], (1.0, 0.4), "rbin", 3, 2),
    ([random_channel(1, 1.0), random_channel(2, 0.6)], (1.0, 0.6), None, 4, 2),
    ([random_channel(3, 2.5), random_channel(4, 0.3)], (2.5, 0.3), None, 3, 3),
]


@pytest.mark.parametrize("channels,losses,name,n,k", CASES)
def test_the_product_of_the_messages_pairs_sampled_dominates_every_neighbour(
    channels, losses, name, n, k
):
    clients = n if k < n else None
    every = list(pairs(channels, n, k))
    kinds = [report_round(losses, k, clients=clients)]
    if name is not None:
        kinds.append(report_round(losses, k, randomizer=name, clients=clients))
    event = SubsampledMultiMessage(losses, n, k)
    kinds.append(shuffle_round(whole(event).epsilon0, k, clients=clients))
    for epsilon in EPSILONS:
        exact = max(hockey_stick(pair, epsilon) for pair in every)
        for kind in kinds:
            assert compose_delta([kind], epsilon) >= exact * (1.0 - 1e-9)


@pytest.mark.parametrize("channels,losses,name,n,k", CASES[:2])
def test_two_rounds_of_several_messages_are_dominated_too(channels, losses, name, n, k):
    clients = n if k < n else None
    twice = [(np.outer(p, p), np.outer(q, q)) for p, q in pairs(channels, n, k)]
    for epsilon in EPSILONS:
        exact = max(hockey_stick(pair, epsilon) for pair in twice)
        kind = report_round(losses, k, times=2, randomizer=name, clients=clients)
        assert compose_delta([kind], epsilon) >= exact * (1.0 - 1e-9)


def test_sampling_every_index_by_itself_would_be_too_little():
    """The order matters: indices that are sampled one by one say less than one common cohort."""
    losses, n, k = (1.0,) * 6, 20, 1
    apart = [shuffle_round(loss, k, clients=n) for loss in losses]
    together = [report_round(losses, k, clients=n)]
    assert compose_delta(apart, 1.0) < 0.5 * compose_delta(together, 1.0)
    # With one client per batch nothing is shuffled: the view is the report of whoever was drawn.
    rows = [outer([two_rr(1.0)[bit] for _ in losses]) for bit in (0, 1)]
    mixed = [(rows[bit] + (n - 1) * rows[0]) / n for bit in (0, 1)]
    exact = max(hockey_stick(pair, 1.0) for pair in itertools.permutations(mixed))
    assert compose_delta(apart, 1.0) < exact <= compose_delta(together, 1.0)


def test_correlated_messages_are_no_composition_of_their_shuffles():
    """Two shares of one flipped bit tell nothing apart and everything together."""
    share = np.full((2, 2), 0.5)  # each message alone is a fair coin, whatever the bit
    alone = max(hockey_stick(pair, 0.0) for pair in pairs([share, share], 2, 2))
    assert alone < 1e-15
    # Together their exclusive or is the bit: n = 1, messages (r, r xor bit).
    joint = [np.array([0.5, 0.0, 0.0, 0.5]), np.array([0.0, 0.5, 0.5, 0.0])]
    assert hockey_stick(tuple(joint), 0.0) == 1.0


def test_the_smallest_of_all_is_taken_and_says_which():
    table = account([(SubsampledMultiMessage((1.0, 1.0), 10_000, 1000, "rbin"), 20)], 1e-6)
    assert table.best == "pld-variation"
    named, generic, reports = (
        table[name].value for name in ("pld-variation", "pld-clones", "pld-reports")
    )
    assert named < generic < reports < 0.2421
    assert named < table["rdp-best"].value


@pytest.mark.parametrize("losses", [(1.0, 1.0), (3.0, 0.1), (0.0, 2.0)])
def test_whole_reports_hold_for_messages_that_everyone_sends(losses):
    every = MultiMessageShuffle(losses, 500)
    by_report = find_run("pld-reports").epsilon([(every, 3)], 1e-6).epsilon
    by_index = find_run("pld-clones").epsilon([(every, 3)], 1e-6).epsilon
    floor = find_run("pld-clones").epsilon([(MultiMessageShuffle(losses[:1], 500), 3)], 1e-6)
    assert by_report >= floor.epsilon
    assert by_index >= floor.epsilon


def test_one_message_per_report_needs_no_bound_by_reports():
    with pytest.raises(NotApplicable, match="pld-clones"):
        find_run("pld-reports").epsilon([(whole(MultiMessageShuffle((1.0, 1.0), 9)), 1)], 1e-6)


def test_subsets_of_the_enumeration_agree_with_sums_over_batches():
    """The oracle itself: one index, against the other way to sum over cohorts."""
    channel, others = random_channel(5, 1.0), (0, 1, 2)
    sums = subset_sums(channel, (0, *others), 2)[2] / math.comb(4, 2)
    batches = list(itertools.combinations((0, *others), 2))
    direct = sum(per_index([channel], batch) for batch in batches) / len(batches)
    assert np.allclose(sums.ravel(), direct, atol=1e-15)
