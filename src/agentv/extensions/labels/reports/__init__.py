"""Reports of `agentv judge`, as text and as JSON."""
