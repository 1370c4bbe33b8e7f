"""The commands `agentv label` and `agentv judge`."""
