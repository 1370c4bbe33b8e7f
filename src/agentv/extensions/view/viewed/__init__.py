"""Use cases of `agentv view`: the runs of a project, their cases and trials, as pages show them."""
