"""Where it runs: thin shells around the core, as Ray actors or in one process."""
