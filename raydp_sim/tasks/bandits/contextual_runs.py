"""Runs of a contextual bandit, exactly: contexts are counted, rewards of each added up at once."""

from dataclasses import dataclass

import numpy as np

from raydp_sim.errors import InputError
from raydp_sim.tasks.bandits.checks import Floats
from raydp_sim.tasks.bandits.contextual import ContextualInstance
from raydp_sim.tasks.bandits.instance import chances
from raydp_sim.tasks.bandits.learner import State, certificate, committed, next_batch, start, step
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.simulate import noise_of_sums


@dataclass(frozen=True, eq=False)
class ContextualRun:
    """What came of a run.

    Attributes:
        regret: R_T, against the best action in every client's own context.
        linear_regret: R_T^L, of the linear bandit: the same, averaged over contexts.
        certificate: bound on R_T^L, from which R_T differs by the chance of the contexts, of the
            order of sqrt(T). None where the table may lack the best policy.
        state: of the learner at the end.
    """

    regret: float
    linear_regret: float
    certificate: float | None
    state: State


def play_contextual(
    problem: Problem,
    instance: ContextualInstance,
    generator: np.random.Generator,
    misspecification: float = 0.0,
) -> ContextualRun:
    """Play one run: every client draws its context, follows the policy it is sent, and earns.

    Args:
        problem: whose actions are those of the instance's table.
        instance: contexts, policies and theta*.
        generator: that everything is drawn from.
        misspecification: by which mean rewards are off from those of the table's actions at most,
            where these are of an estimated law.

    Example:
        >>> from raydp_sim.random import Stream
        >>> from raydp_sim.tasks.bandits.contextual import Contexts, plane_policies
        >>> contexts = Contexts(np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([1.0]))
        >>> instance = ContextualInstance(contexts, plane_policies(contexts), np.array([0.5, 0.0]))
        >>> problem = Problem(instance.table.actions, 1000, "local", 1.0)
        >>> run = play_contextual(problem, instance, Stream(1).generator())
        >>> run.regret == run.linear_regret  # there is but one context
        True
    """
    if not np.array_equal(problem.actions, instance.table.actions):
        raise InputError("problem.actions are not the table's; give both the same")
    rewards, gaps, means = problem.rewards, instance.gaps, instance.linear_gaps
    chance = chances(instance.means, rewards)
    state, regret, linear = start(problem), 0.0, 0.0
    while (batch := next_batch(problem, state)) is not None:
        seen = generator.multinomial(batch.slots, instance.contexts.probabilities)
        high = generator.binomial(seen, chance[batch.actions]).sum(axis=1)
        sums = rewards.low * batch.slots + rewards.width * high
        regret += float((seen * gaps[batch.actions]).sum())
        linear += float(batch.slots @ means[batch.actions])
        noisy: Floats = sums + noise_of_sums(problem, batch, 1, generator)[0]
        state = step(problem, state, batch, noisy)
    rest, last = problem.horizon - state.used, committed(problem, state)
    regret += float(generator.multinomial(rest, instance.contexts.probabilities) @ gaps[last])
    linear += rest * float(means[last])
    bound = certificate(problem, state, misspecification) if instance.table.complete else None
    return ContextualRun(regret, linear, bound, state)
