"""Commands of a client of a team's server."""
