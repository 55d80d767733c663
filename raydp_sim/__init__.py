"""raydp_sim: a streaming, actor-based simulator of private distributed learning on Ray."""

from raydp_sim.errors import InputError, RunError
from raydp_sim.run import RunResult, run, stream
from raydp_sim.version import __version__

__all__ = ["InputError", "RunError", "RunResult", "__version__", "run", "stream"]
