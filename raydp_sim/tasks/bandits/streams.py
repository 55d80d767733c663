"""What a bandit makes public after a batch, and the rows that are written of it."""

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from raydp_sim.metrics.streams import released, simulation_only, unknown_as_null
from raydp_sim.privacy.curves.mixed import honest_clients
from raydp_sim.tasks.bandits.amplification import batch_epsilon
from raydp_sim.tasks.bandits.batch import Batch
from raydp_sim.tasks.bandits.certificate import drift_of
from raydp_sim.tasks.bandits.checks import Floats, Ints
from raydp_sim.tasks.bandits.contextual import ContextualInstance
from raydp_sim.tasks.bandits.learner import State, certificate, committed
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.regression import regression
from raydp_sim.tasks.base import Arrays

STREAM = "bandit"


class Certified(NamedTuple):
    """What a certificate rests on, besides the radii.

    Attributes:
        misspecification: by which mean rewards are off from being linear in the actions at most...
        beta: ...but with this probability.
        asked: clients that were in no batch of the learner's.
    """

    misspecification: float = 0.0
    beta: float = 0.0
    asked: int = 0


def made_public(
    problem: Problem, state: Arrays, after: State, batch: Batch, counts: Ints
) -> tuple[Arrays, Arrays]:
    """Return a reader's state after a batch, and what it makes public.

    Args:
        problem: of the run.
        state: before the batch.
        after: the learner's state after it.
        batch: that was asked.
        counts: reports of each of its slots.
    """
    plays, reported = state["plays"].copy(), state["reported"].copy()
    plays[batch.actions] += batch.slots  # also who did not report has played
    reported[batch.actions] += counts
    error = state["error"]
    if not math.isnan(after.log[-1].radius):
        error = noise_of_estimates(problem, batch, counts)
    known = {**state, **after.arrays(), "plays": plays, "reported": reported, "error": error}
    return known, {**known, "values": problem.actions @ after.theta}


def noise_of_estimates(problem: Problem, batch: Batch, counts: Ints) -> Floats:
    """Return the standard deviation of the Laplace noise in the estimate of every action.

    <a, V^+ sum of r_j a_j> has noise of weight a' V^+ a_j from slot j: one variable of variance
    2 scale^2 where it is added to sums, one per report where clients add it.
    """
    played = problem.actions[batch.actions]
    fit = regression(played, counts)
    weights = (problem.actions @ fit.half) @ fit.half.T @ played.T
    each = counts if problem.noise_on == "reports" else np.minimum(counts, 1)
    return np.asarray(np.sqrt((weights**2 * each).sum(axis=1) * 2.0) * batch.scale)


def played_row(
    problem: Problem, public: Arrays, protects: str, certified: Certified | None
) -> pa.RecordBatch:
    """Return the row of a batch in the stream `bandit`, which a reader could publish.

    The certificate is that of all rounds, should the run commit now; it also comes for the rounds
    that were played in batches so far. It holds with the confidence said, none of the text's own
    radii.

    Args:
        problem: of the run.
        public: what the learner made public.
        protects: what of a client, and in which sense, in words.
        certified: what the certificate rests on; None: it is withheld.
    """
    state = State.of(public)
    last, best = state.log[-1], committed(problem, state)
    honest = honest_clients(max(1, int(last.reports)), problem.honest)
    loss = last.epsilon0
    if problem.model == "shuffle":  # which releases no report of a batch that it withholds
        loss = batch_epsilon(last.epsilon0, honest, problem.delta) if last.reports else 0.0
    known, within = np.full(3, np.nan), math.nan
    if certified is not None:
        term = (certified.misspecification, certified.asked)
        known[:2] = [certificate(problem, state, *term, T) for T in (problem.horizon, state.used)]
        reports, leverage = (np.array([float(x)]) for x in (last.reports, last.leverage))
        off = drift_of(certified.misspecification, reports, leverage)
        within = last.radius + 0.5 * float(off[0])
        if problem.radius == "corrected":
            known[2] = 1.0 - 1.0 / problem.horizon - certified.beta
    whole, so_far, confidence = (unknown_as_null(known[i : i + 1]) for i in range(3))
    row = {
        "batch": int(last.number),
        "rounds": state.used,
        "horizon": problem.horizon,
        "slots": int(last.clients),
        "reports": int(last.reports),
        "active_before": int(last.active),
        "active": int(state.active.sum()),
        "chosen": int(last.chosen),
        "void": bool(math.isnan(last.radius)),
        "radius": unknown_as_null(np.array([last.radius])),
        "within": unknown_as_null(np.array([within])),
        "scale": last.scale,
        "epsilon0": last.epsilon0,
        "batch_epsilon": loss,
        "recommended": best,
        "estimate": float(public["values"][best]),
        "certificate": whole,
        "certificate_so_far": so_far,
        "confidence": confidence,
        "protects": protects,
    }
    return released(row)


def regret_row(problem: Problem, public: Arrays, gaps: Floats) -> pa.RecordBatch:
    """Return the row of a batch in the stream `errors`: what was lost to the best action.

    `regret` is that of all rounds, should the run commit now.

    Args:
        problem: of the run.
        public: what the learner made public.
        gaps: what each action loses per round, which only a simulation knows.
    """
    state = State.of(public)
    best, so_far = committed(problem, state), float(public["plays"] @ gaps)
    rest = (problem.horizon - state.used) * float(gaps[best])
    return simulation_only({"regret": so_far + rest, "regret_so_far": so_far, "gap": gaps[best]})


def contextual_row(
    problem: Problem,
    public: Arrays,
    instance: ContextualInstance,
    lost: float,
    left: Ints,
    asked: tuple[float, float] | None = None,
) -> pa.RecordBatch:
    """Return the row of a batch in the stream `errors` where clients have contexts.

    `regret`, R_T, is against the best action in every client's own context, `linear_regret`,
    R_T^L, that of the linear bandit, which averages over contexts and which the certificate bounds.
    Of clients whose report did not come, R_T has the average; of those who come after the
    commitment, that over all who have not reported.

    Args:
        problem: of the run.
        public: what the learner made public.
        instance: contexts, policies and theta, which only a simulation knows.
        lost: by all who have reported so far, each in its own context.
        left: clients in each context that have not reported.
        asked: what those lose on average who were asked for their context: all, and those of them
            whose report did not come; None where nobody is.
    """
    state = State.of(public)
    best, rest = committed(problem, state), problem.horizon - state.used
    mean = instance.linear_gaps
    own = float(instance.gaps[best] @ left) / max(1, int(left.sum()))
    first, silent = asked or (0.0, 0.0)
    linear = float(public["plays"] @ mean) + first
    so_far = lost + float((public["plays"] - public["reported"]) @ mean) + silent
    errors = {
        "regret": so_far + rest * own,
        "regret_so_far": so_far,
        "linear_regret": linear + rest * float(mean[best]),
        "linear_regret_so_far": linear,
        "gap": float(mean[best]),
    }
    if asked is not None:
        errors["asked_regret"] = first
    return simulation_only(errors)
