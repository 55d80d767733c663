"""Clusters, by Lloyd's iteration on sketched centroids."""

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from raydp_sim.errors import InputError, bad_field
from raydp_sim.random import Stream
from raydp_sim.tasks.base import Floats, Planned, Setting
from raydp_sim.tasks.sketching.iterated import Iterated
from raydp_sim.tasks.sketching.samples import public


class KMeans(Iterated):
    """Each client sends the centroids of its own samples; their unweighted means are the next ones.

    004, section 2.5. The start is k-means++ on the held-out samples, which everyone may read. The
    loss is the mean squared distance to the nearest centroid.

    Fields:
        clusters: how many.
        sends: `changes`, each centroid's way from the current one, none where a client has no
            samples of a cluster; or `centroids`, as the text has it.
        empty: what a client without samples of a cluster stands for, of `centroids`: the `current`
            one, or `zero`, which pulls it towards 0. Clusters that nobody has any more then drift
            with the error of their own sketches, which grows with their length.
    """

    kind: ClassVar[str] = "k-means"
    clusters: Annotated[int, Field(ge=1, le=1000)] = 10
    sends: Literal["changes", "centroids"] = "changes"
    empty: Literal["current", "zero"] = "current"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 2, "clusters": 3},
            "trust": "local",
            "privacy": {"guarantee": "none"},
            "population": {
                "clients": 6,
                "data": {"kind": "synthetic-digits", "n": 60, "side": 4, "test": 20, "points": 10},
            },
            "mechanism": {"kind": "rand-proj", "kept": 4, "radius": 10.0},
        },
    )

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return the iterations; refuse reports of which a client would owe one for every cluster.

        No account here adds up several values of one client that hide all of its data.
        """
        mechanism = setting.mechanism
        if mechanism.guarantee != "none" and self.clusters > 1:
            remedy = (
                f"task '{self.kind}' sends {self.clusters} reports of each client at once, which "
                "no account covers; use a sketch without noise and privacy.guarantee: none"
            )
            raise bad_field("mechanism.kind", mechanism.kind, remedy)
        return super().plan(setting)

    def start(self, setting: Setting) -> Floats:
        """Pick centroids among the held-out samples, far ones first (k-means++)."""
        rows = public(setting.held_out, self.side)
        if rows is None or len(rows) < self.clusters:
            raise InputError("k-means starts from held-out samples; choose data that have some")
        draw = Stream(setting.seed).at("k-means").generator()
        rows = rows - self.middle(setting)
        chosen = [int(draw.integers(len(rows)))]
        nearest = np.full(len(rows), np.inf)
        while len(chosen) < self.clusters:
            nearest = np.minimum(nearest, np.square(rows - rows[chosen[-1]]).sum(axis=1))
            weight = nearest.sum()
            even = np.full(len(rows), 1.0 / len(rows))
            chosen.append(int(draw.choice(len(rows), p=nearest / weight if weight else even)))
        return rows[chosen]

    def _nearest(self, point: Floats, samples: Floats) -> tuple[Floats, Floats]:
        # |x - c|^2 without a third axis; the smallest numbers may come out a hair below zero.
        cross = samples @ point.T
        squares = np.einsum("ijk,ijk->ij", samples, samples)[:, :, None]
        apart = np.maximum(squares - 2.0 * cross + np.square(point).sum(axis=1), 0.0)
        return apart.argmin(axis=2), apart.min(axis=2)

    def sent(self, point: Floats, samples: Floats, real: Floats) -> Floats:
        """Return each client's centroids, or how they differ from the current ones."""
        which, _ = self._nearest(point, samples)
        member = (which[:, None, :] == np.arange(len(point))[:, None]) * real[:, None, :]
        count = member.sum(axis=2, keepdims=True)
        stay = self.sends == "changes" or self.empty == "current"
        instead = point if stay else np.zeros_like(point)
        centroids = (member @ samples) / np.maximum(count, 1.0)
        found = np.where(count > 0.0, centroids, instead)
        return found - point if self.sends == "changes" else found

    def moved(self, point: Floats, means: Floats) -> Floats:
        """Return the decoded centroids."""
        return point + means if self.sends == "changes" else means

    def loss(self, point: Floats, samples: Floats, real: Floats) -> Floats:
        """Return the mean squared distance to the nearest centroid."""
        _, apart = self._nearest(point, samples)
        return np.asarray((apart * real).sum(axis=1) / real.sum(axis=1))
