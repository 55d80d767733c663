"""Fault campaigns: a scenario is played while its processes are killed, and has to end the same."""
