"""Private mean of points of which every client holds several, one point at a time."""

import math
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.metrics.streams import simulation_only
from raydp_sim.privacy.events import Release
from raydp_sim.random import ClientStream, Stream
from raydp_sim.tasks.base import Answer, Arrays, Ask, Formed, Planned, Setting, Task, Truth
from raydp_sim.tasks.expected import Expected, Outlook, bias_of, moments, noise_of_mean, off_centre
from raydp_sim.tasks.items import item_event
from raydp_sim.tasks.mean import averaged, causes, distance, exact_mean, nothing_yet, total_of


class ItemMean(Task):
    """Each client in a batch samples some of its points and reports each by itself.

    What is protected is one POINT of one client, not the client: guarantees are of items, and are
    never composed with those of clients. With a uniform, secret cohort and a mechanism of one
    message, a release is a round of Girgis et al. 2021 (CLDP-SGD, Theorem 3): of `clients` some are
    sampled, of the points of each some again, and all messages are shuffled.

    Scored against the mean of all points that the cohort holds. `sampling_error` is how far the
    points that were sampled are from it; noise and causes are those of task "mean".

    Fields:
        sampled_points: points that each client in a batch draws from its own, uniformly, without
            replacement, and in secret; one report each.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> from raydp_sim.stream.trust import TRUSTS
        >>> setting = Setting(make("2rr", epsilon_local=1.0), 100, (20, 1), 1e-6)
        >>> batch = Formed(10, TRUSTS["shuffle"], clients=100, honest=10, sampling="uniform")
        >>> round(ItemMean(sampled_points=2).event(setting, Ask(setting.mechanism), batch).rate, 6)
        0.01
    """

    kind: ClassVar[str] = "item-mean"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 3, "sampled_points": 2},
            "population": {
                "clients": 41,
                "data": {"kind": "points", "points": 5, "dimension": 3, "clip": 1.0},
            },
            "participation": {"kind": "uniform", "sampled": 30},
            "mechanism": {"kind": "rinf", "radius": 1.0, "epsilon_local": 1.0},
        },
    )
    adaptive = False
    sampled_points: Annotated[int, Field(ge=1)] = 1

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return one kind of release; refuse data that are no points."""
        if setting.labels:
            raise InputError(
                "population.data: the data are labelled samples, which only a task that trains a "
                "model can use; choose such a task, or kind: points"
            )
        if len(setting.shape) != 2:
            raise InputError(
                "population.data: each client holds one vector; task 'item-mean' samples from "
                "several, so use kind: points"
            )
        if self.sampled_points > setting.shape[0]:
            remedy = f"a client holds {setting.shape[0]} points; lower it"
            raise bad_field("task.sampled_points", self.sampled_points, remedy)
        mechanism = setting.mechanism
        if mechanism.guarantee == "shuffled-only":
            remedy = "task 'item-mean' charges report by report, and one alone is not protected"
            raise bad_field("mechanism.kind", mechanism.kind, remedy)
        return super().plan(setting)

    def expected(self, setting: Setting, outlook: Outlook) -> Expected:
        """Return noise, clipping and which points were sampled; for the run also which clients."""
        mechanism, (count, dimension) = setting.mechanism, setting.shape
        held = np.asarray(outlook.held, dtype=np.float64)
        raw, sampled = held.reshape(-1, dimension), self.sampled_points
        kept = mechanism.admit(raw, None).values
        noise, exact = noise_of_mean(mechanism, kept, outlook.reports * sampled)
        # Without replacement, of the points of each client.
        within = float(held.var(axis=1, ddof=1).sum(axis=1).mean()) if count > 1 else 0.0
        points = within * (1.0 - sampled / count) / (sampled * max(1.0, outlook.reports))
        clients = outlook.between * moments(mechanism.domain, held.mean(axis=1)).spread
        clipped = off_centre(kept, raw)
        return Expected(
            release=noise + points + clipped,
            run=(noise + points + clients) / self.rounds + clipped,
            exact=exact,
            note=bias_of(mechanism),
        )

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse points outside the domain before the run."""
        flat = np.asarray(data).reshape(-1, setting.shape[-1])
        setting.mechanism.admit(flat, np.repeat(ids, setting.shape[0]))

    def init(self, setting: Setting) -> Arrays:
        """Start with no releases."""
        return nothing_yet(setting)

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
        """Sample the points of each client: those with the smallest of uniform draws."""
        keys = stream.uniform("point", setting.shape[0])
        chosen = np.argsort(keys, axis=1, kind="stable")[:, : self.sampled_points]
        points = np.take_along_axis(np.asarray(data), chosen[:, :, None], axis=1)
        values = points.reshape(-1, setting.shape[-1])
        owner = np.repeat(np.arange(len(data)), self.sampled_points)
        return Answer(values, owner, memory, seen=total_of(ask.mechanism, values))

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
        """Decode the estimate and average it with those before."""
        values = formed.reports * self.sampled_points
        return averaged(state, ask.mechanism, accumulator, values, formed.weight, stream)

    def event(self, setting: Setting, ask: Ask, formed: Formed) -> Release | None:
        """Return a round of CLDP-SGD where it is one, else what is known of single points."""
        return item_event(ask.mechanism, formed, setting.shape[0], self.sampled_points)

    # For the analyst.

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return the exact sum of all points that the clients hold, and their number."""
        flat = np.asarray(data).reshape(-1, setting.shape[-1])
        return total_of(setting.mechanism, flat)

    def estimand(self, setting: Setting, truth: Counts) -> Floats:
        """Return the mean of all points."""
        return exact_mean(setting.mechanism, truth)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return the squared errors of the release and of the running mean, and their causes."""
        mechanism, estimate, sent = setting.mechanism, public[0]["estimate"], truth.seen
        assert sent is not None
        whole, cohort = (exact_mean(mechanism, t) for t in (truth.population, truth.cohort))
        scores = {
            "squared_error_cohort": distance(estimate, cohort),
            "squared_error_population": distance(estimate, whole),
            "running_squared_error": distance(public[0]["running"], whole),
            "sampling_error": math.sqrt(distance(exact_mean(mechanism, sent), cohort)),
            **causes(mechanism, estimate, truth, sent),
        }
        return {"errors": simulation_only(scores)}
