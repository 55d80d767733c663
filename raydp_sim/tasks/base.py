"""The one protocol of all tasks: a pure state machine around a mechanism."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.mechanisms.base import Counts, Mechanism
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.models.base import TILE
from raydp_sim.privacy.events import Event, Release
from raydp_sim.random import ClientStream, Stream
from raydp_sim.registry import Piece
from raydp_sim.stream.batches import Reports, Shuffled, Slotted
from raydp_sim.tasks.charging import Formed as Formed
from raydp_sim.tasks.charging import usual_event
from raydp_sim.tasks.estimate import Estimate as Estimate
from raydp_sim.tasks.estimate import usual_estimate
from raydp_sim.tasks.expected import Expected, Outlook
from raydp_sim.tasks.records import Answer as Answer
from raydp_sim.tasks.records import Arrays as Arrays
from raydp_sim.tasks.records import Ask as Ask
from raydp_sim.tasks.records import Floats as Floats
from raydp_sim.tasks.records import Planned as Planned
from raydp_sim.tasks.records import Setting as Setting
from raydp_sim.tasks.records import Truth as Truth
from raydp_sim.tasks.records import Work as Work

Batch = Reports | Shuffled | Slotted


class Task(Piece):
    """What clients compute, and what readers make of the randomized answers.

    State, broadcast and client state are dictionaries of arrays, so that checkpoints need to know
    nothing about them. Nothing here sees Ray, a clock or a file. Readers are numbered; the first
    one's state leads the run, the others are analysts.

    A class of one's own is checked by `raydp-sim check module:Class`, with each of its `examples`:
    sections of a small scenario that it is played in, where they differ from the usual ones.

    Fields:
        rounds: how many releases are asked for at most.
    """

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"task": {"rounds": 3}},)
    # Whether an ask may depend on the releases before it; if not, rounds may overlap.
    adaptive: ClassVar[bool] = True
    # Whether an adaptive task may end the run before its plan is done. Then all of the plan is
    # charged from the first release on: when a run ended tells something of what was released.
    open_ended: ClassVar[bool] = True
    # Whether a client serves in one release at most. It is spent once it has been handed a slot,
    # whether it reports or not; the ledger sees to that and refuses anything else. No release may
    # cost more than the mechanism's epsilon, which is that of the run then: behind a shuffler the
    # task chooses the local loss of each batch, and the ledger refuses a dearer one.
    once: ClassVar[bool] = False
    # Whether later releases may be made of what a trusted server was sent before (`Ask.held`).
    keeps_records: ClassVar[bool] = False
    # Whether its rows ask what clipping took away, coordinate by coordinate (`Clipped.cut`).
    sums_cut: ClassVar[bool] = True
    # Whether its readers may hold keys and read at levels of their own (`Setting.levels`).
    has_levels: ClassVar[bool] = False
    rounds: Annotated[int, Field(ge=1)] = 1

    # Before the run.

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return what the run will release, in order: targets, budgets and pre-flight rest on it.

        Guarantees and lengths of reports must not depend on earlier releases.
        """
        return (Planned(Ask(setting.mechanism), self.rounds),)

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return the length of the values.

        Args:
            shape: of what a client holds.
            labels: classes that the data are labelled with; 0 if they are not.
        """
        return shape[-1]

    def named(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Return what the numbers of `estimate` are called; by default what the data's are."""
        return given

    def calibrated(self, setting: Setting) -> Mechanism | None:
        """Return the mechanism with the noise that meets its target in this task.

        None where it is calibrated as usual, release by release; `setting` has it as it was given.
        """
        return None

    def drawn_order(self, release: int) -> int | None:
        """Return which of the shuffler's orders a trusted reader is told before it steps.

        Releases with the same number have the same order. None where readers are told none.
        """
        return None

    @property
    def spends(self) -> int:
        """How often a client in every release spends the guarantee of the scenario's mechanism."""
        return self.rounds

    def readers(self, setting: Setting) -> tuple[str, ...]:
        """Return the names of those who are handed every batch; the first leads the run."""
        return ("aggregator",)

    def tile(self, setting: Setting) -> int:
        """Return of how many clients blocks are multiples, where values are computed."""
        return TILE

    def work(self, setting: Setting) -> tuple[Work, ...]:
        """Return what is computed besides a little per message; the pre-flight times it."""
        return ()

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse what clients hold, before the run, if it can never be used.

        Values are checked whenever they are randomized; this only says so earlier.

        Raises:
            InputError: names the client.
        """

    def expected(self, setting: Setting, outlook: Outlook) -> Expected | None:
        """Return the squared error to expect, for the pre-flight; None where no formula is known.

        It may look at the data, as only a simulation can.
        """
        return None

    # The protocol.

    @abstractmethod
    def init(self, setting: Setting) -> Arrays:
        """Return a reader's state before the first release."""

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Return the next ask, or None to end the run; the same one if not adaptive."""
        return Ask(setting.mechanism)

    def accounts(self, state: Arrays) -> bool:
        """Say whether epsilon is worked out after the next release, which may take long.

        Every release is charged before it is made. Those of which nothing is shown need no epsilon.
        """
        return True

    def memory(self, setting: Setting, data: Any, stream: ClientStream) -> Arrays:
        """Return the state of clients before their first ask: columns, one row per client.

        Tasks whose clients keep no state return no columns.
        """
        return {}

    @abstractmethod
    def client(
        self,
        setting: Setting,
        ask: Ask,
        data: Any,
        memory: Arrays,
        slots: NDArray[np.int64] | None,
        randomizer: Randomizer,
        stream: ClientStream,
    ) -> Answer:
        """Compute the values of a block of clients.

        Args:
            setting: of the run.
            ask: that they answer.
            data: what they hold, one row per client.
            memory: their state, one row per client.
            slots: of each client, where the ask has slots.
            randomizer: randomizes the answer's values after this. Where the ask's mechanism adds
                noise inside local steps, they are taken here, by `randomizer.walk.step`, and
                `randomizer.walk.total` is the only answer that is let through.
            stream: of the task's own draws.
        """

    def settle(self, setting: Setting, ask: Ask, total: Floats) -> Floats:
        """Return what is kept of the sums of noisy directions after a step; all, by default.

        For mechanisms that add noise inside local steps. It knows no data: what it does to noisy
        values costs nothing.
        """
        return total

    def zero(self, setting: Setting, ask: Ask, reader: int) -> Any:
        """Return an empty accumulator of a reader."""
        return ask.mechanism.zero()

    def fold(self, setting: Setting, ask: Ask, reader: int, accumulator: Any, batch: Batch) -> Any:
        """Add a chunk of messages to the accumulator; in any order, with one result."""
        messages = ask.mechanism.messages_per_report
        if messages == 1:
            index = np.broadcast_to(np.int64(0), len(batch.payload))  # costs nothing to make
        else:
            index = batch.index
            if int(index.max(initial=0)) >= messages:
                index = index % messages  # a client has sent several values
        return ask.mechanism.fold(accumulator, index, batch.payload)

    def ordered(self, accumulator: Any, places: NDArray[np.int64]) -> Any:
        """Return the accumulator with the shuffler's order, if `drawn_order` asks for one.

        Args:
            accumulator: of the release so far.
            places: a permutation of the clients whose reports the reader holds, by their ids.
        """
        raise NotImplementedError

    @abstractmethod
    def step(
        self,
        setting: Setting,
        ask: Ask,
        reader: int,
        state: Arrays,
        accumulator: Any,
        formed: Formed,
        stream: Stream,
    ) -> tuple[Arrays, Arrays]:
        """Return a reader's next state and what it makes public.

        Args:
            setting: of the run.
            ask: that was answered.
            reader: number of the reader.
            state: of the reader.
            accumulator: of all messages of the release.
            formed: what is public of the batch: its reports, their mean weight, and per slot.
            stream: of the reader's noise.
        """

    def withheld(
        self, setting: Setting, ask: Ask, state: Arrays, asked: int
    ) -> tuple[Arrays, Arrays]:
        """Return a reader's next state after a batch that was too small to be released.

        And what it makes public then, of which `rows` are written; nothing by default.

        Args:
            setting: of the run.
            ask: that was to be answered.
            state: of the reader.
            asked: clients that were handed a slot; 0: too few were there, so none was.
        """
        return state, {}

    def event(self, setting: Setting, ask: Ask, formed: Formed) -> Release | None:
        """Return the privacy event of the batch that formed; None if only its reports count.

        What it returns is checked against what the engine knows of the batch (`claims`). A
        `LocalReport` of unit `item` says that a client's reports are charged item by item.
        """
        return usual_event(ask.mechanism, formed)

    def report(self, setting: Setting, ask: Ask) -> Event:
        """Return what one report by itself costs the client, towards everyone who sees it."""
        return ask.mechanism.event()

    def estimate(self, setting: Setting, public: Arrays) -> Estimate | None:
        """Return the best that is known after a release, from what the lead reader made public.

        This is the answer of a run that ends here. None where a task learns no such thing.
        """
        return usual_estimate(public)

    def files(self, setting: Setting, state: Arrays) -> dict[str, Arrays]:
        """Return what a user can take away of the lead reader's state, by `folder/name`.

        Written as .npz with every checkpoint, so that a run that stops leaves the last good one.
        """
        return {}

    @property
    def keeps_own(self) -> bool:
        """Whether `own_files` are written."""
        return False

    def own_files(self, setting: Setting, memory: Arrays) -> dict[str, Arrays]:
        """Return what of all clients' state is written down at the end of a run, as `files`.

        In the field nobody could: each client has its own.
        """
        return {}

    # For the analyst of a simulation only: no actor of the protocol sees any of it.

    @abstractmethod
    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return an exact summary of some clients' raw data; summaries of disjoint sets add up."""

    @abstractmethod
    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return the rows of a release by stream; see `metrics.streams.released`.

        Args:
            setting: of the run.
            ask: that was answered.
            public: what each reader made public.
            truth: of the release.
        """

    def closing(self, setting: Setting, public: Arrays) -> dict[str, pa.RecordBatch]:
        """Return rows that a run still lacks at its end, from what was made public last.

        Where the last planned releases were withheld, nobody knew that one was the last.
        """
        return {}

    def estimand(self, setting: Setting, truth: Counts) -> Floats | None:
        """Return what `estimate` is an estimate of, if `truth` is that of everyone of interest."""
        return None

    def influence(self, setting: Setting, data: Any, population: Counts) -> Floats:
        """Return how far each client pulls the estimate; whoever pulls most is missed most."""
        raise NotImplementedError
