"""Whole runs: the numbers of the figures and tables, and the claims they carry."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.privacy import events as ev
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import find_rdp, find_run, run_bounds
from raydp_sim.privacy.bounds.closed_forms import balle, fmt_closed
from raydp_sim.privacy.bounds.upper1 import Upper1
from raydp_sim.privacy.composition.conversion import best_order
from raydp_sim.privacy.composition.runs import composed
from raydp_sim.privacy.curves.clones import clones_epsilon
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle

REL = 1e-4


def run(name, event, times, delta=1e-8):
    return find_run(name).epsilon([(event, times)], delta).epsilon


def by_rdp(name, event, times, delta=1e-8, alpha_max=100_000):
    bound = find_rdp(name, event)
    return best_order(lambda a: times * bound.rdp_vector(event, a), delta, alpha_max).epsilon


def none(epsilon0, n, delta):
    raise NotApplicable("no amplification by shuffling")


def test_the_composed_shuffle_of_figure_5_4():
    event, times = Shuffle(0.5, 10**6), 10**5
    assert run("rdp-upper1", event, times) == pytest.approx(1.6398, rel=REL)
    assert run("rdp-lower", event, times) == pytest.approx(0.8549, rel=REL)
    assert by_rdp("upper2", event, times) == pytest.approx(3.1783, rel=REL)
    assert by_rdp("efm19", event, times) == pytest.approx(6.8750, rel=REL)
    assert run("rdp-numeric", event, times) == pytest.approx(1.1116, rel=REL)
    assert run("fmt_closed+kov", event, times) == pytest.approx(37.635, rel=REL)
    for kind, value in (("dwork", 8.9877), ("kov", 8.2472), ("kov_exact", 7.3292)):
        found = composed([(event, times)], 1e-8, clones_epsilon, kind).epsilon
        assert found == pytest.approx(value, rel=REL)
    assert run("fmt_numeric+kov", event, times) / run("rdp-upper1", event, times) > 4


def test_a_better_chernoff_parameter_gives_the_factor_of_the_source():
    event = Shuffle(0.5, 10**6)
    for c, value in ((0.01, 1.1439), (0.02, 1.1498), (None, 1.1439)):
        bound = Upper1(chernoff=c)
        best = best_order(lambda a, b=bound: 10**5 * b.rdp_vector(event, a), 1e-8)
        assert best.epsilon == pytest.approx(value, rel=REL)


@pytest.mark.parametrize(
    ("times", "upper1", "numeric", "closed"),
    [
        (1, 0.072942, 0.018167, 0.07235),
        (2, 0.11433, 0.037517, 0.14704),
        (5, 0.2186, 0.097582, 0.37517),
        (10, 0.36113, 0.20073, 0.76156),
        (20, 0.49044, 0.41234, 1.5452),
        (50, 0.70038, 0.896, 3.5421),
        (100, 0.91217, 1.3189, 5.2202),
        (1000, 2.2832, 4.8297, 19.724),
    ],
)
def test_the_crossover_of_figure_5_4(times, upper1, numeric, closed):
    event = Shuffle(2.0, 10**6)
    assert run("rdp-upper1", event, times) == pytest.approx(upper1, rel=REL)
    assert run("fmt_numeric+kov", event, times) == pytest.approx(numeric, rel=REL)
    assert run("fmt_closed+kov", event, times) == pytest.approx(closed, rel=REL)


@pytest.mark.parametrize(
    ("times", "zw", "plain"),
    [
        (1000, 0.41402, 3.825),
        (3000, 0.62923, 6.9385),
        (10_000, 1.0164, 13.476),
        (10**5, 2.7396, 54.835),
    ],
)
def test_the_poisson_heuristic_of_figure_5_5(times, zw, plain):
    event = SubsampledShuffle(3.0, 10**6, 1000)
    assert run("rdp-poisson-zw", event, times) == pytest.approx(zw, rel=REL)
    assert composed([(event, times)], 1e-8, none).epsilon == pytest.approx(plain, rel=REL)
    assert find_run("rdp-poisson-zw").status == "heuristic"


@pytest.mark.parametrize(
    ("epsilon0", "n", "k", "upper", "lower", "plain", "numeric", "wbk", "naive"),
    [
        (2, 10**6, 10**3, 1.0402, 0.1157, 14.480, 2.5301, 1.0237, 2.6558),
        (1, 10**7, 10**4, 0.0764, 0.0149, 3.45, 0.1547, 0.3510, 2.546),
        (1, 10**6, 10**3, 0.2538, 0.0496, 3.450, 0.5908, 0.4142, 2.554),
        (3, 10**6, 10**3, 4.0862, 0.2150, 54.835, 20.453, 4.3543, 4.3543),
        (3, 10**7, 10**3, 0.3608, 0.0195, 3.8601, 1.2004, 0.3810, 0.3810),
    ],
)
def test_the_end_points_of_figure_5_6(epsilon0, n, k, upper, lower, plain, numeric, wbk, naive):
    event, times = SubsampledShuffle(epsilon0, n, k), 10**5
    assert run("rdp-subsampled", event, times) == pytest.approx(upper, abs=6e-5)
    assert run("rdp-lower", event, times) == pytest.approx(lower, abs=6e-5)
    assert composed([(event, times)], 1e-8, none).epsilon == pytest.approx(plain, rel=2e-4)
    assert run("fmt_numeric+kov", event, times) == pytest.approx(numeric, rel=4e-4)
    assert run("rdp-wbk", event, times) == pytest.approx(wbk, rel=2e-4)
    assert run("rdp-wbk-naive", event, times) == pytest.approx(naive, rel=2e-4)


@pytest.mark.parametrize(
    ("epsilon0", "k", "times", "rdp", "kov", "strong", "closed"),
    [
        (1.5, 10_000, 1060, 2.9001, 3.537, None, None),
        (1.5, 10_000, 1200, 3.0859, 3.8135, 4.1310, 19.986),
        (2.0, 2000, 1500, 2.9875, 3.462, None, None),
        (2.0, 2000, 6000, 5.7946, 8.1588, 9.2167, 320.6),
        (2.0, 10_000, 480, 4.2745, None, 4.0389, 18.347),
    ],
)
def test_the_trainings_by_every_accountant_of_the_sources(
    epsilon0, k, times, rdp, kov, strong, closed
):
    """E2, E3 and E1; strong composition is Dwork's, and half of delta goes to it."""
    event = SubsampledShuffle(epsilon0, 60_000, k)
    found = {
        "rdp": run("rdp-subsampled", event, times, 1e-5),
        "kov": run("fmt_numeric+kov", event, times, 1e-5),
        "strong": composed([(event, times)], 1e-5, clones_epsilon, "dwork").epsilon,
        "closed": composed([(event, times)], 1e-5, fmt_closed, "dwork").epsilon,
    }
    known = {"rdp": rdp, "kov": kov, "strong": strong, "closed": closed}
    for name, value in known.items():
        if value is not None:
            assert found[name] == pytest.approx(value, rel=REL, abs=5e-4), name
    # Of E1, whose epsilon0 is large for its sampling, divergences are not the smallest.
    assert found["kov"] < found["strong"] < found["closed"]
    assert (found["rdp"] < found["kov"]) == (times != 480)


def test_the_closed_form_where_it_holds_in_figure_5_6():
    result = find_run("fmt_closed+kov").epsilon(
        [(SubsampledShuffle(1.0, 10**7, 10**4), 10**5)], 1e-8
    )
    assert result.epsilon == pytest.approx(0.5659, rel=REL) and not result.note


def test_the_headlines_and_why():
    event, times = SubsampledShuffle(2.0, 10**6, 1000), 10**5
    ours = run("rdp-subsampled", event, times)
    closed = find_run("fmt_closed+kov").epsilon([(event, times)], 1e-8)
    assert 13 < closed.epsilon / ours < 15
    assert "(epsilon0, 0)" in closed.note, "the factor rests on the closed form being silent"
    assert run("fmt_numeric+kov", event, times) / ours == pytest.approx(2.43, abs=0.01)
    assert 2.4 < run("rdp-wbk-naive", event, times) / ours < 2.7
    assert run("rdp-wbk", event, times) / ours == pytest.approx(0.98, abs=0.01)


@pytest.mark.parametrize(
    ("epsilon0", "k", "budgets"),
    [
        (
            1.5,
            10_000,
            {
                **{60: 0.82065, 120: 1.0972, 180: 1.3028, 240: 1.4758, 300: 1.6271},
                **{600: 2.2210, 900: 2.6798, 1080: 2.9276, 1200: 3.0859},
            },
        ),
        (2.0, 2000, {1500: 2.9875, 3000: 4.1183, 4500: 5.0511, 6000: 5.7946}),
        (1.0, 5000, {1000: 0.8463}),
        (2.0, 10_000, {480: 4.2745}),
    ],
)
def test_learning_budgets(epsilon0, k, budgets):
    event = SubsampledShuffle(epsilon0, 60_000, k)
    for times, epsilon in budgets.items():
        assert run("rdp-subsampled", event, times, 1e-5) == pytest.approx(epsilon, rel=REL)


@pytest.mark.parametrize(
    ("epsilon0", "k", "times", "amplify", "values"),
    [
        (1.5, 10_000, 1070, clones_epsilon, (3.848, 3.557, 2.937)),
        (2.0, 2000, 6000, clones_epsilon, (9.217, 8.159, 6.946)),
        (1.0, 5000, 1000, balle, (1.657, 1.532, None)),
        (1.0, 5000, 1000, clones_epsilon, (1.298, None, None)),
        (1.0, 5000, 1000, fmt_closed, (5.644, None, None)),
        (2.0, 10_000, 240, balle, (4.796, None, None)),
        (2.0, 10_000, 480, balle, (7.451, None, None)),
        (2.0, 10_000, 480, fmt_closed, (18.35, None, None)),
    ],
)
def test_learning_budgets_by_composition(epsilon0, k, times, amplify, values):
    event = SubsampledShuffle(epsilon0, 60_000, k)
    for kind, value in zip(("dwork", "kov", "kov_exact"), values, strict=True):
        if value is not None:
            found = composed([(event, times)], 1e-5, amplify, kind).epsilon
            assert found == pytest.approx(value, rel=4e-4)


def test_the_dominating_pair_halves_the_headline():
    """Not in the sources: amplification by sampling on top of the clones, still proved."""
    event, times = SubsampledShuffle(2.0, 10**6, 1000), 10**5
    assert run("rdp-wbk-clones", event, times) == pytest.approx(0.5336, rel=2e-4)
    assert run("rdp-clones", Shuffle(2.0, 10**6), times) == pytest.approx(8.2657, rel=2e-4)
    assert run("rdp-best", event, times) <= run("rdp-wbk-clones", event, times)


def test_the_converted_lower_curve_depends_on_the_orders_tried():
    event = Shuffle(0.5, 10**7)
    assert by_rdp("lower", event, 1) == pytest.approx(6.10581e-4, rel=1e-5)
    assert by_rdp("lower", event, 1, alpha_max=20_000) == pytest.approx(6.62533e-4, rel=1e-5)


def test_without_sampling_several_messages_are_several_shuffles():
    many = ev.MultiMessageShuffle((0.5, 0.5, 1.0), 1000)
    for name in ("rdp-upper1", "rdp-numeric", "fmt_numeric+kov", "balle+kov", "pure"):
        whole = find_run(name).epsilon([(many, 7)], 1e-6)
        parts = find_run(name).epsilon([(Shuffle(0.5, 1000), 14), (Shuffle(1.0, 1000), 7)], 1e-6)
        assert whole == parts


@settings(max_examples=15, deadline=None)
@given(st.floats(0.05, 2.0), st.integers(50, 400), st.integers(1, 50), st.integers(1, 50))
def test_unequal_rounds_cost_between_their_extremes(epsilon0, n, first, second):
    small, large = Shuffle(epsilon0 / 2, n), Shuffle(epsilon0, n)
    for name in ("rdp-numeric", "fmt_closed+kov", "balle+kov", "pure"):
        bound = find_run(name)
        total = first + second
        mixed = bound.epsilon([(small, first), (large, second)], 1e-6).epsilon
        assert bound.epsilon([(small, total)], 1e-6).epsilon <= mixed * (1 + 1e-9)
        assert mixed <= bound.epsilon([(large, total)], 1e-6).epsilon * (1 + 1e-9)


@settings(max_examples=4, deadline=None)
@given(st.floats(0.05, 3.0), st.integers(2, 400), st.integers(1, 500), st.data())
def test_more_rounds_cost_more_and_larger_deltas_less(epsilon0, n, times, data):
    k = data.draw(st.integers(1, n))
    for event in (Shuffle(epsilon0, n, "2rr"), SubsampledShuffle(epsilon0, n, k, "2rr")):
        for bound in run_bounds():
            if type(event) not in bound.events:
                continue
            try:
                less = bound.epsilon([(event, times)], 1e-6).epsilon
            except NotApplicable:
                assert bound.name == "pld-reports"  # these reports are one message each
                continue
            assert less <= bound.epsilon([(event, 2 * times)], 1e-6).epsilon * (1 + 1e-6), (
                bound.name
            )
            assert bound.epsilon([(event, times)], 1e-4).epsilon <= less * (1 + 1e-6), bound.name


def test_no_rounds_cost_nothing():
    for bound in run_bounds():
        assert bound.epsilon([], 1e-6).epsilon == 0.0
        assert bound.epsilon([(Shuffle(1.0, 10), 0)], 1e-6).epsilon == 0.0


def test_a_delta_that_covers_everything_leaves_no_loss():
    event = SubsampledShuffle(2.0, 10**6, 1)
    assert run("fmt_numeric+kov", event, 1, delta=0.5) == 0.0


def test_mixed_kinds_are_added_by_the_best_divergences():
    events = [
        (Shuffle(0.5, 1000), 10),
        (ev.GaussianRelease(5.0), 3),
        (ev.LaplaceRelease(0.1), 2),
        (ev.LocalReport(0.2), 1),
    ]
    mixed = find_run("rdp-best").epsilon(events, 1e-6).epsilon
    alone = [find_run("rdp-best").epsilon([pair], 1e-6).epsilon for pair in events]
    assert max(alone) < mixed < sum(alone)
    with pytest.raises(NotApplicable):
        find_run("rdp-best").epsilon([(ev.LocalReport(0.2, 1e-9), 1)], 1e-6)


@pytest.mark.parametrize("times", [-1, 2.5, True, None])
def test_bad_counts_are_refused(times):
    with pytest.raises(ValueError, match="times"):
        run("rdp-upper1", Shuffle(1.0, 10), times)


def test_bad_names_events_and_splits_are_refused():
    with pytest.raises(ValueError, match="did you mean 'rdp-upper1'"):
        find_run("rdp-uper1")
    with pytest.raises(Unsupported, match="rdp-upper1 is not proved for SubsampledShuffle"):
        run("rdp-upper1", SubsampledShuffle(1.0, 10, 5), 1)
    with pytest.raises(ValueError, match="split"):
        composed([(Shuffle(1.0, 10), 1)], 1e-6, balle, split=1.0)


@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.9])
@pytest.mark.parametrize("times", [1, 10**6])
@pytest.mark.parametrize(
    "event",
    [
        Shuffle(0.0, 100),
        Shuffle(1e-4, 1),
        Shuffle(10.0, 1000),
        SubsampledShuffle(0.0, 100, 10),
        SubsampledShuffle(10.0, 10**7, 1000),
        ev.SelfSampledShuffle(0.0, 100, 0.5),
        ev.SelfSampledShuffle(10.0, 30, 0.1),
        ev.CldpRound(10.0, 1000, 5, 100, 2),
        ev.SubsampledGaussian(0.5, 1e-4),
    ],
    ids=str,
)
def test_extreme_runs_neither_overflow_nor_warn(event, times, delta):
    table = account([(event, times)], delta)
    for line in table.lines:
        assert line.refused or 0.0 <= line.capped <= line.value < float("inf")
    if getattr(event, "epsilon0", 1.0) == 0.0:
        assert table.epsilon == 0.0
