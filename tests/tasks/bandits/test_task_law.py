"""Runs on the actors have the law of the fast simulation, and learn what it learns."""

import numpy as np
import pytest
from scipy import stats

from raydp_sim.metrics import streams
from raydp_sim.random import Stream
from raydp_sim.run import prepare
from raydp_sim.scenario import setting_of
from raydp_sim.tasks.bandits.contextual import ContextualInstance
from raydp_sim.tasks.bandits.contextual_runs import play_contextual
from raydp_sim.tasks.bandits.instance import random_instance
from raydp_sim.tasks.bandits.simulate import simulate
from tests.tasks.bandits.playing import THETA, bandit, contextual

NEVER_SAVED = {"backend": "inline", "checkpoint_seconds": 1e6}


def play(base, folder):
    """Play all repetitions, without a summary."""
    for _ in prepare(base, out=folder / "run").releases():
        pass


def finals(folder, stream, name):
    """The last value of every repetition."""
    rows = streams.read(folder / "run" / "metrics", stream)
    last = dict(zip(rows["repetition"].to_pylist(), rows[name].to_pylist(), strict=True))
    return np.round(list(last.values()), 6)


@pytest.mark.parametrize("trust", ["shuffle", "local", "central"])
def test_runs_on_the_actors_have_the_law_of_the_fast_simulation(trust, tmp_path):
    """Regret and certificate of 150 runs on the actors and 5000 fast ones; alarm at 1e-6 each.

    Luck, slots, cohorts and noise are drawn client by client there, and sums at once here.
    """
    instance = random_instance(20, 2, Stream(41))
    data = {"kind": "linear-rewards", "theta": instance.theta.tolist()}
    task = {"radius": "paper", "least": 1.0, "actions": instance.actions.tolist()}
    base = bandit(trust, 300, task, {"data": data}, repeat=150, placement=NEVER_SAVED)
    play(base, tmp_path)
    problem = base.task.problem(setting_of(base))
    fast = simulate(problem, instance, 5000, Stream(7).at(trust).generator())
    slow = finals(tmp_path, "errors", "regret")
    assert len(slow) == 150 and len(set(slow)) > 3
    assert stats.ks_2samp(slow, np.round(fast.regret, 6)).pvalue > 1e-6
    certificate = finals(tmp_path, "bandit", "certificate")
    assert stats.ks_2samp(certificate, np.round(fast.certificate, 6)).pvalue > 1e-6


def test_contextual_runs_on_the_actors_have_the_law_of_the_fast_ones(tmp_path):
    """Both regrets of 100 runs on the actors and 1500 fast ones; alarm at 1e-6 each."""
    base = contextual(
        clients=200, task={"radius": "paper", "least": 1.0}, repeat=100, placement=NEVER_SAVED
    )
    play(base, tmp_path)
    problem, task = base.task.problem(setting_of(base)), base.task
    instance = ContextualInstance(task.contexts, task.table, np.array(THETA))
    generator = Stream(8).generator()
    fast = [play_contextual(problem, instance, generator) for _ in range(1500)]
    for name in ("regret", "linear_regret"):
        slow = finals(tmp_path, "errors", name)
        here = np.round([getattr(one, name) for one in fast], 6)
        assert stats.ks_2samp(slow, here).pvalue > 1e-6, name
