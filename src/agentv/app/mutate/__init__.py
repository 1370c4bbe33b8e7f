"""`agentv mutate`: whether the checks of a run notice worse answers."""
