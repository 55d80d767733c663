"""What a ledger says about one client over time, and about all clients at one moment."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from raydp_sim.privacy.events import Event, Release
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.ledger.participations import gini
from raydp_sim.privacy.ledger.store import Charge
from raydp_sim.privacy.ledger.views import Guarantee, charged_to_all


@dataclass(frozen=True)
class Entry:
    """One release that a client was charged for.

    Attributes:
        release: its number in the run.
        time: of the release, in virtual time.
        took_part: False where it is charged as one who might have been sampled.
        n: clients in the batch.
        epsilon0: local loss of the client's report; None if it sent none.
        event: what the client is charged.
        epsilon, delta: of everything up to here.
        bound: that gave them.
    """

    release: int
    time: float
    took_part: bool
    n: int
    epsilon0: float | None
    event: Event | Release
    epsilon: float
    delta: float
    bound: str


def history(charges: Iterable[Charge], client: int, ledger: Ledger) -> list[Entry]:
    """Return what one client was charged, release by release.

    Args:
        charges: rows of one repetition, in order.
        client: its number.
        ledger: of all clients, empty; it is charged with the rows.

    Example:
        >>> from raydp_sim.privacy.events import LocalReport
        >>> rows = [Charge(0, r, float(r), LocalReport(0.5), range(r, 5)) for r in range(4)]
        >>> [(e.release, e.n, e.epsilon) for e in history(rows, client=1, ledger=Ledger(5))]
        [(0, 5, 0.5), (1, 4, 1.0)]
    """
    entries = []
    for charge in charges:
        ledger.charge(charge.event, charge.participants, charge.shuffled)
        took_part = _among(client, charge)
        if not took_part and not charged_to_all(charge.shuffled):
            continue
        # Who might have been sampled is charged as if it had been: whether it was is a secret.
        found = ledger.guarantee()
        entries.append(
            Entry(
                release=charge.release,
                time=charge.time,
                took_part=took_part,
                n=len(charge.participants),
                epsilon0=charge.event.epsilon if took_part else None,
                event=charge.event if charge.shuffled is None else charge.shuffled,
                epsilon=float(ledger.epsilons()[client]),
                delta=found.delta,
                bound=found.bound,
            )
        )
    return entries


def _among(client: int, charge: Charge) -> bool:
    ids = charge.participants
    if isinstance(ids, range):
        return client in ids
    place = int(np.searchsorted(ids, client))
    return place < len(ids) and int(ids[place]) == client


def replayed(charges: Iterable[Charge], ledger: Ledger, until: int | None = None) -> Ledger:
    """Charge an empty ledger with the rows of one repetition, in order, up to a release.

    Args:
        charges: the rows; they are looked at one at a time.
        ledger: to be charged.
        until: number of the last release to count; None: all.
    """
    for charge in charges:
        if until is not None and charge.release > until:
            break
        ledger.charge(charge.event, charge.participants, charge.shuffled)
    return ledger


@dataclass(frozen=True)
class Standing:
    """How the clients of a run stand at one moment.

    Attributes:
        guarantee: for the worst and the median client.
        worst: number of the client that was charged most, the first of several.
        least: epsilon of the client that was charged least.
        p5, p25, p75, p95: epsilon that this percentage of clients does not exceed.
        never: share of clients that were never charged.
        participation: releases that clients took part in: least, mean, median, most, and `gini`.
        sampled: whether releases are charged to everyone who might have been sampled.
    """

    guarantee: Guarantee
    worst: int
    least: float
    p5: float
    p25: float
    p75: float
    p95: float
    never: float
    participation: dict[str, float]
    sampled: bool

    def per_client(self) -> dict[str, float]:
        """Return the distribution of epsilon over the clients."""
        return {
            "min": self.least,
            "p5": self.p5,
            "p25": self.p25,
            "median": self.guarantee.median,
            "p75": self.p75,
            "p95": self.p95,
            "max": self.guarantee.epsilon,
            "worst": self.worst,
            "never": self.never,
        }


def standing(ledger: Ledger) -> Standing:
    """Look at all clients of a ledger.

    Example:
        >>> from raydp_sim.privacy.events import LocalReport
        >>> ledger = Ledger(4)
        >>> for members in (range(0, 3), range(2, 3)):
        ...     ledger.charge(LocalReport(0.5), members)
        >>> found = standing(ledger)
        >>> found.worst, found.never, found.participation["gini"]
        (2, 0.25, 0.375)
    """
    epsilons, counts = ledger.epsilons(), ledger.participations()
    shares = (0.05, 0.25, 0.75, 0.95)
    p5, p25, p75, p95 = np.quantile(epsilons, shares, method="inverted_cdf").tolist()
    return Standing(
        guarantee=ledger.guarantee(),
        worst=int(np.argmax(epsilons)),
        least=float(epsilons.min()),
        p5=p5,
        p25=p25,
        p75=p75,
        p95=p95,
        never=ledger.never(),
        participation={
            "min": int(counts.min()),
            "mean": float(counts.mean()),
            "median": float(np.median(counts)),
            "max": int(counts.max()),
            "gini": gini(counts),
        },
        sampled=any(charged_to_all(release) for release in ledger.shuffled),
    )
