"""The interface of every latency model."""

from raydp_sim.random import ClientStream, Floats
from raydp_sim.registry import Piece


class Latency(Piece):
    """Seconds of virtual time between a client's ask and its report, independent between asks."""

    def durations(self, stream: ClientStream) -> Floats:
        """Draw one duration for every client of the stream, which is keyed by the ask."""
        raise NotImplementedError

    def least(self) -> float:
        """Return the infimum of the durations: no report can arrive before it."""
        raise NotImplementedError

    def typical(self) -> float:
        """Return the median."""
        raise NotImplementedError

    @property
    def instant(self) -> bool:
        """Whether every duration is 0."""
        return False
