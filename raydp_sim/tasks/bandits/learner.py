"""The learner as a pure state machine: next batch, what came of it, next state.

    state = start(problem)
    while (batch := next_batch(problem, state)) is not None:
        ... batch.slots[j] fresh clients play problem.actions[batch.actions[j]] ...
        state = step(problem, state, batch, sums, counts)
    ... everyone else plays problem.actions[committed(problem, state)] and reports nothing ...

The same for all models; they differ in where noise enters the sums. 000 Algorithms 6.3.1 (central),
6.3.2 (local) and 6.4.1 (shuffled), with the corrections of their text.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import bad_field
from raydp_sim.tasks.bandits.batch import Batch, learn, plan_batch
from raydp_sim.tasks.bandits.certificate import drift_of, regret_certificate
from raydp_sim.tasks.bandits.checks import Floats, Ints
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.schedule import most_batches


class Record(NamedTuple):
    """A batch that was played, void ones included.

    Attributes:
        number: i.
        active: |A_i|, before it.
        chosen: |C_i|.
        clients: that were handed a slot.
        reports: that came.
        radius: gamma_i; nan: the batch was void.
        epsilon0: as in `Batch`.
        scale: of the noise.
        leverage: of every active action at most, by who came; nan: the batch was void.
    """

    number: float
    active: float
    chosen: float
    clients: float
    reports: float
    radius: float
    epsilon0: float
    scale: float
    leverage: float = float("nan")


@dataclass(frozen=True, eq=False)
class State:
    """Everything that a learner remembers.

    Attributes:
        number: i of the next batch.
        used: clients that were handed a slot so far.
        active: which actions are left.
        theta: estimate of the last batch that taught something.
        log: of all batches.
    """

    number: int
    used: int
    active: NDArray[np.bool_]
    theta: Floats
    log: tuple[Record, ...] = ()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays, as checkpoints and the protocol of tasks take it."""
        log = np.array(self.log, dtype=np.float64).reshape(-1, len(Record._fields))
        place = np.array([self.number, self.used], dtype=np.int64)
        return {"place": place, "active": self.active, "theta": self.theta, "log": log}

    @classmethod
    def of(cls, arrays: dict[str, NDArray[Any]]) -> "State":
        """Return the state that `arrays` were made of."""
        number, used = (int(value) for value in arrays["place"])
        log = tuple(Record(*row) for row in arrays["log"].tolist())
        return cls(number, used, arrays["active"], arrays["theta"], log)


def start(problem: Problem) -> State:
    """Return the state before the first batch: all actions are active."""
    return State(
        number=1,
        used=0,
        active=np.ones(len(problem.actions), dtype=bool),
        theta=np.zeros(problem.dimension),
    )


def next_batch(problem: Problem, state: State) -> Batch | None:
    """Return what to ask next; None: commit for the rest of the horizon.

    A batch that does not fit into the horizon is not begun, and a single action needs none.

    Example:
        >>> problem = Problem(np.eye(2), 100, "central", 1.0)
        >>> next_batch(problem, start(problem)).slots.tolist()
        [2, 2]
    """
    if state.number > most_batches(problem.horizon) or int(state.active.sum()) == 1:
        return None
    batch = plan_batch(problem, state.active, state.number)
    return batch if state.used + batch.clients <= problem.horizon else None


def step(
    problem: Problem, state: State, batch: Batch, sums: Floats, counts: Ints | None = None
) -> State:
    """Return the state after a batch: a void one is paid for, and will be asked again.

    Args:
        problem: of the run.
        state: that `batch` was asked in.
        batch: of `next_batch`.
        sums: of the rewards of each of its actions, noise included; what they are where no reward
            came does not matter.
        counts: rewards of each action that came; None: all slots were filled. Zeros for a batch
            that a shuffler withheld, as it does where fewer than `batch.least` came.

    Raises:
        InputError: for the answers of another batch, or more of them than slots.
    """
    if batch.number != state.number:
        raise bad_field("batch", batch.number, f"the learner waits for batch {state.number}")
    came = _check_counts(batch, counts)
    sums = np.asarray(sums, dtype=np.float64)
    if sums.shape != batch.slots.shape or not np.isfinite(sums[came > 0]).all():
        remedy = f"give {len(batch.slots)} finite numbers, one per action of the batch"
        raise bad_field("sums", sums, remedy)
    found = learn(problem, state.active, batch, sums, came)
    record = Record(
        batch.number,
        int(state.active.sum()),
        len(batch.actions),
        batch.clients,
        int(came.sum()),
        float("nan") if found is None else found.radius,
        batch.epsilon0,
        batch.scale,
        float("nan") if found is None else found.leverage,
    )
    used, log = state.used + batch.clients, (*state.log, record)
    if found is None:
        return replace(state, used=used, log=log)
    return State(state.number + 1, used, found.active, found.theta, log)


def _check_counts(batch: Batch, counts: Ints | None) -> Ints:
    if counts is None:
        return batch.slots
    came = np.asarray(counts)
    if came.shape != batch.slots.shape or not np.issubdtype(came.dtype, np.integer):
        raise bad_field("counts", came, f"give {len(batch.slots)} whole numbers")
    if (came < 0).any() or (came > batch.slots).any():
        remedy = f"every slot is answered once at most, and they are {batch.slots.tolist()}"
        raise bad_field("counts", came.tolist(), remedy)
    return came.astype(np.int64)


def committed(problem: Problem, state: State) -> int:
    """Return the action for the rest of the horizon: the best estimate, or 0 where there is none.

    Example:
        >>> problem = Problem(np.eye(2), 100, "none")
        >>> state = start(problem)
        >>> batch = next_batch(problem, state)
        >>> committed(problem, step(problem, state, batch, np.array([-1.0, 1.0])))
        1
    """
    values = np.where(state.active, problem.actions @ state.theta, -np.inf)
    return int(values.argmax())


def certificate(
    problem: Problem,
    state: State,
    misspecification: float = 0.0,
    asked: int = 0,
    horizon: int | None = None,
) -> float:
    """Return what all T rounds lose at most, if the radii hold, should the run commit now.

    Args:
        problem: of the run.
        state: of the learner.
        misspecification: by which mean rewards are off from being linear in the actions at most.
        asked: rounds of clients that were in no batch of the learner's, as those who were asked for
            their context: they may lose all there is.
        horizon: other than T, such as the rounds so far.
    """
    log = state.arrays()["log"]
    at = {name: i for i, name in enumerate(Record._fields)}
    slots, radii = log[:, at["clients"]], log[:, at["radius"]]
    drift = drift_of(misspecification, log[:, at["reports"]], log[:, at["leverage"]])
    dropped = np.diff(np.append(log[:, at["active"]], state.active.sum())) < 0
    width, rounds = problem.rewards.width, problem.horizon if horizon is None else horizon
    found = regret_certificate(slots, radii, rounds - asked, width, drift, dropped)
    return float(found) + width * asked
