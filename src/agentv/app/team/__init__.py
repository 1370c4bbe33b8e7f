"""`agentv serve`: the database of a team's server."""
