"""Runs of a contextual bandit whose law of contexts is estimated first, exactly."""

from dataclasses import dataclass, replace

import numpy as np

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.krr import KaryResponse
from raydp_sim.tasks.bandits.checks import Floats, Ints
from raydp_sim.tasks.bandits.context_law import (
    Estimated,
    from_noisy_shares,
    from_reports,
    from_sample,
)
from raydp_sim.tasks.bandits.contextual import (
    Contexts,
    ContextualInstance,
    estimated_policies,
    plane_directions,
)
from raydp_sim.tasks.bandits.contextual_runs import ContextualRun, play_contextual
from raydp_sim.tasks.bandits.problem import Problem


@dataclass(frozen=True, eq=False)
class EstimatedRun:
    """What came of a run that estimated the law of contexts first.

    Attributes:
        estimated: the law.
        asked: regret of the clients whose contexts were asked for: they play action 0. None of a
            public sample, whose clients are not in the run.
        run: all T rounds, `asked` included. Its certificate has the misspecification in it, and
            fails with probability 1/T + beta at most.
    """

    estimated: Estimated
    asked: float
    run: ContextualRun


def play_estimated(
    problem: Problem,
    truth: Contexts,
    theta: Floats,
    estimated: Estimated,
    generator: np.random.Generator,
) -> ContextualRun:
    """Play a run with the policies of an estimated law, among contexts of the true one.

    Args:
        problem: horizon, model and the rest; its actions are replaced by the table's.
        truth: contexts as they are.
        theta: theta*.
        estimated: of a public sample or of earlier releases.
        generator: that everything is drawn from.
    """
    table = estimated_policies(
        estimated.contexts, plane_directions(estimated.contexts), complete=True
    )
    instance = ContextualInstance(truth, table, theta)
    omega = estimated.misspecification(problem.rewards)
    return play_contextual(replace(problem, actions=table.actions), instance, generator, omega)


def play_sampling(
    problem: Problem,
    truth: Contexts,
    theta: Floats,
    sample: int,
    generator: np.random.Generator,
    beta: float | None = None,
) -> EstimatedRun:
    """Estimate from a public sample, of clients outside the run, and play.

    Args:
        problem: as in `play_estimated`.
        truth: contexts as they are, in the plane.
        theta: theta*.
        sample: its size.
        generator: that everything is drawn from.
        beta: that the estimate's bound fails with; 1/T if left out.
    """
    chance = 1.0 / problem.horizon if beta is None else beta
    counts = generator.multinomial(_check_clients(sample, None), truth.probabilities)
    estimated = from_sample(truth.features, counts, chance)
    return EstimatedRun(estimated, 0.0, play_estimated(problem, truth, theta, estimated, generator))


def play_asking(
    problem: Problem,
    truth: Contexts,
    theta: Floats,
    clients: int,
    generator: np.random.Generator,
    mechanism: KaryResponse | None = None,
    beta: float | None = None,
) -> EstimatedRun:
    """Estimate from the first clients of the run, privately, and play with all others.

    They are in no other batch, so the run's guarantee is the larger of theirs and its batches'. In
    the central model the learner adds Laplace noise for `problem.epsilon` to the shares; else
    clients use randomized response.

    Args:
        problem: as in `play_estimated`; T counts all clients.
        truth: contexts as they are, in the plane.
        theta: theta*.
        clients: how many are asked.
        generator: that everything is drawn from.
        mechanism: that clients use; None in the central model only.
        beta: that the estimate's bound fails with; 1/T if left out.
    """
    asked = _check_clients(clients, problem.horizon)
    chance = 1.0 / problem.horizon if beta is None else beta
    seen = generator.multinomial(asked, truth.probabilities)
    if problem.model == "central" and mechanism is None:
        scale = 2.0 / (asked * problem.epsilon)
        shares = seen / asked + generator.laplace(0.0, scale, len(seen))
        estimated = from_noisy_shares(truth.features, shares, asked, scale, chance)
    elif mechanism is None:
        remedy = "clients must randomize their contexts: give a KaryResponse"
        raise bad_field("mechanism", mechanism, remedy)
    else:
        reports = response_counts(seen, mechanism, generator)
        estimated = from_reports(truth.features, reports, mechanism, chance)
    rewards = truth.features @ theta
    lost = float(seen @ (rewards.max(axis=1) - rewards[:, 0]))
    mean = float(asked * (truth.probabilities @ (rewards.max(axis=1) - rewards[:, 0])))
    rest = replace(problem, horizon=problem.horizon - asked)
    played = play_estimated(rest, truth, theta, estimated, generator)
    most = problem.rewards.width * asked
    bound = None if played.certificate is None else played.certificate + most
    whole = replace(
        played,
        regret=played.regret + lost,
        linear_regret=played.linear_regret + mean,
        certificate=bound,
    )
    return EstimatedRun(estimated, lost, whole)


def response_counts(seen: Ints, mechanism: KaryResponse, generator: np.random.Generator) -> Ints:
    """Draw how many reports of each category clients with these contexts send."""
    law = mechanism.laws(np.arange(len(seen), dtype=np.float64)[:, None])[0]
    return np.asarray(generator.multinomial(seen, law / law.sum(axis=1)[:, None]).sum(axis=0))


def _check_clients(clients: int, horizon: int | None) -> int:
    if clients < 1 or (horizon is not None and clients > horizon - 3):
        most = "" if horizon is None else f" and leave three of the {horizon} rounds"
        raise bad_field("clients", clients, f"it must be >= 1{most}")
    return int(clients)
