"""The schedule of one repetition, batch after batch, as it can be saved and taken up again."""

from typing import Any

from numpy.typing import NDArray

from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.population.participation.base import Rounds
from raydp_sim.random import Stream
from raydp_sim.schedule.batch import Cohort, Timing
from raydp_sim.schedule.buffered import Buffer, Snapshot
from raydp_sim.schedule.gathering import plan_gathered
from raydp_sim.schedule.rounds import plan_round
from raydp_sim.schedule.world import Mask, World

Arrays = dict[str, NDArray[Any]]
# Releases that may be under way at once, and some more.
_KEPT = 8


class Schedule:
    """Says of each release who is in it and when it closes.

    Args:
        scenario: the whole of it; only population, participation and min_batch are looked at.
        root: the root of the repetition's randomness.
        absent: clients that an adversary keeps away, if any.
        saved: from `saved`, to go on from there.
    """

    def __init__(
        self, scenario: Any, root: Stream, absent: Mask | None = None, saved: Arrays | None = None
    ) -> None:
        self.population, self.policy = scenario.population, scenario.participation
        self.least = scenario.least_batch
        self.root, self.absent = root, absent
        self.after: dict[int, Snapshot] = {}
        self.seen = scenario.trust_model.pays_unused
        self.buffer: Buffer | None = None
        if isinstance(self.policy, Asynchronous):
            self.patience = self.policy.longest_wait(self.population.typical_latency())
            clients = scenario.population.clients
            self.buffer = Buffer(self.policy, self.patience, self.least, clients, saved)

    def plan(
        self,
        release: int,
        time: float,
        able: Mask | None = None,
        wanted: int | None = None,
        minimum: int | None = None,
        whole: bool = False,
    ) -> tuple[Cohort, Timing] | None:
        """Plan the batch of a release; None if the run ends because nobody comes any more.

        Args:
            release: its number; releases are planned in order.
            time: when a round may begin.
            able: whose budget allows one more report; None without budgets.
            wanted: clients in the batch; None: what the policy says.
            minimum: smallest batch of this release; None: that of all.
            whole: whether nobody is asked before there are as many clients as are wanted.
        """
        least = self.least if minimum is None else max(1, minimum)
        policy = self.policy if wanted is None else self.policy.sized(wanted)
        world = World(self.population, self.root, self.absent, able)
        if whole and isinstance(policy, Asynchronous):
            return plan_gathered(policy, self.patience, least, release, time, world)
        if self.buffer is not None:
            assert isinstance(policy, Asynchronous)
            self.buffer.policy, self.buffer.least = policy, least
            planned = self.buffer.next(release, world, self.seen)
            self.after[release] = self.buffer.snapshot()
            self.after.pop(release - _KEPT, None)
            return planned
        assert isinstance(policy, Rounds)
        needed = wanted if whole and wanted is not None else 0
        return plan_round(policy, least, release, time, world, needed)

    def saved(self, finished: int) -> Arrays:
        """Return what a run needs to go on after its first `finished` releases."""
        after = self.after.get(finished - 1)
        return {} if after is None else after.columns()
