"""raydp_sim: a streaming, actor-based simulator of private distributed learning on Ray."""

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Read when NumPy is first loaded. Products here are small, one for each client: a second thread of
# BLAS only waits for the first, and the other cores have actors of their own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from raydp_sim.errors import InputError, RunError
from raydp_sim.version import __version__

if TYPE_CHECKING:
    from raydp_sim.run import RunResult, run, stream

__all__ = ["InputError", "RunError", "RunResult", "__version__", "run", "stream"]


def __getattr__(name: str) -> Any:
    """Import what plays scenarios only when it is asked for: every process of a run starts here."""
    if name != "RunResult":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from raydp_sim.run.result import RunResult

    return RunResult


class _Package(ModuleType):
    """Keeps `run` and `stream` functions, though there are packages of these names too.

    Python sets a package's attribute to a package in it that it has just imported; here it may not.
    """

    @property
    def run(self) -> Any:
        """Play a scenario to its end."""
        from raydp_sim.run.play import run

        return run

    @run.setter
    def run(self, package: ModuleType) -> None: ...

    @property
    def stream(self) -> Any:
        """Play a scenario and yield its releases."""
        from raydp_sim.run.play import stream

        return stream

    @stream.setter
    def stream(self, package: ModuleType) -> None: ...


sys.modules[__name__].__class__ = _Package
