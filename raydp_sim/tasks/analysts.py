"""One stream of reports, read by several analysts, each at a level of privacy of its own."""

from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.errors import InputError, RunError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.mechanisms.parts.distributions import Repair
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.mechanisms.recoverable import Recoverable
from raydp_sim.privacy.events import Event, Release
from raydp_sim.random import ClientStream, Stream
from raydp_sim.stream.batches import Opened, Promoted
from raydp_sim.stream.levels import Levels
from raydp_sim.stream.sealed import fingerprint
from raydp_sim.tasks.base import (
    Answer,
    Arrays,
    Ask,
    Batch,
    Floats,
    Formed,
    Setting,
    Task,
    Truth,
)
from raydp_sim.tasks.charging import event_of_losses
from raydp_sim.tasks.level_rows import rows_of
from raydp_sim.tasks.refining import Folded, kept, refined

_SAMPLE = "sample"


class Analysts(Task):
    """Estimate how often each category occurs, once for every level of `privacy.levels`.

    Clients release one report each, which everybody sees at the last level. Analysts above it hold
    a key for every report and see it at their own. Reader 0 is the public and leads the run; reader
    j is analyst j. Where clients hold several samples, release t is of sample t, with fresh keys.

    What the whole run costs (`privacy.epsilon`, budgets) is what all analysts together learn, but
    for those of an infinite level, who are meant to learn everything. Each view by itself is in the
    summary. Shuffling counts for it only where keys pass the shuffler too, and nobody is promoted:
    a promotion tells which reports are of clients that came again.

    Fields:
        repair: what is made of estimates: `simplex` (default), the nearest distribution; `clip`,
            negative entries set to 0 and the rest scaled to add up to 1; `raw`, unbiased. Errors
            are stated for all three.
        heavy: share from which a category is a heavy hitter; those are named whose estimate is
            larger by what noise adds at most, but for a probability of `beta`.
        beta: that probability, for each list of heavy hitters.
    """

    kind: ClassVar[str] = "analysts"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 3},
            "privacy": {"levels": [1.0]},
            "population": {"clients": 60, "data": {"kind": "categorical", "categories": 5}},
            "mechanism": {"kind": "hadamard-cascade", "categories": 5},
        },
    )
    open_ended = False
    sums_cut = False
    has_levels = True

    repair: Repair = "simplex"
    heavy: Annotated[float, Field(ge=0, lt=1)] = 0.0
    beta: Annotated[float, Field(gt=0, lt=1)] = 0.05

    # Before the run.

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return 1: a category, whichever sample it is."""
        return 1

    def readers(self, setting: Setting) -> tuple[str, ...]:
        """Return the public and the analysts."""
        return levels_of(setting).names

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse categories outside, of any sample, and too few samples."""
        samples = setting.shape[-1]
        if 1 < samples < self.rounds:
            raise InputError(
                f"clients hold {samples} samples each for {self.rounds} releases (task.rounds); "
                "give one for each, or one for all"
            )
        for sample in range(samples):
            setting.mechanism.admit(np.asarray(data)[:, sample : sample + 1], ids)

    # The protocol.

    def init(self, setting: Setting) -> Arrays:
        """Start with no releases."""
        return {"releases": np.zeros((), np.int64)}

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Ask for the next sample."""
        return Ask(setting.mechanism, {_SAMPLE: np.asarray(state["releases"])})

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
        """Report one sample."""
        if setting.shape[-1] == 1:
            return Answer(data, memory=memory)
        sample = int(ask.broadcast[_SAMPLE])
        return Answer(np.asarray(data)[:, sample : sample + 1], memory=memory)

    def zero(self, setting: Setting, ask: Ask, reader: int) -> Folded:
        """Return no counts."""
        return Folded(ask.mechanism.zero())

    def fold(
        self,
        setting: Setting,
        ask: Ask,
        reader: int,
        accumulator: Any,
        batch: Batch | Opened | Promoted,
    ) -> Any:
        """Open a chunk with the reader's keys and count it."""
        before: Folded = accumulator
        if isinstance(batch, Promoted):
            return replace(before, promoted=(*before.promoted, batch))
        mechanism, levels = leveled(setting), levels_of(setting)
        level = levels.level(reader, batch.release)
        mark, opened = before.fingerprint, batch.payload
        chunks = before.kept
        if isinstance(batch, Opened):
            opened = mechanism.opened(batch.payload, batch.key, level)
            if isinstance(mechanism, Recoverable):
                values = mechanism.recovered(batch.payload, batch.key)
                mark = (mark + fingerprint(batch.rid, values)) % 2**64
            if levels.keeps(reader, batch.release):
                chunks = (*chunks, batch)
        elif level != levels.public:
            raise RunError(f"reader {reader} was handed reports without its keys", resumable=False)
        index = np.broadcast_to(np.int64(0), len(opened))
        counts = mechanism.fold(before.counts, index, opened)
        return Folded(counts, batch.release, mark, chunks, before.promoted)

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
        """Decode the reports at the reader's level; after a promotion, earlier ones again."""
        folded: Folded = accumulator
        mechanism, levels = leveled(setting), levels_of(setting)
        release, sample = folded.release or 0, int(state["releases"])
        level = levels.level(reader, release)
        view = mechanism.view(level)
        estimate = view.decode(folded.counts)
        public: Arrays = {
            "estimate": estimate,
            "standard_error": np.sqrt(view.variance(estimate, max(1, formed.reports))),
            "release": np.asarray(release),
            "sample": np.asarray(sample),
            "level": np.asarray(level),
            "reports": np.asarray(int(folded.counts.sum())),
            "handed_further": np.asarray(sum(len(part.rid) for part in folded.promoted)),
            "fingerprint": np.array([folded.fingerprint], np.uint64).view(np.int64),
        }
        after: Arrays = {**state, "releases": np.asarray(state["releases"] + 1)}
        if folded.kept:
            after |= kept(state, folded, sample)
        promotion = levels.promotion(reader)
        if promotion is not None and release >= promotion.release and "samples" in state:
            held = promotion.analyst - 1
            again = refined(mechanism, state, folded.promoted, held, promotion.to - 1)
            for name, column in zip(again[0]._fields, zip(*again, strict=True), strict=True):
                public[f"refined_{name}"] = np.array(column)
            after = {"releases": after["releases"]}
        return after, public

    # What it costs.

    def report(self, setting: Setting, ask: Ask) -> Event:
        """Return what a report costs towards all analysts together whose level hides anything."""
        levels = levels_of(setting)
        return leveled(setting).event_at(levels.loudest)

    def event(self, setting: Setting, ask: Ask, formed: Formed) -> Release | None:
        """Return the shuffled release as all analysts together see it, where it is one."""
        levels = levels_of(setting)
        if not formed.trust.shuffled or levels.direct or levels.promotions:
            return None
        return level_event(leveled(setting), levels.loudest, formed)

    # For the analyst of a simulation only.

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Count the categories of every sample, and the clients."""
        k, held = setting.mechanism.domain.choices, np.asarray(data)
        counts = [np.bincount(column.astype(np.int64), minlength=k) for column in held.T]
        return np.append(np.concatenate(counts), len(held))

    def estimand(self, setting: Setting, truth: Counts) -> Floats | None:
        """Return the shares of the categories; None where clients hold several samples."""
        if setting.shape[-1] > 1:
            return None
        return np.asarray(truth[:-1] / max(1, int(truth[-1])))

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return each reader's estimates in a stream of its own, and how far off all are."""
        names, mechanism = levels_of(setting).names, leveled(setting)
        options = (self.repair, self.heavy, self.beta, self.rounds)
        return rows_of(mechanism, names, public, truth, *options)


def levels_of(setting: Setting) -> Levels:
    """Return who reads at which level."""
    assert setting.levels is not None  # refused before a run otherwise
    return setting.levels


def leveled(setting: Setting) -> Leveled:
    """Return the mechanism, which has levels."""
    return cast(Leveled, setting.mechanism)


def level_event(mechanism: Leveled, level: int, formed: Formed) -> Release:
    """Return what a shuffled batch is to those who see it at a level.

    What they see is the shuffled reports of that level, with record ids and keys beside them that
    are drawn anew for each and independently of the data: a function of the former and of coins.
    """
    losses = (mechanism.event_at(level).epsilon,)
    return event_of_losses(losses, mechanism.randomizer(), mechanism.alphabet(), formed)
