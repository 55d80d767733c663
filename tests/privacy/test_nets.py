"""A bound that is wrong is caught before anybody sees its number, wherever it is asked for."""

import pickle

import numpy as np
import pytest

from raydp_sim.errors import RunError
from raydp_sim.figures import accountants
from raydp_sim.figures.compute import Point, evaluate
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.shuffled import calibrated_for, spent
from raydp_sim.privacy import accountant
from raydp_sim.privacy.accountant import account, calibrate
from raydp_sim.privacy.bound import Result, find_run
from raydp_sim.privacy.bounds.pld_clones import PldClones
from raydp_sim.privacy.bounds.pld_variation import PldVariation
from raydp_sim.privacy.composition import streaming
from raydp_sim.privacy.composition.streaming import Streaming
from raydp_sim.privacy.errors import Contradiction
from raydp_sim.privacy.events import LocalReport, Shuffle, SubsampledShuffle
from raydp_sim.privacy.floors.floors import least_epsilon, refuse_below
from raydp_sim.privacy.ledger import ledger
from raydp_sim.privacy.ledger.filter import Filter
from raydp_sim.privacy.ledger.ledger import Ledger

# Runs for which epsilon 0 was once reported as proved; the last column is what an exact
# composition of randomized response says they cost at least, by somebody else's code.
ZEROS = [
    (SubsampledShuffle(6.0, 10**6, 1000), 2, 1e-6, 0.0029),
    (SubsampledShuffle(6.0, 10**4, 1), 3, 1e-8, 0.078),
    (SubsampledShuffle(8.0, 10**5, 1), 2, 1e-8, 0.0293),
    (SubsampledShuffle(12.0, 10**6, 1), 10**5, 1e-3, 0.352),
    (SubsampledShuffle(14.0, 10**6, 10), 10**4, 1e-6, 3.05),
    (Shuffle(1e-6, 1), 10**10, 1e-3, 0.1975),
]


RdpClones = type(find_run("rdp-clones"))


def wrong(monkeypatch, bound, factor):
    """Make a bound return a fraction of what it should."""
    right = bound.compute

    def compute(self, events, delta):
        if factor == 0.0:
            return Result(0.0)
        return Result(factor * right(self, events, delta).epsilon)

    monkeypatch.setattr(bound, "compute", compute)


@pytest.mark.parametrize(("event", "times", "delta", "exact"), ZEROS)
def test_the_zeros_that_were_once_reported_are_refused(event, times, delta, exact, monkeypatch):
    floor = least_epsilon(event, times, delta)
    assert 0.75 * exact < floor < 1.01 * exact
    wrong(monkeypatch, PldClones, 0.0)
    with pytest.raises(Contradiction, match="pld-clones") as caught:
        account([(event, times)], delta)
    assert (caught.value.value, caught.value.floor) == (0.0, floor)


def test_the_run_that_ended_with_nothing_is_refused(monkeypatch):
    event = SubsampledShuffle(6.2, 10**6, 1000, "krr", 16)
    wrong(monkeypatch, PldVariation, 0.0)
    with pytest.raises(Contradiction, match="pld-variation"):
        find_run("pld-variation").epsilon([(event, 2)], 1e-6)


@pytest.mark.parametrize(
    ("bound", "event", "times"),
    [
        (PldClones, SubsampledShuffle(1.0, 1000, 1), 2000),
        (PldClones, Shuffle(0.5, 10**5), 10**4),
        (RdpClones, Shuffle(0.5, 1), 100),
        (PldVariation, Shuffle(1.0, 1000, "krr", 8), 30),
    ],
)
def test_half_of_a_bound_is_refused_and_the_bound_is_named(bound, event, times, monkeypatch):
    right = account([(event, times)], 1e-6)
    floor = least_epsilon(event, times, 1e-6, bound.by_name)
    assert 0.5 * right[bound.name].value < floor <= right[bound.name].value
    wrong(monkeypatch, bound, 0.5)
    with pytest.raises(Contradiction) as caught:
        account([(event, times)], 1e-6)
    error = caught.value
    assert (error.bound, error.delta, error.floor) == (bound.name, 1e-6, floor)
    assert error.value == pytest.approx(0.5 * right[bound.name].value)
    for told in (bound.name, f"{times} x {event}", f"{error.value:g}", f"{floor:g}"):
        assert told in str(error)


def test_a_refused_bound_leaves_no_table_even_if_it_is_not_the_best(monkeypatch):
    event = Shuffle(1.0, 100)
    found = account([(event, 10)], 1e-6)
    assert found.best != "rdp-clones"
    wrong(monkeypatch, RdpClones, 0.3)
    assert 0.3 * found["rdp-clones"].value < found.epsilon
    with pytest.raises(Contradiction, match="rdp-clones"):
        account([(event, 10)], 1e-6)


def test_a_number_that_is_none_is_refused():
    with pytest.raises(Contradiction, match="nan"):
        refuse_below("somebody", float("nan"), [(Shuffle(1.0, 10), 1)], 1e-6)


def test_a_cap_that_is_too_low_is_refused(monkeypatch):
    monkeypatch.setattr(accountant, "pure_epsilon", lambda event: 1e-3)
    with pytest.raises(Contradiction, match="pure"):
        account([(Shuffle(1.0, 10), 3)], 1e-6)


def test_bounds_that_are_not_proved_may_say_what_they_like(monkeypatch):
    monkeypatch.setattr(PldClones, "status", "heuristic")
    wrong(monkeypatch, PldClones, 0.0)
    assert account([(Shuffle(1.0, 10), 3)], 1e-6)["pld-clones"].value == 0.0


def test_calibration_is_refused(monkeypatch):
    wrong(monkeypatch, PldClones, 0.0)

    def make_event(epsilon0):
        return SubsampledShuffle(epsilon0, 1000, 10)

    for bound in ("best", "pld-clones"):
        with pytest.raises(Contradiction, match="pld-clones"):
            calibrate(0.5, 1e-6, make_event, 100, bound)


def test_mechanisms_are_not_calibrated_by_a_wrong_bound(monkeypatch):
    response = make("2rr", epsilon_local=1.0)
    wrong(monkeypatch, PldVariation, 0.0)
    with pytest.raises(Contradiction, match="pld-variation"):
        calibrated_for(response, 1000, 0.5, 1e-5)
    with pytest.raises(Contradiction, match="pld-variation"):
        spent(Shuffle(1.0, 1000, "2rr"), 1e-6, "pld-variation")


def test_figures_are_not_drawn_by_a_wrong_bound(monkeypatch):
    here = Point(Shuffle(1.25, 1000), 10, 1e-6)  # asked for nowhere else: values are cached
    wrong(monkeypatch, PldClones, 0.0)
    with pytest.raises(Contradiction, match="pld-clones"):
        evaluate("epsilon", "pld-clones", here)
    monkeypatch.setattr(accountants, "cost", lambda *arguments: 0.0)
    report = make("linf", dimension=1, radius=0.5, epsilon_local=1.0)
    with pytest.raises(Contradiction, match="thm531"):
        accountants.calibrated(report, "thm531", 1000, 0.5, 1e-5, "data")


def nothing_costs(monkeypatch, *modules):
    for module in modules:
        right = module.event_vector
        monkeypatch.setattr(module, "event_vector", lambda *given, right=right: 0.0 * right(*given))


def test_a_running_account_is_refused(monkeypatch):
    nothing_costs(monkeypatch, streaming)
    run = Streaming()
    assert run.epsilon(1e-6).epsilon == 0.0
    run.add(Shuffle(1.0, 1000), 3)
    assert run.epsilon(0.5).epsilon == 0.0  # there it may be
    with pytest.raises(Contradiction, match="rdp-best"):
        run.epsilon(1e-6)
    many = Streaming(alpha_max=16)
    for n in range(2, 8):
        many.add(Shuffle(1.0, n))
    assert len(many.counts) == 4
    with pytest.raises(Contradiction, match="and 1 other events"):
        many.epsilon(1e-6)


@pytest.mark.parametrize("participants", [range(4), np.array([1, 2], dtype=np.uint32)])
def test_a_ledger_is_refused(participants, monkeypatch):
    nothing_costs(monkeypatch, ledger)
    account = Ledger(4, 1e-6)
    account.charge(LocalReport(1.0), participants, Shuffle(1.0, 1000), 50)
    with pytest.raises(Contradiction, match="rdp-best"):
        account.guarantee()
    with pytest.raises(Contradiction, match="rdp-best"):
        account.epsilons()


def test_a_ledger_counts_all_releases_of_everyone_and_one_of_some():
    everyone, some = Ledger(4, 1e-6), Ledger(4, 1e-6)
    event = Shuffle(1.0, 1000)
    for _ in range(33):
        everyone.charge(LocalReport(1.0), range(4), event)
        some.charge(LocalReport(1.0), range(2), event)
    assert everyone.guarantee().epsilon == pytest.approx(some.guarantee().epsilon)
    assert everyone._floor == least_epsilon(event, 32, 1e-6)
    assert some._floor == least_epsilon(event, 1, 1e-6)
    assert 0.0 < some._floor < everyone._floor < everyone.guarantee().epsilon


def test_a_budget_that_cannot_hold_is_refused(monkeypatch):
    nothing_costs(monkeypatch, ledger)
    account = Ledger(4, 1e-6)
    budget = Filter(0.01, 1e-6)
    with pytest.raises(Contradiction, match="budget"):
        account.able(LocalReport(1.0), Shuffle(1.0, 1000), budget)
    assert account.able(LocalReport(1.0), Shuffle(1.0, 10**9), budget).all()


def test_epsilon_zero_needs_a_delta_of_the_total_variation():
    """One sampled round: nothing is told at a delta of the rate and more, and something below."""
    for rate in (1, 30, 1000):
        for epsilon0 in (0.5, 3.0, 9.0):
            for n in (1, 20):
                event = SubsampledShuffle(epsilon0, rate * n, n)
                for delta in (1.0 / rate, 1.5 / rate):
                    if delta < 1.0:
                        assert least_epsilon(event, 1, delta) == 0.0
                        assert account([(event, 1)], delta).epsilon == 0.0
                # The total variation of n shuffled answers is rate tanh(epsilon0/2) max b(c-1).
                yes = 1.0 / (1.0 + np.exp(epsilon0))
                law = np.array([np.power(1.0 - yes, n - 1.0)])
                for k in range(1, n):
                    law = np.append(law, law[-1] * (n - k) / k * yes / (1.0 - yes))
                variation = np.tanh(0.5 * epsilon0) * law.max() / rate
                assert least_epsilon(event, 1, 1.0001 * variation) == 0.0
                assert least_epsilon(event, 1, 0.9999 * variation) > 0.0
                assert account([(event, 1)], 0.9999 * variation).epsilon > 0.0


def test_the_error_survives_another_process_and_cannot_be_resumed():
    error = Contradiction("pld-clones", 0.0, 0.25, 1e-6, "2 x Shuffle")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, RunError) and not again.resumable
    assert (str(again), again.bound, again.floor) == (str(error), "pld-clones", 0.25)
