"""What a mechanism declares of its own guarantee, by epsilon and delta."""

from dataclasses import dataclass, field
from typing import Literal

from raydp_sim.privacy.checks import check_real, check_whole
from raydp_sim.privacy.events.unit import Protected, Unit


@dataclass(frozen=True)
class LocalReport(Protected):
    """Each charged client sent one report of an (epsilon, delta)-LDP randomizer.

    The view is the report itself, so the guarantee holds against everyone, the server included.
    """

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class CentralRelease(Protected):
    """A trusted aggregator released one (epsilon, delta)-DP function of the charged clients' data.

    Neighbours replace one client's data; the view is the released estimate.
    """

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class EnsembleRelease(Protected):
    """A trusted aggregator released one (epsilon, delta)-DP function of votes on private data.

    Each voter's vote is itself differentially private for the data behind it. Neighbours differ in
    one RECORD of those data, not in one vote: where records are shared it may change every vote.
    Whether it is replaced, or added or removed, is what the guarantee of the votes says.
    The view is the released label, never the tally. Only (epsilon, delta) is known of it.

    Attributes:
        epsilon, delta: of the release, >= 0.
        records: `shared`, every voter may have used the record; `disjoint`, one of them.
        votes: `fresh`, drawn anew for this query, independently of the other queries; `fixed`, all
            queries are answered by what each voter computed once, which is charged at the first.

    Example:
        >>> EnsembleRelease(0.3, 1e-5).unit
        'item'
    """

    epsilon: float
    delta: float = 0.0
    records: Literal["shared", "disjoint"] = "shared"
    votes: Literal["fresh", "fixed"] = "fresh"
    unit: Unit = field(default="item", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_real(self, "epsilon")
        check_real(self, "delta")


@dataclass(frozen=True)
class ShuffledRelease(Protected):
    """A shuffler released all messages of a batch, which together are (epsilon, delta)-DP.

    A report alone is not protected: the view is the multiset of all messages of the batch, and the
    guarantee counts on `n` of its clients, the charged one included, to follow the protocol.
    Neighbours replace one client's data. Charged: those who took part.

    Attributes:
        epsilon, delta: of the release, >= 0.
        n: honest clients that it takes, >= 1.

    Example:
        >>> ShuffledRelease(1.0, 1e-8, n=500).n
        500
    """

    epsilon: float
    delta: float
    n: int

    def __post_init__(self) -> None:
        check_real(self, "epsilon")
        check_real(self, "delta")
        check_whole(self, "n")
