"""Trials of agents: the workspace, the tools and the gateway, from before the first call until after grading."""
