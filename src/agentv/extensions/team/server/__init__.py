"""The API of `agentv serve`: uploads, projects, tokens, the audit log, health and metrics."""
