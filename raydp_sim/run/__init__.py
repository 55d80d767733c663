"""Driving a scenario: the run directory, checkpoints and resuming, the pre-flight, the summary."""

from raydp_sim.run.play import Run, RunResult, Watcher, prepare, reopen, run, stream

__all__ = ["Run", "RunResult", "Watcher", "prepare", "reopen", "run", "stream"]
