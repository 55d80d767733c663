"""What a run of batches costs: one event each, and the largest of them for the run.

Every client is handed one slot in one batch. So the batches have disjoint clients, what is asked of
later ones follows from what earlier ones released, and by parallel composition one client's rewards
are protected as well as its own batch protects them: the run's epsilon is the largest batch's. It
rests on nobody serving twice. Whoever plays after the commitment reports nothing.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from raydp_sim.privacy.events import LaplaceRelease, LocalReport, Release, Shuffle
from raydp_sim.tasks.bandits.amplification import batch_epsilon
from raydp_sim.tasks.bandits.learner import Record
from raydp_sim.tasks.bandits.problem import Problem


@dataclass(frozen=True)
class Guarantee:
    """What is protected is one client's reward; of contextual bandits also its context (JDP).

    Attributes:
        epsilon, delta: of all that the learner releases (`central`), or sees.
        local: largest loss of a single report, against everyone; inf where it travels bare.
    """

    epsilon: float
    delta: float
    local: float


def batch_event(problem: Problem, epsilon0: float, reports: int) -> Release | None:
    """Return the privacy event of a batch with so many reports; None: nothing is guaranteed.

    The loss is the true one, of the scale that was used and the width of the rewards.

    Example:
        >>> import numpy as np
        >>> from raydp_sim.tasks.bandits.rewards import RewardRange
        >>> printed = Problem(np.eye(2), 100, "local", 0.5, rewards=RewardRange(sensitivity=1.0))
        >>> batch_event(printed, 0.5, 10)
        LocalReport(epsilon=1.0, delta=0.0)
    """
    loss = problem.rewards.loss(epsilon0)
    if problem.model == "none" or math.isinf(loss):
        return None
    if problem.model == "central":
        return LaplaceRelease(loss)
    return LocalReport(loss) if problem.model == "local" else Shuffle(loss, reports)


def run_guarantee(problem: Problem, log: Iterable[Record]) -> Guarantee:
    """Return what a run's batches guarantee together.

    Every report that the learner was given counts, of void batches too; none of withheld ones.

    Example:
        >>> import numpy as np
        >>> record = Record(1, 2, 2, 4, 4, 0.1, 0.5, 4.0)
        >>> run_guarantee(Problem(np.eye(2), 100, "central", 0.5), [record])
        Guarantee(epsilon=0.5, delta=0.0, local=inf)
    """
    losses = [(problem.rewards.loss(each.epsilon0), int(each.reports)) for each in log]
    if problem.model == "none":
        return Guarantee(math.inf, 0.0, math.inf)
    most = max((loss for loss, _ in losses), default=0.0)
    if problem.model == "central":
        return Guarantee(most, 0.0, math.inf)
    if problem.model == "local":
        return Guarantee(most, 0.0, most)
    shuffled = [batch_epsilon(loss, n, problem.delta) for loss, n in losses if n]
    return Guarantee(max(shuffled, default=0.0), problem.delta, most)


def together(first: Guarantee, second: Guarantee) -> Guarantee:
    """Return what two releases guarantee whose clients are disjoint: the larger loss of either.

    As of clients who are asked for their context and of those who play.

    Example:
        >>> together(Guarantee(0.5, 0.0, 0.5), Guarantee(1.0, 1e-6, 3.0))
        Guarantee(epsilon=1.0, delta=1e-06, local=3.0)
    """
    return Guarantee(
        max(first.epsilon, second.epsilon),
        max(first.delta, second.delta),
        max(first.local, second.local),
    )
