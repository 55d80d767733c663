"""User-level mean estimation: find where the clients' own means lie, then average them there."""

import math
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import LIMITS, Counts, Mechanism, Positive
from raydp_sim.mechanisms.parts.rotation import Hadamard, padded_dimension
from raydp_sim.mechanisms.projected_mean import ProjectedMean
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.mechanisms.user_range import RangeSplit, UserRange
from raydp_sim.metrics.streams import simulation_only
from raydp_sim.random import ClientStream, Stream
from raydp_sim.tasks.base import (
    Answer,
    Arrays,
    Ask,
    Floats,
    Formed,
    Planned,
    Setting,
    Task,
    Truth,
)
from raydp_sim.tasks.estimate import noise_variance
from raydp_sim.tasks.expected import Expected, Outlook
from raydp_sim.tasks.mean import distance, exact_mean, total_of
from raydp_sim.tasks.range_search import Grid, search_grid


class UserMean(Task):
    """Each client holds the mean of its samples, and the whole of them is what is protected.

    Girgis 2023 (dissertation), Theorem 3.7.1, with two releases of half the guarantee each. In the
    first every client reports the bin of its mean ("user-range"), and the densest bin is made
    public. In the second it clips its mean to within 3 tau of that bin's centre and reports it
    ("projected-mean"): the noise is that of tau, which falls as 1/sqrt(samples), and not that of
    the radius. Vectors are rotated first, and the search is made for every rotated coordinate.

    The samples are taken to be independent and sub-Gaussian with proxy `sigma`^2 (in every
    direction). Then tau = sigma sqrt(2 log(2 n D / gamma) / samples), n clients and D rotated
    coordinates; the seed's tau lacks the 2, and its event fails far more often than gamma. Privacy
    rests on none of this.

    Fields:
        rounds: 2, the search and the mean.
        samples: m, how many samples each client's mean is made of.
        sigma: sub-Gaussian scale of a sample.
        gamma: probability that some client's mean is further than tau from the true one.
        range_split: of vectors, whether the coordinates of the search share the "clients" (each
            reports one) or the "budget"; see "user-range".
        rotation_seed: of the rotation, which is public.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> task = UserMean(samples=100, sigma=1.0)
        >>> known = {"clients": 4000, "dimension": 1, "radius": 10.0, "levels": 3}
        >>> mechanism = make("projected-mean", epsilon_local=2.0, **known)
        >>> grid = task.grid(mechanism)
        >>> round(grid.tau, 5), grid.bins
        (0.52139, 20)
    """

    kind: ClassVar[str] = "user-mean"
    examples: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {
            "task": {"samples": 50, "sigma": 1.0},
            "population": {
                "clients": 41,
                "data": {"kind": "gaussian", "dimension": dimension, "clip": 4.0},
            },
            "mechanism": {"kind": "projected-mean", "radius": 4.0, "epsilon_local": 2.0},
        }
        for dimension in (1, 3)
    )
    adaptive = True
    open_ended = False
    rounds: Annotated[int, Field(ge=2, le=2)] = 2
    samples: Annotated[int, Field(ge=1)]
    sigma: Positive
    gamma: Annotated[float, Field(gt=0, lt=1)] = 0.01
    range_split: RangeSplit = "clients"
    rotation_seed: int = 0

    # The protocol's parameters, all public.

    def grid(self, mechanism: Mechanism) -> Grid:
        """Return the bins of the search, from the scenario's mechanism."""
        return search_grid(mechanism, self.samples, self.sigma, self.gamma)

    def search(self, mechanism: Mechanism) -> UserRange:
        """Return the mechanism of the first release."""
        grid = self.grid(mechanism)
        if mechanism.need_epsilon() < 2.0 * LIMITS[0]:
            remedy = (
                f"each of the two stages gets half of it; it must be at least {2 * LIMITS[0]:g}"
            )
            raise bad_field("mechanism.epsilon_local", mechanism.need_epsilon(), remedy)
        return UserRange(
            epsilon_local=0.5 * mechanism.need_epsilon(),
            clients=mechanism.clients,
            dimension=grid.coordinates,
            bins=grid.bins,
            split=self.range_split,
        )

    def around(self, mechanism: Mechanism, centre: Floats) -> ProjectedMean:
        """Return the mechanism of the second release, given what the first one found."""
        grid = self.grid(mechanism)
        found = {
            "epsilon_local": 0.5 * mechanism.need_epsilon(),
            "dimension": grid.coordinates,
            "radius": grid.half,
            "centre": centre.tolist(),
            "reach": 3.0 * grid.tau,
        }
        return ProjectedMean.model_validate({**mechanism.model_dump(), **found})

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return the search and the mean; no guarantee depends on the centre."""
        mechanism = setting.mechanism
        anywhere = np.zeros(self.grid(mechanism).coordinates)
        search, around = self.search(mechanism), self.around(mechanism, anywhere)
        return Planned(Ask(search), 1), Planned(Ask(around), 1, fixed=False)

    @property
    def spends(self) -> int:
        """Once: each release spends half of the guarantee."""
        return 1

    # What may be expected of it.

    def failure_probability(self, mechanism: Mechanism, reports: int) -> float:
        """Bound the probability that anything is clipped in the second release.

        beta = gamma + D (2 half / tau) exp(-n / (200 K^2)) with K = coth(v/2), v the loss of a
        message of the search and n the reports that a coordinate is served by: all with "budget",
        their D-th part with "clients". If all means are within tau of the true one, they are in two
        bins, so one bin has half of them, and every other bin with one of them will do. The search
        fails only if some frequency is off by 1/4, which by Bernstein's inequality (a message of n
        has magnitude at most K D and variance at most K^2 D) is less likely than that.
        """
        grid, search = self.grid(mechanism), self.search(mechanism)
        served = reports if self.range_split == "budget" else reports / grid.coordinates
        gap = float(search.wire.gaps[0])
        wrong = 2.0 * grid.half / grid.tau * math.exp(-served * gap**2 / 200.0)
        return min(1.0, self.gamma + grid.coordinates * wrong)

    def error_bound(self, mechanism: Mechanism, reports: int) -> float:
        """Bound the mean squared error of the second release if it clips nothing.

        f(3 tau, epsilon / 2) / n, f the worst case of R^linf (Theorem 3.7.1): about tau^2 / n.
        """
        anywhere = np.zeros(self.grid(mechanism).coordinates)
        return self.around(mechanism, anywhere).worst_mse() / max(1, reports)

    def expected(self, setting: Setting, outlook: Outlook) -> Expected:
        """Return what the theorem promises of the second release, and how often it may fail."""
        mechanism, reports = setting.mechanism, round(outlook.reports)
        bound = self.error_bound(mechanism, reports)
        fails = self.failure_probability(mechanism, reports)
        return Expected(
            release=bound,
            run=bound,
            exact=False,
            note=f"if the range found is right; missed with probability at most {fails:.2g}",
            run_score="squared_error_cohort",
        )

    # The protocol.

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse means outside the ball that the search covers."""
        setting.mechanism.admit(data, ids)

    def init(self, setting: Setting) -> Arrays:
        """Start before the search."""
        grid = self.grid(setting.mechanism)
        return {
            "stage": np.zeros((), np.int64),
            "centre": np.zeros(grid.coordinates),
            "half": np.asarray(grid.half),
            "tau": np.asarray(grid.tau),
            "dimension": np.asarray(setting.mechanism.need_dimension()),
        }

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Ask for the bins, then for means around the centre that was found, and end."""
        if int(state["stage"]) == 0:
            mechanism: Mechanism = self.search(setting.mechanism)
        elif int(state["stage"]) == 1:
            mechanism = self.around(setting.mechanism, state["centre"])
        else:
            return None
        return Ask(mechanism, {name: state[name] for name in ("stage", "centre", "half", "tau")})

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
        """Rotate the client's mean; for the search, find its bins."""
        own = setting.mechanism.admit(data, stream.ids).values
        rotated = own if own.shape[1] == 1 else self._rotation(own.shape[1]).rotate(own)
        if int(ask.broadcast["stage"]) == 0:
            return Answer(Grid.published(ask.broadcast).bin_of(rotated), memory=memory)
        return Answer(rotated, memory=memory)

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
        """Find the densest bins, or estimate the mean; rotate back what is made public."""
        decoded = ask.mechanism.decode(accumulator, stream)
        after = {**state, "stage": np.asarray(state["stage"] + 1)}
        if int(state["stage"]) == 0:
            grid = Grid.published(state)
            densest = decoded.reshape(grid.coordinates, grid.bins).argmax(axis=1)
            after["centre"] = decoded = grid.centre_of(densest)
        d = int(state["dimension"])
        estimate = decoded if d == 1 else self._rotation(d).back(decoded[None])[0, :d]
        made = {"estimate": estimate, "stage": state["stage"]}
        if int(state["stage"]) == 1:
            # Rotated back, a coordinate weighs all rotated ones alike, which are independent.
            variance = noise_variance(ask.mechanism, decoded, formed.reports, formed.weight)
            made["standard_error"] = np.full(d, math.sqrt(variance.mean()))
        return after, made

    # For the analyst.

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return the exact sum of the clients' means and their number."""
        return total_of(setting.mechanism, data)

    def estimand(self, setting: Setting, truth: Counts) -> Floats:
        """Return the mean of the clients' means."""
        return exact_mean(setting.mechanism, truth)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return the squared errors, and what the theorem promises with which probability."""
        mechanism, released = setting.mechanism, public[0]
        grid, reports = self.grid(mechanism), int(truth.cohort[-1])
        if int(released["stage"]) == 0:
            # Every client's mean, and so their mean, is within 3 tau of the centre found.
            bound = grid.coordinates * (3.0 * grid.tau) ** 2
        else:
            bound = self.error_bound(mechanism, reports)
        estimate = released["estimate"]
        seen, whole = (exact_mean(mechanism, t) for t in (truth.so_far, truth.population))
        scores = {
            "squared_error_cohort": distance(estimate, exact_mean(mechanism, truth.cohort)),
            "squared_error_population": distance(estimate, whole),
            "error_bound": bound,
            "failure_probability": self.failure_probability(mechanism, reports),
            "participation_bias": math.sqrt(distance(seen, whole)),
        }
        return {"errors": simulation_only(scores)}

    def _rotation(self, dimension: int) -> Hadamard:
        return _hadamard(padded_dimension("hadamard", dimension), self.rotation_seed)


@lru_cache(maxsize=4)
def _hadamard(full: int, seed: int) -> Hadamard:
    return Hadamard(full, seed)
