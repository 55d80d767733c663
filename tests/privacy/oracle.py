"""The ledger as first written: counts per client and event, and everything else recomputed.

Slow, but it adds nothing up as it goes along, so it is an independent check of the one that does.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from raydp_sim.privacy.composition.conversion import order_grid
from raydp_sim.privacy.composition.streaming import event_vector
from raydp_sim.privacy.curves.caps import pure_epsilon
from raydp_sim.privacy.events import SubsampledMultiMessage, SubsampledShuffle

_ALPHA_MAX = 1024
_SAMPLED = (SubsampledShuffle, SubsampledMultiMessage)


@dataclass
class _Participations:
    """How often each client was charged one event; releases with everyone are counted apart."""

    counts: np.ndarray
    everyone: int = 0
    most: int = 0
    median: float = 0.0

    def add(self, participants, times):
        if isinstance(participants, range):
            if len(participants) == len(self.counts):
                self.everyone += times
                return
            self.counts[participants.start : participants.stop] += times
        else:
            self.counts[participants] += times
        self.most, self.median = int(self.counts.max()), _median(self.counts)


@dataclass
class Oracle:
    """The account of a run, computed anew from all counts whenever it is asked for."""

    clients: int
    delta: float = 1e-6
    charged: dict = field(default_factory=dict)
    shuffled: dict = field(default_factory=dict)

    def charge(self, event, participants, release=None, times=1):
        if len(participants) and int(participants[-1]) >= self.clients:
            raise ValueError(f"client {int(participants[-1])} is not among {self.clients}")
        if release is not None:
            sampled = {isinstance(known, _SAMPLED) for known in (*self.shuffled, release)}
            if len(sampled) > 1:
                raise ValueError("a run charges all eligible clients or participants, never both")
            if release not in self.shuffled:
                fresh = np.zeros(0 if isinstance(release, _SAMPLED) else self.clients, np.int32)
                self.shuffled[release] = _Participations(fresh)
            everyone = isinstance(release, _SAMPLED)
            self.shuffled[release].add(range(0) if everyone else participants, times)
        if event not in self.charged:
            self.charged[event] = _Participations(np.zeros(self.clients, np.int32))
        self.charged[event].add(participants, times)

    def composed(self):
        """Return the largest epsilon, the largest delta and the median epsilon."""
        epsilons, deltas = np.zeros(self.clients), np.zeros(self.clients)
        for event, taken in self.charged.items():
            epsilons += (taken.everyone + taken.counts) * event.epsilon
            deltas += (taken.everyone + taken.counts) * event.delta
        return float(epsilons.max()), float(deltas.max()), float(np.median(epsilons))

    def amplified(self):
        """Return the largest and the median epsilon."""
        rows, weights = self._histories()
        epsilons = self._rdp_epsilons(rows)
        order = np.argsort(epsilons)
        middle = np.searchsorted(np.cumsum(weights[order]), (weights.sum() + 1) // 2)
        return float(epsilons.max()), float(epsilons[order[middle]])

    def _histories(self):
        """Return the distinct rows of how often each event was charged, and how many have each."""
        everyone = np.array([taken.everyone for taken in self.shuffled.values()])
        taken = list(self.shuffled.values())
        if not any(part.most for part in taken):
            return everyone[None], np.array([self.clients])
        # A client's history as one number, which sorts faster than a row; ranked anew after every
        # event, so that it stays below clients * releases and can never wrap around.
        code = np.zeros(self.clients, np.int64)
        for part in taken:
            code = code * (part.most + 1) + part.counts
            _, first, code, weights = np.unique(
                code, return_index=True, return_inverse=True, return_counts=True
            )
        return np.stack([part.counts[first] for part in taken], axis=1) + everyone, weights

    def _rdp_epsilons(self, rows):
        """Convert every history's sum of divergences at the best order (000 Lemma 2.1.3)."""
        orders = order_grid(_ALPHA_MAX).astype(np.float64)
        vectors = np.array([event_vector(event, None, _ALPHA_MAX) for event in self.shuffled])
        pure = np.array([pure_epsilon(event) for event in self.shuffled])
        gain = (orders - 1) * np.log1p(-1 / orders) - np.log(orders) - math.log(self.delta)
        converted = (rows @ vectors + gain / (orders - 1)).min(axis=1)
        added = np.where(rows > 0, rows * np.where(np.isinf(pure), 1e300, pure), 0.0).sum(axis=1)
        spent = np.minimum(np.maximum(converted, 0.0), added)
        return np.asarray(np.where(rows.any(axis=1), spent, 0.0))


def _median(counts):
    """Return the median of small whole numbers; counting them is faster than sorting."""
    below = np.cumsum(np.bincount(counts))
    middle = np.searchsorted(below, ((len(counts) + 1) // 2, len(counts) // 2 + 1))
    return float(middle.mean())
