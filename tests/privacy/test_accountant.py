"""The table of all bounds, the running account, and calibration that keeps its word."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.privacy import events as ev
from raydp_sim.privacy.accountant import account, calibrate, rdp_table
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.composition.streaming import Streaming, event_vector
from raydp_sim.privacy.curves.caps import pure_epsilon
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import SelfSampledShuffle, Shuffle, SubsampledShuffle


def test_the_best_is_the_least_proved_value():
    table = account([(SubsampledShuffle(2.0, 10**6, 1000), 10**5)], 1e-8)
    proved = {x.name: x.capped for x in table.lines if x.status == "proved" and not x.refused}
    assert table.epsilon == min(proved.values()) == proved[table.best]
    assert table[table.best].status == "proved"
    assert table["rdp-upper1"].value is None
    assert "not proved for SubsampledShuffle" in table["rdp-upper1"].refused
    with pytest.raises(KeyError):
        table["nobody"]


def test_what_is_not_proved_is_never_the_best():
    table = account([(SubsampledShuffle(1.0, 10**6, 1000), 10**5)], 1e-8)
    assert table["rdp-lower"].value < table.epsilon


def test_values_are_capped_by_the_pure_loss():
    table = account([(Shuffle(2.0, 3), 2)], 1e-8)
    assert table["rdp-upper1"].value > 4.0 == table["rdp-upper1"].capped
    assert table.epsilon <= 4.0


def test_nothing_proved_is_said():
    table = account([(ev.LocalReport(1.0, 1e-9), 1)], 1e-6)
    assert table.best is None
    with pytest.raises(NotApplicable):
        _ = table.epsilon


def test_the_table_of_one_order():
    table = rdp_table(Shuffle(1.0, 100), 5)
    assert table["numeric"].value == pytest.approx(0.0689504294399, rel=1e-10)
    assert "alpha <=" in table["fmt23"].refused
    assert table.epsilon <= table["numeric"].value


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(range(4)), st.integers(1, 500)), min_size=1, max_size=5))
def test_streaming_agrees_with_the_whole_run_on_its_grid(steps):
    kinds = (
        Shuffle(0.5, 200),
        SubsampledShuffle(1.0, 300, 30),
        SelfSampledShuffle(1.0, 300, 0.1),
        ev.GaussianRelease(8.0),
    )
    stream = Streaming(alpha_max=300)
    for kind, times in steps:
        stream.add(kinds[kind], times)
    events = [(kinds[kind], times) for kind, times in steps]
    whole = find_run("rdp-best").epsilon(events, 1e-6).epsilon
    capped = min(whole, sum(times * pure_epsilon(event) for event, times in events))
    found = stream.epsilon(1e-6).epsilon
    assert capped * (1 - 1e-9) <= found <= max(capped * 1.02, capped + 1e-9) or whole < 0.1


def test_streaming_counts_one_by_one_and_survives_pickling():
    event = SubsampledShuffle(1.0, 1000, 100)
    one, many = Streaming(), Streaming()
    for _ in range(50):
        one.add(event)
    many.add(event, 50)
    assert one.epsilon(1e-6).epsilon == pytest.approx(many.epsilon(1e-6).epsilon, rel=1e-12)
    raw = pickle.dumps(one)
    assert len(raw) < 1000 and pickle.loads(raw).epsilon(1e-6) == one.epsilon(1e-6)


def test_streaming_is_capped_and_starts_at_nothing():
    stream = Streaming()
    assert stream.epsilon(1e-6).epsilon == 0.0
    stream.add(Shuffle(1.0, 1), 1)
    assert stream.epsilon(1e-9).epsilon == 1.0
    stream.add(Shuffle(0.0, 10), 100)
    assert stream.epsilon(1e-9).epsilon == 1.0


def test_a_refused_event_leaves_the_account_as_it_was():
    stream = Streaming()
    stream.add(Shuffle(1.0, 100), 3)
    before = stream.epsilon(1e-6)
    with pytest.raises(NotApplicable):
        stream.add(ev.LocalReport(1.0, 1e-6))
    with pytest.raises(ValueError, match="times"):
        stream.add(Shuffle(1.0, 100), -1)
    assert stream.epsilon(1e-6) == before


def test_guarantees_for_different_neighbours_are_not_added():
    mixed = [(Shuffle(1.0, 100), 1), (ev.SubsampledGaussian(2.0, 0.1), 1)]
    with pytest.raises(NotApplicable, match="add-remove"):
        find_run("rdp-best").epsilon(mixed, 1e-6)
    stream = Streaming(alpha_max=64)
    stream.add(Shuffle(1.0, 100))
    before = stream.epsilon(1e-6)
    with pytest.raises(NotApplicable, match="add-remove"):
        stream.add(ev.SubsampledGaussian(2.0, 0.1))
    stream.add(ev.GaussianRelease(1e6))
    assert stream.epsilon(1e-6).epsilon == pytest.approx(before.epsilon, rel=1e-6)


def test_streaming_by_one_bound():
    stream = Streaming(bound="upper1")
    with pytest.raises(Unsupported):
        stream.add(SubsampledShuffle(1.0, 10, 5))
    stream.add(Shuffle(0.5, 10**6), 10**5)
    exact = find_run("rdp-upper1").epsilon([(Shuffle(0.5, 10**6), 10**5)], 1e-8).epsilon
    assert exact <= stream.epsilon(1e-8).epsilon <= 1.02 * exact


def test_vectors_cannot_be_changed_by_who_reads_them():
    with pytest.raises(ValueError):
        event_vector(Shuffle(0.5, 50))[0] = 0.0


@settings(max_examples=8, deadline=None)
@given(
    st.floats(0.05, 5.0),
    st.integers(100, 5000),
    st.integers(1, 1000),
    st.sampled_from(["rdp-subsampled", "rdp-wbk", "fmt_closed+kov", "balle+kov"]),
)
def test_calibration_meets_its_target_and_wastes_little(target, n, times, name):
    def make(epsilon0):
        return SubsampledShuffle(epsilon0, n, n // 10)

    try:
        found = calibrate(target, 1e-6, make, times, name)
    except NotApplicable:
        return

    def cost(epsilon0):
        value = find_run(name).epsilon([(make(epsilon0), times)], 1e-6).epsilon
        return min(value, times * pure_epsilon(make(epsilon0)))

    assert cost(found) <= target
    assert found == 20.0 or cost(found * (1 + 1e-5)) > target


def test_calibration_by_the_best_allows_the_most():
    def make(epsilon0):
        return SubsampledShuffle(epsilon0, 10**5, 1000)

    best = calibrate(1.0, 1e-6, make, 1000)
    assert account([(make(best), 1000)], 1e-6).epsilon <= 1.0
    for name in ("rdp-subsampled", "fmt_numeric+kov"):
        assert calibrate(1.0, 1e-6, make, 1000, name) <= best * (1 + 2e-6)


def test_calibration_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="target"):
        calibrate(0.0, 1e-6, lambda e: Shuffle(e, 10), 1)
    with pytest.raises(Unsupported):
        calibrate(1.0, 1e-6, lambda e: SubsampledShuffle(e, 10, 5), 1, "rdp-upper1")
    with pytest.raises(NotApplicable):
        calibrate(1e-9, 1e-6, lambda e: Shuffle(e, 10), 10**6)
