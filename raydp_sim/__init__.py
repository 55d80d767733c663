"""raydp_sim: a streaming, actor-based simulator of private distributed learning on Ray."""

import os

# Read when NumPy is first loaded. Products here are small, one for each client: a second thread of
# BLAS only waits for the first, and the other cores have actors of their own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from raydp_sim.errors import InputError, RunError
from raydp_sim.run import RunResult, run, stream
from raydp_sim.version import __version__

__all__ = ["InputError", "RunError", "RunResult", "__version__", "run", "stream"]
