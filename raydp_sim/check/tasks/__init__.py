"""The checks of tasks: the protocol step by step, and small runs of the real actors."""
