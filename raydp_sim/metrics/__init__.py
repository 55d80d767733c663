"""What analysts see: the schemas of the streams, where rows go, and pictures of them."""

from pathlib import Path
from typing import Any

from raydp_sim.metrics.tables import read

__all__ = ["connect", "read"]


def connect(url: str, token: str | None = None, certificate: str | Path | None = None) -> Any:
    """Connect to a run that is served; see `raydp_sim.metrics.live.client.connect`."""
    # Flight is only for those who follow.
    from raydp_sim.metrics.live import client

    return client.connect(url, token, certificate)
