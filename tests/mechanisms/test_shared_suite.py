"""What every registered mechanism must fulfil, chosen by what it declares of itself."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.privacy.events import CentralRelease, LocalReport, ShuffledRelease
from raydp_sim.random import Stream

from .support import (
    ALPHA,
    SERVER,
    cases,
    contributions,
    exact_moments,
    folded,
    has_laws,
    inputs,
    losses,
    reports,
)

CASES = cases()
FINITE = [case for case in CASES if has_laws(case.values[0])]
every = pytest.mark.parametrize("mechanism", CASES)
finite = pytest.mark.parametrize("mechanism", FINITE)


def some_values(mechanism: Mechanism, count: int) -> np.ndarray:
    rows = inputs(mechanism.domain)
    return rows[np.arange(count) % len(rows)]


def test_the_registry_holds_the_mechanisms_of_this_room():
    expected = {"2rr", "rbin", "linf", "l2", "laplace", "gaussian"}
    assert expected | {"central-laplace", "central-gaussian"} <= set(MECHANISMS.kinds)


@every
def test_shapes_and_types(mechanism):
    payload = reports(mechanism, some_values(mechanism, 9))
    assert payload.shape[:2] == (9, mechanism.messages_per_report)
    counts = folded(mechanism, payload)
    assert counts.dtype == np.int64 and counts.shape == mechanism.zero().shape
    estimate = mechanism.decode(counts, SERVER)
    assert estimate.shape == (mechanism.domain.dimension,) and estimate.dtype == np.float64
    assert mechanism.mse(some_values(mechanism, 9)).shape == (9,)


@every
def test_the_event_says_where_the_noise_is_drawn(mechanism):
    event = mechanism.event()
    kind = LocalReport if mechanism.where == "client" else CentralRelease
    assert isinstance(event, ShuffledRelease if mechanism.guarantee == "shuffled-only" else kind)
    if mechanism.guarantee == "none":
        assert math.isinf(event.epsilon)
        return
    assert 0.0 < event.epsilon <= mechanism.need_epsilon()
    assert (event.delta > 0.0) == (mechanism.guarantee in ("approximate", "shuffled-only"))


@every
def test_same_seed_same_reports_and_other_seed_others(mechanism):
    values = some_values(mechanism, 4000)
    one = reports(mechanism, values, seed=1)
    assert np.array_equal(one, reports(mechanism, values, seed=1))
    if mechanism.where == "client":
        assert not np.array_equal(one, reports(mechanism, values, seed=2))
    else:
        counts = folded(mechanism, one)
        first, again, other = (mechanism.decode(counts, Stream(seed)) for seed in (1, 1, 2))
        assert np.array_equal(first, again) and not np.array_equal(first, other)


@every
def test_reports_do_not_depend_on_who_shares_the_call(mechanism):
    values = some_values(mechanism, 23)
    ids = np.random.default_rng(1).choice(2**32, 23, replace=False).astype(np.uint32)
    stream = Stream(4).at("randomize", 2).clients(ids)
    whole = mechanism.randomize(values, stream)
    for size in (1, 3, 7):
        rows = [slice(first, first + size) for first in range(0, 23, size)]
        parts = [mechanism.randomize(values[part], stream.take(part)) for part in rows]
        assert np.array_equal(np.concatenate([part.payload for part in parts]), whole.payload)
        assert sum(part.clipped for part in parts) == whole.clipped
    mixed = np.random.default_rng(2).permutation(23)[:11]
    part = mechanism.randomize(values[mixed], stream.take(mixed))
    assert np.array_equal(part.payload, whole.payload[mixed])


@every
def test_no_client_is_no_report(mechanism):
    payload = reports(mechanism, some_values(mechanism, 0))
    assert len(payload) == 0
    assert np.array_equal(folded(mechanism, payload), mechanism.zero())
    assert np.isfinite(mechanism.decode(mechanism.zero(), SERVER)).all()


@every
def test_the_wire_is_exact_and_has_the_stated_length(mechanism):
    payload = reports(mechanism, some_values(mechanism, 50))
    wire = mechanism.encode(payload)
    assert wire.dtype == np.uint8 and wire.shape == (50, math.ceil(mechanism.bits / 8))
    back = mechanism.unpack(wire)
    assert back.dtype == payload.dtype and np.array_equal(back, payload)


@every
def test_counts_do_not_depend_on_order_and_add_up(mechanism):
    payload = reports(mechanism, some_values(mechanism, 60))
    whole = folded(mechanism, payload)
    rows = payload.reshape(-1, *payload.shape[2:])
    index = np.tile(np.arange(payload.shape[1]), len(payload))
    order = np.random.default_rng(0).permutation(len(rows))
    counts = mechanism.zero()
    for part in np.array_split(order, 7):
        before = counts.copy()
        after = mechanism.fold(counts, index[part], rows[part])
        assert np.array_equal(counts, before), "fold must not change its argument"
        counts = after
    assert np.array_equal(counts, whole)
    halves = folded(mechanism, payload[:31]) + folded(mechanism, payload[31:])
    assert np.array_equal(halves, whole)


@every
def test_estimates_are_unbiased_and_err_as_stated(mechanism):
    """8,000 releases of 5 clients. Chance of a false alarm, by the normal limit: 1e-8 for the mean
    (two-sided, Bonferroni over coordinates) and 1e-8 for the error."""
    releases, clients = 8000, 5
    values = inputs(mechanism.domain, seed=8)[-clients:]
    assert len(values) == clients
    payload = reports(mechanism, np.tile(values, (releases, 1)))
    meant = mechanism.domain.embed(values)
    estimates = np.empty((releases, meant.shape[1]))
    for release, part in enumerate(np.split(payload, releases)):
        estimates[release] = mechanism.decode(folded(mechanism, part), SERVER.at(release))
    error = estimates - meant.mean(axis=0)
    z = stats.norm.isf(ALPHA / 2 / meant.shape[1])
    assert z > 5.0
    standard = error.std(axis=0) / math.sqrt(releases)
    assert (np.abs(error.mean(axis=0)) < z * standard).all()
    square = (error**2).sum(axis=1)
    stated = mechanism.mse(values).sum() / clients**2
    z = stats.norm.isf(ALPHA / 2)
    assert abs(square.mean() - stated) < z * square.std() / math.sqrt(releases)


@every
def test_no_input_errs_more_than_the_worst(mechanism):
    values = inputs(mechanism.domain)
    assert mechanism.worst_mse() >= mechanism.mse(values[:1]).max() * (1 - 1e-12)
    if mechanism.where == "client":
        assert mechanism.worst_mse() >= mechanism.mse(values).max() * (1 - 1e-12)


@finite
def test_the_worst_error_is_attained_where_it_is_called_exact(mechanism):
    if mechanism.worst_mse_is == "bound":
        return
    rows = inputs(mechanism.domain)
    worst = mechanism.mse(rows).max()
    if mechanism.domain.norm in ("binary", "linf"):
        # Here the error is a sum over coordinates, so each may be maximised alone.
        candidates = np.unique(rows)
        each = np.empty((1, mechanism.domain.dimension))
        for column in range(each.shape[1]):
            tried = np.zeros((len(candidates), each.shape[1]))
            tried[:, column] = candidates
            each[0, column] = candidates[np.argmax(mechanism.mse(tried))]
        worst = max(worst, mechanism.mse(each)[0])
    assert worst == pytest.approx(mechanism.worst_mse(), rel=1e-12)


@finite
def test_enumeration_gives_the_value_and_the_stated_error(mechanism):
    values = inputs(mechanism.domain)
    mean, variance = exact_moments(mechanism, values)
    meant = mechanism.domain.embed(values)
    assert mean == pytest.approx(meant, abs=1e-9 * (1 + mechanism.domain.radius))
    assert variance == pytest.approx(mechanism.mse(values), rel=1e-9)


@finite
def test_laws_are_probabilities(mechanism):
    for law in mechanism.laws(inputs(mechanism.domain)):
        assert (law >= 0.0).all() and law.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


@finite
def test_reports_follow_the_laws(mechanism):
    """Chi-square per message and jointly for the first two: 1e-8 for each input."""
    clients = 20_000
    for number, value in enumerate(inputs(mechanism.domain)[[0, 1, -1]]):
        payload = reports(mechanism, np.tile(value, (clients, 1)), first=clients * number)
        laws = mechanism.laws(value[None])
        tables = [(payload[:, i].astype(int), law[0]) for i, law in enumerate(laws)]
        if len(laws) > 1:
            (first, law), (second, other) = tables[:2]
            tables.append((first * len(other) + second, np.outer(law, other).ravel()))
        # The joint table repeats two margins, so it is judged apart.
        for group in (tables[: len(laws)], tables[len(laws) :]):
            statistic, freedom = 0.0, 0
            for symbols, law in group:
                seen = np.bincount(symbols, minlength=len(law))
                assert seen[law == 0.0].sum() == 0
                large = law * clients >= 20
                rest = law[~large].sum() * clients
                expected = np.append(law[large] * clients, rest)
                counted = np.append(seen[large], seen[~large].sum())
                kept = expected >= 20
                statistic += ((counted - expected)[kept] ** 2 / expected[kept]).sum()
                freedom += int(kept.sum()) - 1
            if freedom > 0:
                assert stats.chi2.sf(statistic, freedom) > ALPHA


@finite
def test_no_two_inputs_are_told_apart_better_than_stated(mechanism):
    assert mechanism.guarantee == "pure" and mechanism.where == "client"
    loss = losses(mechanism.laws(inputs(mechanism.domain))).max()
    assert loss <= mechanism.event().epsilon
    if mechanism.tight:
        assert loss >= mechanism.event().epsilon - 1e-9


def test_the_loss_of_a_report_is_the_sum_over_its_messages():
    tried = 0
    for case in FINITE:
        mechanism = case.values[0]
        laws = mechanism.laws(inputs(mechanism.domain)[:4])
        if len(laws) < 2 or laws[0].shape[1] ** len(laws) > 2000:
            continue
        joint = np.array(
            [
                [
                    math.prod(law[row, symbol] for law, symbol in zip(laws, report, strict=True))
                    for report in itertools.product(range(laws[0].shape[1]), repeat=len(laws))
                ]
                for row in range(len(laws[0]))
            ]
        )
        assert joint.sum(axis=1) == pytest.approx(1.0)
        assert losses([joint]) == pytest.approx(losses(laws), abs=1e-9)
        assert losses([joint]).max() <= mechanism.event().epsilon + 1e-9
        tried += 1
    assert tried >= 5


@finite
def test_a_message_index_without_reports_adds_nothing(mechanism):
    constant, added = contributions(mechanism)
    payload = reports(mechanism, some_values(mechanism, 30))[:, :1]
    index = np.zeros(len(payload), np.int64)
    estimate = mechanism.decode(mechanism.fold(mechanism.zero(), index, payload[:, 0]), SERVER)
    assert estimate == pytest.approx(constant + added[0][payload[:, 0]].mean(axis=0))


@every
def test_a_target_is_shared_between_releases(mechanism):
    cls = type(mechanism)
    own = {cls.epsilon_field, cls.delta_field}
    parameters = {k: v for k, v in mechanism.model_dump(exclude_none=True).items() if k not in own}
    target = {"epsilon": 8.0, "delta": 1e-6}
    if mechanism.guarantee == "none":
        with pytest.raises(ValueError, match="adds no noise"):
            cls.model_validate({**parameters, "target": target})
        return
    whole = cls.model_validate({**parameters, "target": target})
    with pytest.raises(ValueError, match="calibrated"):
        whole.event()
    part = whole.calibrated(4)
    assert part.target is None and part.need_epsilon() == 2.0
    assert part.event().epsilon <= 2.0
    if cls.delta_field is not None:
        assert part.event().delta == pytest.approx(0.25e-6)
    assert part.calibrated(4) is part


@every
def test_a_mechanism_survives_the_scenario_file(mechanism):
    again = MECHANISMS.parse(MECHANISMS.dump(mechanism))
    assert again == mechanism and again.bits == mechanism.bits
