"""The last values of a run as Ray's own metrics, which its dashboard and Prometheus export show."""

from typing import Any

from ray.util.metrics import Gauge


class RayMetrics:
    """Sets a gauge for every number of a release; lives in the actor that writes rows.

    Args:
        run: name of the run, a tag of every gauge.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.gauges: dict[str, Gauge] = {}

    def row(self, row: dict[str, Any]) -> None:
        """Show a release."""
        for name, value in row.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                if name not in self.gauges:
                    about = f"{name.replace('_', ' ')} of the last release"
                    self.gauges[name] = Gauge(f"raydp_sim_{name}", about, ("run",))
                self.gauges[name].set(float(value), {"run": self.run})
