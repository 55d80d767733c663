"""What happened to the clients' data, as frozen records; what it costs is the accountant's work."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LocalReport:
    """Each charged client sent one report of an (epsilon, delta)-LDP randomizer.

    The view is the report itself, so the guarantee holds against everyone, the server included.
    """

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class CentralRelease:
    """A trusted aggregator released one (epsilon, delta)-DP function of the charged clients' data.

    Neighbours replace one client's data; the view is the released estimate.
    """

    epsilon: float
    delta: float = 0.0


Event = LocalReport | CentralRelease
