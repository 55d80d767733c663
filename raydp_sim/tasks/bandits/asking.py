"""The first release of a contextual bandit that does not know its contexts: some say theirs.

So many clients send their context through k-ary randomized response, and play the first action,
whatever it earns. They are handed a slot as everyone else, so they serve in no batch of the
learner's, and what the run costs is the larger of what either release costs.
"""

import math

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.krr import KaryResponse
from raydp_sim.mechanisms.parts.exact import exact_sum, unit
from raydp_sim.privacy.curves.mixed import honest_clients
from raydp_sim.tasks.bandits.amplification import epsilon0_for_batch
from raydp_sim.tasks.bandits.checks import Floats
from raydp_sim.tasks.bandits.context_law import Estimated, from_reports
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.base import Arrays, Ask


def ask_contexts(problem: Problem, contexts: int, clients: int, amplified: bool = True) -> Ask:
    """Return the ask: one slot for all, randomized response within the run's epsilon.

    Behind a shuffler the local loss is the largest that keeps the smallest batch within it, as in
    batches of rewards.

    Args:
        problem: of the run.
        contexts: how many there are, >= 2.
        clients: to ask.
        amplified: whether a shuffler is counted on; a plan does not.

    Example:
        >>> known = Problem(np.eye(2), 1000, "local", 2.0)
        >>> ask_contexts(known, 3, 100).mechanism.epsilon_local
        2.0
    """
    loss, least = problem.epsilon, 1
    if problem.model == "shuffle":
        least = math.ceil(problem.least * clients - 1e-9)
        hiding = honest_clients(least, problem.honest)
        if amplified:
            loss = epsilon0_for_batch(loss, hiding, problem.delta, problem.amplification)
    mechanism = KaryResponse(epsilon_local=loss, categories=contexts)
    return Ask(mechanism, slots=(clients,), minimum=least)


def is_asking(ask: Ask) -> bool:
    """Say whether an ask is for contexts."""
    return isinstance(ask.mechanism, KaryResponse)


def first_action(features: Floats, held: Floats) -> tuple[Floats, Counts]:
    """Return contexts as they are reported, and what clients lose by playing the first action.

    Args:
        features: of every action in every context.
        held: luck, context and theta of each client.
    """
    context, theta = held[:, 1].astype(np.int64), held[:, 2:]
    means = (features[context] * theta[:, None, :]).sum(axis=2)
    lost = exact_sum((means.max(axis=1) - means[:, 0])[:, None], unit(1.0))
    return held[:, 1:2], lost.reshape(-1)


def heard(features: Floats, ask: Ask, counts: Counts, beta: float) -> Estimated:
    """Return the law that reports tell of; with none of them nothing is known.

    Args:
        features: of every action in every context.
        ask: that was answered.
        counts: of the reports by category.
        beta: that its bound fails with.
    """
    assert isinstance(ask.mechanism, KaryResponse)
    return from_reports(features, counts.reshape(-1).astype(np.int64), ask.mechanism, beta)


def with_asked(state: Arrays, ask: Ask) -> Arrays:
    """Count the rounds of those who were handed a slot."""
    assert ask.slots is not None
    place: NDArray[np.int64] = state["place"] + np.array([0, ask.slots[0]])
    return {**state, "place": place, "asked": np.asarray(state["asked"] + ask.slots[0])}
