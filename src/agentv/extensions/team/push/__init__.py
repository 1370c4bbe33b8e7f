"""`agentv push`: runs of this machine to a team's server."""
